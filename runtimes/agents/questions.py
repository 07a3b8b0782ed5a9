"""What agents ask, in words for people."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct


class _Option(Struct, frozen=True):
    label: str


class _Ask(Struct, frozen=True):
    """One question of a tool that asks people."""

    question: str
    options: tuple[_Option, ...] = ()


def permission(tool: str, given: Mapping[str, object]) -> str:
    """That it asks for leave to use a tool, and for what."""
    what = given.get("command") or given.get("file_path") or given.get("url") or ""
    return f"It asks for permission to use {tool}: {what}".rstrip(": ")


def questions(given: object) -> str:
    """Its questions, each with its choices; empty where they are something else."""
    with suppress(msgspec.ValidationError):
        return " ".join(
            with_choices(ask.question, (option.label for option in ask.options))
            for ask in msgspec.convert(given, list[_Ask])
        )
    return ""


def with_choices(question: str, choices: Iterable[str]) -> str:
    """A question with its choices behind it, where there are any."""
    listed = " / ".join(choices)
    return f"{question} ({listed})" if listed else question
