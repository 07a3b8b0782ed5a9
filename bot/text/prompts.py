"""The messages an agent gets, made from the files of `config/prompts/`."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import (
    Environment,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.meta import find_undeclared_variables

from bot.text.markdown import visible
from bot.text.prompt_text import fence, fit, one_line
from lifecycle.model.actions import Prompt

#: What people wrote on a page that shows it as Markdown; all else, such as logs, is as it stands.
_MARKDOWN = ("body", "template", "text")
#: What every message may use, and what those may beside it that are told to a session.
_ANY = ("mark", "fence", "items")
_SESSION = (*_ANY, "repository", "branch", "base_branch", "number", "title", "body")
_BEGINS = (*_SESSION, "summary", "progress", "template")
#: Every prompt there is, with the names it may use.
NAMES: Mapping[str, tuple[str, ...]] = {
    "address_review": (*_SESSION, "head", "pull"),
    "answer": (*_SESSION, "actor", "text", "question"),
    "check": _ANY,
    "fix_ci": (*_SESSION, "head", "pull", "red_on_base"),
    "held": (*_ANY, "files"),
    "merge_branch": (*_SESSION, "head", "pull"),
    "notes": (*_ANY, "progress", "commits", "uncommitted"),
    "resolve_conflict": (*_SESSION, "base", "pull"),
    "resume": _BEGINS,
    "review": (*_SESSION, "base", "pull"),
    "reword": (*_SESSION, "why"),
    "self_review": (*_SESSION, "base", "head"),
    "start": _BEGINS,
    "take_over": _BEGINS,
    "tell": (*_SESSION, "actor", "text"),
    "uncommitted": _SESSION,
}
#: Those that tell somebody of the work who knows nothing of it.
BEGINNINGS = tuple(name for name, words in NAMES.items() if words is _BEGINS)
#: What each item of those has that list some.
_ITEMS = {
    "address_review": ("where", "diff", "text"),
    "fix_ci": ("name", "url", "log", "notes"),
    "notes": ("what", "text", "log"),
}
#: Of one text, and of all items of a message together, so many characters are told.
_MOST = 20_000
_LEAST_OF_ITEM = 500


class PromptError(Exception):
    """A prompt file cannot be used; the message names the file and what is wrong."""


class Prompts:
    """Every prompt, read, compiled and tried once. Raises `PromptError` for a broken file.

    Files of `folder` take the place of those of the same name.
    """

    def __init__(self, folder: Path | None = None) -> None:
        theirs = () if folder is None else _read(folder)
        self._templates = {
            **_ours(),
            **{name: _compiled(name, text, str(folder)) for name, text in theirs},
        }

    def render(self, prompt: Prompt, values: Mapping[str, str], mark: str) -> str:
        """One message, with everything people and programs wrote made harmless and fenced.

        `mark` is the short visible key by which the message is found again where it arrived.
        """
        given = {n: _told(n, text, _MOST) for n, text in {**values, **prompt.values}.items()}
        share = max(_LEAST_OF_ITEM, _MOST // max(1, len(prompt.items)))
        items = [{n: _told(n, text, share) for n, text in one.items()} for one in prompt.items]
        around = fence([*given.values(), *(text for item in items for text in item.values())])
        try:
            return self._templates[prompt.name].render(given, items=items, mark=mark, fence=around)
        except TemplateError as error:
            raise PromptError(f"the prompt {prompt.name}: {error}") from error


def _told(name: str, text: str, most: int) -> str:
    """A value as people see it where they wrote it, and no more of it than the agent is told."""
    return fit(visible(text) if name in _MARKDOWN else text, most)


@cache
def _ours() -> Mapping[str, Template]:
    """The prompts that every installation has."""
    folder = resources.files("config") / "prompts"
    return {
        name: _compiled(name, (folder / f"{name}.md").read_text("utf-8"), "config/prompts")
        for name in NAMES
    }


def _compiled(name: str, text: str, folder: str) -> Template:
    """A template that was tried: what it is given at its time is what it asks for."""
    environment = _environment()
    try:
        unknown = find_undeclared_variables(environment.parse(text)) - set(NAMES[name])
        if unknown:
            raise PromptError(
                f"{folder}/{name}.md: nothing is known of {', '.join(sorted(unknown))};"
                f" it may use {', '.join(NAMES[name])}"
            )
        template = environment.from_string(text)
        tried = dict.fromkeys(NAMES[name], "x")
        template.render({**tried, "items": [dict.fromkeys(_ITEMS.get(name, ()), "x")]})
    except TemplateSyntaxError as error:
        raise PromptError(f"{folder}/{name}.md, line {error.lineno}: {error}") from error
    except TemplateError as error:
        raise PromptError(f"{folder}/{name}.md: {error}") from error
    if not text.strip():
        raise PromptError(f"{folder}/{name}.md: it is empty: write it, or remove the file")
    return template


@cache
def _environment() -> Environment:
    made = Environment(
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - plain text for a terminal, never HTML
        keep_trailing_newline=False,
    )
    made.filters["line"] = one_line
    return made


def _read(folder: Path) -> Iterator[tuple[str, str]]:
    """The prompts in a folder, by their names."""
    try:
        for path in sorted(folder.iterdir()):
            if path.suffix == ".md" and path.stem != "README":
                if path.stem not in NAMES:
                    raise PromptError(
                        f"{path}: there is no such prompt; there are: {', '.join(NAMES)}"
                    )
                yield path.stem, path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise PromptError(f"{folder}: its prompts cannot be read: {error}") from error
