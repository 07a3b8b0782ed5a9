"""What a comment command is: a word, and what it asks for. Carrying it out is not its business."""

import re
from collections.abc import Callable

from msgspec import Struct

_AGENT = re.compile(r"[A-Za-z0-9][\w.-]{0,38}")


class Unfit(ValueError):
    """What was written after a command is none of what it takes; the message says what it does."""


def nothing(text: str) -> str:
    """For commands that take nothing."""
    if text:
        raise Unfit("takes nothing after it")
    return ""


def message(text: str) -> str:
    """For commands that take a message."""
    if not text:
        raise Unfit("needs a text after it, up to the end of the paragraph")
    return text


def agent_name(text: str) -> str:
    """For commands that take the name of an agent; empty: as the configuration says."""
    if text and not _AGENT.fullmatch(text):
        raise Unfit("takes nothing or the name of one agent after it")
    return text


class CommandSyntax(Struct, frozen=True, kw_only=True):
    """One word people can say to the bot."""

    name: str
    asks: str  #: What saying it does, for the list in the help.
    takes: str = ""  #: How what it takes is written in that list; empty: nothing.
    #: Turns what was written after it into what its command says. Raises `Unfit`.
    read: Callable[[str], str] = nothing
    whole: bool = False  #: Whether it takes all up to the end of the paragraph, not of the line.


class Parsed(Struct, frozen=True, kw_only=True):
    """One command found in a comment."""

    name: str  #: A name in COMMANDS.
    text: str = ""  #: What it takes; for `help`: the answer.
