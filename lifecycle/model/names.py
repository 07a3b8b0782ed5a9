"""The bot's name as people write it, and whether they are talking to it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

NAME = "mergewright"
#: The label that calls people to an issue.
CALLS_PEOPLE = f"{NAME}:needs-input"
#: The label that stops every effect on an issue's session.
FREEZES = f"{NAME}:freeze"
#: How the labels begin that show a status.
SHOWS_STATUS = f"{NAME}/"

#: What a reader does not take for speech: code in fences or tags, hidden comments, code spans. The
#: length of a span's ticks is capped so that a hostile text costs linear time.
UNSPOKEN = re.compile(
    r"^\ {0,3}(?P<item>(?:(?:[-+*]|\d{1,9}[.)])\ {1,4})+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?"
    r"(?:^(?(item)\ *|\ {0,3})(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|^\ {0,3}<pre(?=[\s>]).*?(?:</pre>|\Z)"
    r"|(?P<hidden><!--.*?(?:-->|\Z))"
    r"|(?<!`)(?P<ticks>`{1,8})(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


class _Patterns(NamedTuple):
    """What is looked for in a text."""

    named: re.Pattern[str]  #: The bot's name, wherever it stands.
    address: re.Pattern[str]  #: A line that is said to the bot.
    end: re.Pattern[str]  #: Where a message to it is over.


class Said(Struct, frozen=True):
    """One thing that was said to the bot."""

    line: str  #: What follows its name in the line; code in it is not told.
    #: The same with what follows it, code included, up to a blank line or the bot's name.
    paragraph: str
    mention: bool = False  #: Whether it was called by `@`, as a person is.


def said_to_the_bot(text: str, slug: str = "") -> tuple[Said, ...]:
    """What is said to the bot, in every line that begins with its name.

    A line begins with `/mergewright` or `@mergewright`, or so with the App's `slug`, as in
    `@acme-bot` or `@acme-bot[bot]`; indented by three blanks at most. Quotes, code and hidden
    comments are not speech.
    """
    return tuple(_said(text.replace("\r\n", "\n"), _patterns(slug)))


def addresses_bot(text: str, slug: str = "") -> bool:
    """Whether any line of a text is said to the bot, and so is no message to an agent."""
    # Most texts do not name it at all.
    return _patterns(slug).named.search(text) is not None and bool(said_to_the_bot(text, slug))


@lru_cache(maxsize=8)
def _patterns(slug: str) -> _Patterns:
    names = "|".join(map(re.escape, filter(None, (NAME, slug))))
    to_the_bot = rf"^ {{0,3}}[/@](?:{names})(?:\[bot\])?(?![\w/-])"
    return _Patterns(
        named=re.compile(names, re.IGNORECASE),
        address=re.compile(rf"{to_the_bot}[:,]?(.*)$", re.MULTILINE | re.IGNORECASE),
        end=re.compile(rf"^[ \t]*$|{to_the_bot}", re.MULTILINE | re.IGNORECASE),
    )


def _said(text: str, patterns: _Patterns) -> Iterator[Said]:
    # What is not speech is covered, so that a place in one text is the same place in the other;
    # it has no blank lines there, and so cannot end a paragraph.
    spoken = UNSPOKEN.sub(lambda match: "`" * len(match[0]), text)
    shown = UNSPOKEN.sub(lambda match: "\0" * len(match[0]) if match["hidden"] else match[0], text)
    for address in patterns.address.finditer(spoken):
        end = patterns.end.search(spoken, address.end(1) + 1)
        paragraph = shown[address.start(1) : end.start() if end else len(text)]
        mention = address[0].lstrip().startswith("@")
        yield Said(address[1].strip(), paragraph.replace("\0", "").strip(), mention)
