"""The messages an agent gets, made from the files of `config/prompts/`."""

import re
import unicodedata
from collections.abc import Mapping
from importlib import resources

from jinja2 import Environment, StrictUndefined, TemplateError

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
_MARKUP = re.compile(
    r"<(?:![A-Za-z]|\?)[^>]*>|^[ >*+-]*<(?:![A-Za-z]|\?)[^>]*\Z"
    r"|(?P<tag></?[A-Za-z][\w-]*)"
    r"(?P<rest>[\s/](?:\"[^\"]{0,4000}\"|'[^']{0,4000}'|[^\"'<>])*)>",
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
#: Of one text, and of all items of a message together, so many characters are told.
_MOST = 20_000
_LEAST_OF_ITEM = 500
_LINE = 200


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
        environment.filters["line"] = one_line
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
        given = {n: fit(_seen(n, text)) for n, text in {**values, **prompt.values}.items()}
        share = max(_LEAST_OF_ITEM, _MOST // max(1, len(prompt.items)))
        items = [{n: fit(_seen(n, text), share) for n, text in one.items()} for one in prompt.items]
        fence = _fence([*given.values(), *(text for item in items for text in item.values())])
        try:
            return self._templates[prompt.name].render(given, items=items, mark=mark, fence=fence)
        except TemplateError as error:
            raise PromptFailure(f"config/prompts/{prompt.name}.md: {error}") from error


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
    text, parts, end = text.replace("\r\n", "\n"), list[str](), 0
    for code in UNSPOKEN.finditer(text):
        if code["fence"] or code["ticks"]:
            parts += [_MARKUP.sub(_bare, text[end : code.start()]), code[0]]
            end = code.end()
    return "".join([*parts, _MARKUP.sub(_bare, text[end:])])


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
