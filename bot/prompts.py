"""The messages an agent gets, made from the files of `config/prompts/`."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables

from lifecycle.actions import Prompt
from lifecycle.names import UNSPOKEN
from lifecycle.text import plain as without_controls

# What a page does not show: comments, of which one that is never closed hides all that follows,
# and references that lead nowhere and are used as comments.
_HIDDEN = re.compile(
    r"<!--[\s\S]*?(?:-->|\Z)|<!\[CDATA\[[\s\S]*?(?:\]\]>|\Z)"
    r"|^[ >*+-]*\[[^\]\n]*\]:[ \t]*(?:#|<>)[ \t]*(?:[\"'(][^\n]*)?$",
    re.MULTILINE,
)
# Markup that a page shows as it stands only where it is code: declarations and instructions, of
# which nothing is seen, and tags, which are seen by what they do. Lengths are capped, so that a
# hostile text costs linear time.
_UNSHOWN = r"<(?:![A-Za-z]|\?)[^>]*>|^[ >*+-]*<(?:![A-Za-z]|\?)[^>]*\Z|(?P<tag></?[A-Za-z][\w-]*)"
_SPACE = r"(?:[ \t\v\f]|\n(?![ \t]*\n))"
_VALUE = r"(?:\"[^\"]{0,4000}\"|'[^']{0,4000}'|[^\s\"'=<>`]+)"
# In a sentence only what is well written is a tag: `Promise<string | undefined>` is shown.
_TAG = re.compile(
    rf"{_UNSHOWN}(?P<rest>(?:{_SPACE}++[A-Za-z_:][\w.:-]*+(?:{_SPACE}*+={_SPACE}*+{_VALUE})?+)*+"
    rf"{_SPACE}*+/?)>",
    re.MULTILINE,
)
# In HTML everything is one. That begins with a line, behind what quotes and lists begin with and
# who says it, or behind a comment, and where it is over is left open.
_HTML_TAG = re.compile(
    rf"{_UNSHOWN}(?P<rest>[\s/](?:\"[^\"]{{0,4000}}\"|'[^']{{0,4000}}'|[^\"'<>])*)>", re.MULTILINE
)
_HTML = re.compile(
    r"^(?:(?:@\S{1,60}:|\[[^\]\n]{0,40}\]|\d+[.)]|[^\w\n<`])*+<(?!!--)[A-Za-z/!?]|(?>.*?-->).*<)",
    re.MULTILINE,
)
#: What people wrote on a page that shows it as Markdown; all else, such as logs, is as it stands.
_MARKDOWN = ("body", "text")
# What of a tag may matter to somebody who reads it: values of one word, as addresses are.
_PLAIN_ATTRIBUTE = re.compile(r"\s[\w:-]+=(?:\"[^\"\s]*\"|'[^'\s]*'|[^\s\"']+)|\s?/\Z")
# Signs without a shape that Unicode does not count among the formatting ones: fillers, and the
# selectors of variants, in which whole texts can be hidden.
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
_UNSEEN = ("Cc", "Cf", "Cs")
_TICKS = re.compile(r"`{3,}")
_LONGEST_FENCE = 8
#: What every message may use, and what those may beside it that are told to a session.
_ANY = ("mark", "fence", "items")
_SESSION = (*_ANY, "repository", "branch", "base_branch", "number", "title", "body")
_BEGINS = (*_SESSION, "summary", "template")
#: Every prompt there is, with the names it may use.
NAMES: Mapping[str, tuple[str, ...]] = {
    "address_review": (*_SESSION, "head", "pull"),
    "answer": (*_SESSION, "actor", "text", "question"),
    "check": _ANY,
    "fix_ci": (*_SESSION, "head", "pull", "red_on_base"),
    "held": (*_ANY, "files"),
    "merge_branch": (*_SESSION, "head", "pull"),
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
_ITEMS = {"address_review": ("where", "diff", "text"), "fix_ci": ("name", "url", "log", "notes")}
#: Of one text, and of all items of a message together, so many characters are told.
_MOST = 20_000
_LEAST_OF_ITEM = 500
_LINE = 200


class PromptFailure(Exception):
    """A prompt file cannot be used; the message names the file and what is wrong."""


class Prompts:
    """Every prompt, read, compiled and tried once. Raises `PromptFailure` for a broken file.

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
        given = {n: fit(_seen(n, text)) for n, text in {**values, **prompt.values}.items()}
        share = max(_LEAST_OF_ITEM, _MOST // max(1, len(prompt.items)))
        items = [{n: fit(_seen(n, text), share) for n, text in one.items()} for one in prompt.items]
        fence = _fence([*given.values(), *(text for item in items for text in item.values())])
        try:
            return self._templates[prompt.name].render(given, items=items, mark=mark, fence=fence)
        except TemplateError as error:
            raise PromptFailure(f"the prompt {prompt.name}: {error}") from error


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
            raise PromptFailure(
                f"{folder}/{name}.md: nothing is known of {', '.join(sorted(unknown))};"
                f" it may use {', '.join(NAMES[name])}"
            )
        template = environment.from_string(text)
        tried = dict.fromkeys(NAMES[name], "x")
        template.render({**tried, "items": [dict.fromkeys(_ITEMS.get(name, ()), "x")]})
    except TemplateError as error:
        raise PromptFailure(f"{folder}/{name}.md: {error}") from error
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
                    raise PromptFailure(
                        f"{path}: there is no such prompt; there are: {', '.join(NAMES)}"
                    )
                yield path.stem, path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise PromptFailure(f"{folder}: its prompts cannot be read: {error}") from error


def plain(text: str) -> str:
    """Text of others without what a person would not see: comments, invisible and control signs."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    visible = _SHAPELESS.sub("", _HIDDEN.sub("", without_controls(lines)))
    return "".join(
        sign for sign in visible if sign in "\n\t" or unicodedata.category(sign) not in _UNSEEN
    ).strip("\n")


def _seen(name: str, text: str) -> str:
    """A value without what its markup hides, where it is one that has any; code shows all of it."""
    if name not in _MARKDOWN:
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    unfenced = UNSPOKEN.sub(lambda code: "`" * len(code[0]) if code["fence"] else code[0], text)
    html = _HTML.search(unfenced)
    begins = html.start() if html else len(text)
    return _without(_TAG, text[:begins]) + _without(_HTML_TAG, text[begins:])


def _without(markup: re.Pattern[str], text: str) -> str:
    """What is seen of this markup, and all of what is code."""
    parts, end = list[str](), 0
    for code in UNSPOKEN.finditer(text):
        if code["fence"] or code["ticks"]:
            parts += [markup.sub(_bare, text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*parts, markup.sub(_bare, text[end:])])


def _bare(markup: re.Match[str]) -> str:
    """A tag with its plain attributes alone; nothing of what else there is."""
    if not markup["tag"]:
        return ""
    return f"{markup['tag']}{''.join(_PLAIN_ATTRIBUTE.findall(markup['rest']))}>"


def fit(text: str, most: int = _MOST) -> str:
    """Plain text of at most `most` characters, without runs of backticks that make a fence long."""
    told = _TICKS.sub(lambda run: run[0][:_LONGEST_FENCE], plain(text))
    if len(told) <= most:
        return told
    return f"{told[:most]}\n[{len(told) - most} more characters are left out here]"


def one_line(text: str) -> str:
    """Text that stands outside a fence: it cannot begin a line of its own."""
    return " ".join(text.split())[:_LINE]


def _fence(texts: list[str]) -> str:
    """A fence longer than any inside, so that no text can close it."""
    longest = max((len(found) for text in texts for found in _TICKS.findall(text)), default=2)
    return "`" * max(3, longest + 1)
