"""The messages an agent gets, made from the files of `config/prompts/`."""

import re
import unicodedata
from collections.abc import Mapping
from importlib import resources

from jinja2 import Environment, StrictUndefined, TemplateError

from lifecycle.actions import Prompt

_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCES = re.compile(r"^\s*(`{3,}|~{3,})", re.MULTILINE)


class PromptFailure(Exception):
    """A prompt file cannot be used; the message names the file and what is wrong."""


class Prompts:
    """Every prompt, read and compiled once. Raises `PromptFailure` for a broken file."""

    def __init__(self) -> None:
        environment = Environment(
            undefined=StrictUndefined,
            autoescape=False,  # noqa: S701 - plain text for a terminal, never HTML
            keep_trailing_newline=False,
        )
        self._templates = {}
        for file in (resources.files("config") / "prompts").iterdir():
            if file.name.endswith(".md"):
                try:
                    template = environment.from_string(file.read_text(encoding="utf-8"))
                except TemplateError as error:
                    raise PromptFailure(f"config/prompts/{file.name}: {error}") from error
                self._templates[file.name.removesuffix(".md")] = template

    def render(self, prompt: Prompt, values: Mapping[str, str], mark: str) -> str:
        """One message, with everything people and programs wrote made harmless and fenced.

        `mark` is the short visible key by which the message is found again where it arrived.
        """
        if prompt.name not in self._templates:
            known = ", ".join(sorted(self._templates))
            raise PromptFailure(f"config/prompts/{prompt.name}.md is missing; there are: {known}")
        given = {name: plain(text) for name, text in {**values, **prompt.values}.items()}
        items = [{name: plain(text) for name, text in item.items()} for item in prompt.items]
        fence = _fence([*given.values(), *(text for item in items for text in item.values())])
        try:
            return self._templates[prompt.name].render(given, items=items, mark=mark, fence=fence)
        except TemplateError as error:
            raise PromptFailure(f"config/prompts/{prompt.name}.md: {error}") from error


def plain(text: str) -> str:
    """Text of others without what a person would not see: comments, invisible and control signs."""
    visible = _HIDDEN.sub("", text.replace("\r\n", "\n"))
    return "".join(
        sign for sign in visible if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf")
    ).strip("\n")


def _fence(texts: list[str]) -> str:
    """A fence longer than any inside, so that no text can close it."""
    longest = max((len(found) for text in texts for found in _FENCES.findall(text)), default=2)
    return "`" * max(3, longest + 1)
