"""Where Gemini CLI keeps what it says of itself, and what of it is used.

It appends to a transcript (`tmp/*/chats/session-*-ID.jsonl`, of which a resumed conversation may
have two).
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from lifecycle.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.files import Count

_CHOICE = re.compile(r"^[│ ]*(● )?(\d)\. +(.+?)[│ ]*$", re.MULTILINE)
_BOX = re.compile(r"^ [>*!] +(.*)", re.MULTILINE)
_EMPTY = "Type your message or @path/to/file"  #: What it shows in an empty box.
#: The choice of its questions that is none of them.
OWN_WORDS = "Enter a custom value"
_Time = Annotated[datetime, Meta(tz=True)]


class Tokens(Struct, frozen=True):
    """What one answer used; what was cached is part of the input."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0
    thoughts: Count = 0
    tool: Count = 0  #: Of results of tools, beside the input.


class Thought(Struct, frozen=True):
    """What it thought of aloud."""

    subject: str = ""
    description: str = ""


class ToolCall(Struct, frozen=True):
    """A tool it called, and what that gave back once it has returned."""

    id: str
    name: str = ""
    args: object = None
    result: list[object] | None = None
    timestamp: _Time | None = None


class Record(Struct, frozen=True, rename="camel"):
    """One line of the transcript; an answer is written again when it has grown."""

    id: str
    timestamp: _Time
    type: str
    content: object = None
    model: str = ""
    tokens: Tokens | None = None
    thoughts: tuple[Thought, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()


def used(tokens: Tokens) -> Usage:
    """What an answer used. It tells no price."""
    return Usage(
        input=max(0, tokens.input - tokens.cached) + tokens.tool,
        output=tokens.output,
        cache_read=tokens.cached,
        reasoning=tokens.thoughts,
    )


def folder(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".gemini"


def transcripts(files: RunFiles, native: str) -> list[Path]:
    """The transcripts of a conversation: they carry the beginning of its name."""
    return sorted((folder(files) / "tmp").glob(f"*/chats/session-*-{native[:8]}.jsonl"))


def dialog(screen: str) -> tuple[str, tuple[str, ...]]:
    """What a dialog that is open says above its choices, and these; empty where none is open.

    Its choices are the last that begin with 1, one of them marked.
    """
    found = list(_CHOICE.finditer(screen))
    first = max((place for place, one in enumerate(found) if one[2] == "1"), default=0)
    found = found[first:]
    if not any(one[1] for one in found):
        return "", ()
    above = screen[: found[0].start()].rpartition("\n╭")[2]
    return above.strip("─╮│ \n"), tuple(one[3] for one in found)


def typed(screen: str) -> str:
    """The first words in the box for the next message: the last of those that look like one."""
    boxes = _BOX.findall(screen)
    words = boxes[-1].strip() if boxes else ""
    return "" if words == _EMPTY else words
