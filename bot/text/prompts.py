"""Renders messages to agents from the templates in `config/prompts/`."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template, TemplateError, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables

from bot.text.markdown import visible
from bot.text.prompt_text import fence, fit, one_line
from lifecycle.model.actions import Prompt

#: The names of values written as Markdown; all others, such as logs, are plain text.
_MARKDOWN = ("body", "template", "text")
#: The names of values that every prompt may use, and those that prompts about an issue may use.
_ANY = ("mark", "fence", "items")
_SESSION = (*_ANY, "repository", "branch", "base_branch", "work", "number", "title", "body")
_BEGINNING = ("summary", "progress", "template")
_BEGINS = (*_SESSION, *_BEGINNING)
#: All prompts with the names they may use.
NAMES: Mapping[str, tuple[str, ...]] = {
    "address_review": (*_SESSION, "head", "pull"),
    "adopt": _BEGINS,
    "answer": (*_SESSION, "actor", "text", "question"),
    "chat": _SESSION,
    "chat_message": (*_SESSION, "actor", "text"),
    "check": _ANY,
    "discussion": (*_SESSION, *_BEGINNING, "about", "left_out"),
    "fix_ci": (*_SESSION, "head", "pull", "red_on_base"),
    "held": (*_ANY, "files"),
    "merge_branch": (*_SESSION, "head", "pull"),
    "move_commits": (*_SESSION, "head", "where"),
    "notes": (*_ANY, "progress", "commits", "uncommitted"),
    "pull_request": (*_SESSION, "actor", "text", "summary"),
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
#: Prompts with which a run can begin: they explain the work even to an agent that knows nothing of
#: it.
BEGINNINGS = tuple(name for name, words in NAMES.items() if words is _BEGINS)
#: The fields of the items that some prompts list.
_ITEMS = {
    "address_review": ("where", "diff", "text"),
    "discussion": ("what", "text"),
    "fix_ci": ("name", "url", "log", "notes"),
    "notes": ("what", "text", "log"),
}
#: The most characters of one value. In a list of items, each value may have this number divided by
#: the number of items, but at least `_LEAST_OF_ITEM`.
_MOST = 20_000
_LEAST_OF_ITEM = 500


class PromptError(Exception):
    """A prompt is invalid. The message has the file, or the prompt's name, and the problem."""


class Prompts:
    """All prompts, compiled and rendered once as a test. Raises `PromptError` for an invalid file.

    Files in `folder` replace the built-in prompts of the same name. `projects` has the folders of
    projects by name. For a project's sessions, its files replace the prompts of the same name.
    """

    def __init__(
        self, folder: Path | None = None, projects: Mapping[str, Path] | None = None
    ) -> None:
        self._templates = {**_ours(), **_replaced(folder)}
        self._of_projects = {
            name: {**self._templates, **_replaced(path)} for name, path in (projects or {}).items()
        }

    def render(
        self, prompt: Prompt, values: Mapping[str, str], mark: str, project: str = ""
    ) -> str:
        """Return a message in which all text of people and programs is cleaned and cut.

        Templates put this text into fences or on one line. Their variables are the names in
        `values` and `prompt.values`.

        `mark` is a short visible key by which the bot finds the message in the transcript. An empty
        `project` selects the prompts for all projects. Raises `PromptError`.
        """
        shown = _shown({**values, **prompt.values}, _MOST)
        share = max(_LEAST_OF_ITEM, _MOST // max(1, len(prompt.items)))
        items = [_shown(item, share) for item in prompt.items]
        around = fence([text for part in (shown, *items) for text in part.values()])
        try:
            templates = self._of_projects.get(project, self._templates)
            return templates[prompt.name].render(shown, items=items, mark=mark, fence=around)
        except TemplateError as error:
            raise PromptError(f"the prompt {prompt.name}: {error}") from error


def _shown(values: Mapping[str, str], most: int) -> dict[str, str]:
    """Return each value cut to `most` characters, without Markdown that GitHub does not show."""
    return {
        name: fit(visible(text) if name in _MARKDOWN else text, most)
        for name, text in values.items()
    }


def _replaced(folder: Path | None) -> dict[str, Template]:
    theirs = () if folder is None else _read(folder)
    return {name: _compiled(name, text, str(folder)) for name, text in theirs}


@cache
def _ours() -> Mapping[str, Template]:
    """Return the built-in prompts."""
    folder = resources.files("config") / "prompts"
    return {
        name: _compiled(name, (folder / f"{name}.md").read_text("utf-8"), "config/prompts")
        for name in NAMES
    }


def _compiled(name: str, text: str, folder: str) -> Template:
    """Compile a template and render it once with placeholders. Raises `PromptError`."""
    environment = _environment()
    try:
        unknown = find_undeclared_variables(environment.parse(text)) - set(NAMES[name])
        if unknown:
            raise PromptError(
                f"{folder}/{name}.md: unknown names: {', '.join(sorted(unknown))};"
                f" available: {', '.join(NAMES[name])}"
            )
        template = environment.from_string(text)
        tried = dict.fromkeys(NAMES[name], "x")
        template.render({**tried, "items": [dict.fromkeys(_ITEMS.get(name, ()), "x")]})
    except TemplateError as error:
        at = f", line {error.lineno}" if isinstance(error, TemplateSyntaxError) else ""
        raise PromptError(f"{folder}/{name}.md{at}: {error}") from error
    if not text.strip():
        raise PromptError(
            f"{folder}/{name}.md: the file is empty; write the prompt or remove the file"
        )
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
    """Yield the names and texts of the prompts in a folder. Raises `PromptError`."""
    try:
        for path in sorted(folder.iterdir()):
            if path.suffix == ".md" and path.stem != "README":
                if path.stem not in NAMES:
                    raise PromptError(f"{path}: unknown prompt; known: {', '.join(NAMES)}")
                yield path.stem, path.read_text("utf-8")
    except OSError as error:
        raise PromptError(f"{error.filename}: cannot read prompts: {error.strerror}") from error
    except UnicodeError as error:
        raise PromptError(f"{folder}: cannot read prompts: {error}") from error
