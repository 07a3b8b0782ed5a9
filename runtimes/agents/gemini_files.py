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
#: What stands below a field for words in a dialog, and where that field begins.
_SUBMITS = re.compile(r"^[│ ]*\W*(Press )?Enter to submit\W+Esc to cancel", re.MULTILINE)
_FIELD = re.compile(r"^│ +(> |╭)", re.MULTILINE)
_TOP = re.compile(r"^ ?╭", re.MULTILINE)  #: Of a dialog.
_BOX = re.compile(r"^ [>*!] +(.*)", re.MULTILINE)
_EMPTY = "Type your message or @path/to/file"  #: What it shows in an empty box.
LIMITED = "Usage limit reached"  #: How a dialog begins that offers to try again in vain.
ASKED = "Answer Questions"  #: How those begin in which it asks people.
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

    Its choices are the last that begin with 1, one of them marked; it may ask for words instead.
    While it is open there is no box for a message below it.
    """
    found = list(_CHOICE.finditer(screen))
    first = max((place for place, one in enumerate(found) if one[2] == "1"), default=0)
    found = found[first:]
    if any(one[1] for one in found):
        above, below = screen[: found[0].start()], screen[found[-1].end() :]
        return ("", ()) if _BOX.search(below) else (_said(above), tuple(one[3] for one in found))
    field = _SUBMITS.search(screen)
    if field is None or _BOX.search(screen, field.end()):
        return "", ()
    return _said(screen[: field.start()], until=_FIELD), ()


def _said(above: str, until: re.Pattern[str] | None = None) -> str:
    """The words of a dialog's upper part, from its top."""
    inside = _TOP.split(above)[-1]
    inside = until.split(inside)[0] if until else inside
    lines = (line.strip("─╭╮╰╯│ ").removeprefix("? ") for line in inside.splitlines())
    return " ".join(filter(None, lines))


def typed(screen: str) -> str:
    """The first words in the box for the next message: the last of those that look like one."""
    boxes = _BOX.findall(screen)
    words = boxes[-1].strip() if boxes else ""
    return "" if words == _EMPTY else words
