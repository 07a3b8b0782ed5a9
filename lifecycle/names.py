"""The bot's name as people write it, and whether they are talking to it."""

import re
from collections.abc import Iterator

from msgspec import Struct

NAME = "mergewright"
#: The label that calls people to an issue.
CALLS_PEOPLE = f"{NAME}:needs-input"
#: The label that stops every effect on an issue's session.
FREEZES = f"{NAME}:freeze"
#: How the labels begin that show a status.
SHOWS_STATUS = f"{NAME}/"

# What a reader does not take for speech: code in fences or tags, hidden comments, code spans. The
# length of a span's ticks is capped so that a hostile text costs linear time.
_UNSPOKEN = re.compile(
    r"^\ {0,3}(?P<item>(?:(?:[-+*]|\d{1,9}[.)])\ {1,4})+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?"
    r"(?:^(?(item)\ *|\ {0,3})(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|^\ {0,3}<pre(?=[\s>]).*?(?:</pre>|\Z)"
    r"|(?P<hidden><!--.*?(?:-->|\Z))"
    r"|(?<!`)(?P<ticks>`{1,8})(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_NAMED = re.compile(NAME, re.IGNORECASE)
_TO_THE_BOT = rf"^ {{0,3}}[/@]{NAME}(?![\w/-])"
_ADDRESS = re.compile(rf"{_TO_THE_BOT}[:,]?(.*)$", re.MULTILINE | re.IGNORECASE)
_END = re.compile(rf"^[ \t]*$|{_TO_THE_BOT}", re.MULTILINE | re.IGNORECASE)


class Said(Struct, frozen=True):
    """One thing that was said to the bot."""

    line: str  #: What follows its name in the line; code in it is not told.
    #: The same with what follows it, code included, up to a blank line or the bot's name.
    paragraph: str
    mention: bool = False  #: Whether it was called by `@`, as a person is.


def said_to_the_bot(text: str) -> tuple[Said, ...]:
    """What is said to the bot, in every line that begins with its name.

    A line begins with `/mergewright` or `@mergewright`, indented by three blanks at most. Quotes,
    code and hidden comments are not speech.
    """
    return tuple(_said(text.replace("\r\n", "\n")))


def addresses_bot(text: str) -> bool:
    """Whether any line of a text is said to the bot, and so is no message to an agent."""
    # Most texts do not name it at all, and this is asked of every remark at every visit.
    return _NAMED.search(text) is not None and bool(said_to_the_bot(text))


def _said(text: str) -> Iterator[Said]:
    # What is not speech is covered, so that a place in one text is the same place in the other;
    # it has no blank lines there, and so cannot end a paragraph.
    spoken = _UNSPOKEN.sub(lambda match: "`" * len(match[0]), text)
    shown = _UNSPOKEN.sub(lambda match: "\0" * len(match[0]) if match["hidden"] else match[0], text)
    for address in _ADDRESS.finditer(spoken):
        end = _END.search(spoken, address.end(1) + 1)
        paragraph = shown[address.start(1) : end.start() if end else len(text)]
        mention = address[0].lstrip().startswith("@")
        yield Said(address[1].strip(), paragraph.replace("\0", "").strip(), mention)
