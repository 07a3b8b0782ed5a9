"""Cleans text from people and programs, and puts it into fences, for messages to agents."""

import re
import unicodedata

from lifecycle.model.text import plain

#: Invisible characters that are in none of the categories in `_UNSEEN`: fillers, and variation
#: selectors, in which whole texts can be hidden.
_SHAPELESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2028\u2029\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
#: Unicode categories of invisible characters: control, format, surrogate.
_UNSEEN = ("Cc", "Cf", "Cs")
_TICKS = re.compile(r"`{3,}")
_MAX_TICKS = 8
_MAX_LINE = 200


def printable(text: str) -> str:
    """Remove invisible characters, terminal sequences, and newlines at both ends.

    Tabs and other newlines are kept.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    shown = _SHAPELESS.sub("", plain(lines))
    return "".join(
        sign for sign in shown if sign in "\n\t" or unicodedata.category(sign) not in _UNSEEN
    ).strip("\n")


def fit(text: str, most: int) -> str:
    """Return the first `most` characters of printable text, with a note on how many were left out.

    Runs of backticks are shortened to eight, so that no text needs a long fence.
    """
    shown = _TICKS.sub(lambda run: run[0][:_MAX_TICKS], printable(text))
    if len(shown) <= most:
        return shown
    return f"{shown[:most]}\n[{len(shown) - most} more characters are left out here]"


def one_line(text: str) -> str:
    """Return text as one line of at most 200 characters, for use outside a fence."""
    return " ".join(text.split())[:_MAX_LINE]


def fence(texts: list[str]) -> str:
    """Return a fence of backticks that is longer than any in these texts, so none closes it."""
    longest = max((len(found) for text in texts for found in _TICKS.findall(text)), default=2)
    return "`" * max(3, longest + 1)
