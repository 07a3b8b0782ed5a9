"""Where Gemini CLI keeps what it says of itself, and what of it is used.

It appends to a transcript (`tmp/*/chats/session-*-ID.jsonl`, of which a resumed conversation may
have two).
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count
from runtimes.agents.shared.forms import Ask, Page, asks_in, form, place_of
from runtimes.agents.shared.hooks import Hook, last
from runtimes.agents.shared.questions import Dialog, on_screen

_CHOICE = re.compile(r"^(● )?(\d)\. +(.+)$", re.MULTILINE)
#: What stands below the field of a dialog that asks for words, and how that field begins.
_SUBMITS = re.compile(r"\(?(?:Press )?Enter to submit\W+Esc to cancel")
_FIELD = re.compile(r"│ (?:> |╭)")
_BOX = re.compile(r"^ [>*!] +(.*)", re.MULTILINE)
_EMPTY = "Type your message or @path/to/file"  #: What it shows in an empty box.
LIMITED = "Usage limit reached"  #: How a dialog begins that offers to try again in vain.
#: The box of its questions.
_FORM = re.compile(r"╭─+╮\n│ Answer Questions +│\n(.*?)╰", re.DOTALL)
#: What follows the words of a question.
_ANSWER = re.compile(r"^(\(Select all that apply\)|▲|● 1\.|1\.|>)", re.MULTILINE)
#: The choice of its questions that is none of them, and the one that ends the ticking.
_OWN_WORDS, _DONE = "Enter a custom value", "●  Done"
#: Where a question is answered in words alone: what is in its field, and in an empty one.
_WORDS = re.compile(r"^> (.*)\nEnter to submit ", re.MULTILINE | re.DOTALL)
_NO_WORDS = "Enter your response"
#: The answers it is about to send, each in a line.
_REVIEW = re.compile(
    r"^Review your answers:\n(?:⚠ [^\n]*\n)?(.*)\nEnter ", re.MULTILINE | re.DOTALL
)
_Time = Annotated[datetime, Meta(tz=True)]


class Payload(Struct, frozen=True):
    """What a hook is given."""

    session_id: str
    hook_event_name: str
    timestamp: _Time
    tool_name: str = ""
    tool_input: object = None
    notification_type: str = ""


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


def dialog(files: RunFiles, screen: str) -> Dialog:
    """What its screen asks: questions in their box, or leave."""
    if shows := questions_on(screen):
        asked = last(files, "BeforeTool", Hook[Payload])
        asks = asks_in(asked.hook.tool_input) if asked else ()
        page = _page(shows, asks)
        return form(str(asked.hook.timestamp), asks, page) if asked and page else Dialog()
    above, choices = leave_on(screen)
    # What takes words takes a key, if anything: nobody is to write one into a comment.
    return on_screen(above, choices) if choices else Dialog()


def leave_on(screen: str) -> tuple[str, tuple[str, ...]]:
    """What a dialog that is open says above its choices, and these; empty where none is open.

    Its choices are the last that begin with 1, one of them marked; it may ask for words instead.
    It stands below all that looks like the box for a message: while it is open there is none.
    """
    lines = screen.splitlines()
    box = max((place for place, line in enumerate(lines) if _BOX.match(line)), default=-1)
    lines = [line.strip() for line in lines[box + 1 :]]
    top = max((place for place, line in enumerate(lines) if line.startswith("╭")), default=None)
    if top is None:
        return "", ()
    inside = [line.strip("─╭╮╰╯│ ").removeprefix("? ") for line in lines[top:]]
    found = [_CHOICE.fullmatch(line) for line in inside]
    first = max((place for place, one in enumerate(found) if one and one[2] == "1"), default=0)
    choices = [one for one in found[first:] if one]
    if any(one[1] for one in choices):
        return _said(inside[:first]), tuple(one[3] for one in choices)
    if not any(map(_SUBMITS.match, inside)):
        return questions_on(screen), ()
    field = next((place for place, line in enumerate(lines[top:]) if _FIELD.match(line)), 0)
    return _said(inside[:field]), ()


def _said(lines: Iterable[str]) -> str:
    return " ".join(filter(None, lines))


def questions_on(screen: str) -> str:
    """What the box of its questions holds; empty: it is not open."""
    boxes = list(_FORM.finditer(screen))
    if not boxes or _BOX.search(screen, boxes[-1].end()):
        return ""
    return "\n".join(filter(None, (line.strip("│ ") for line in boxes[-1][1].splitlines())))


def _page(shows: str, asks: Sequence[Ask]) -> Page | None:
    """What it shows of its questions; None: of none of these."""
    if review := _REVIEW.search(shows):
        rows = tuple(line.partition(" → ")[2] for line in review[1].splitlines())
        # Of an answer that is wrapped, nobody can tell what belongs to it.
        return Page(at=None, shows=shows, said=rows if all(rows) else (), on=("Enter",))
    said = _ANSWER.split(shows)[0]
    at = place_of(said.rpartition("Review →\n")[2], asks)
    if at is None:
        return None
    if field := _WORDS.search(shows):
        empty = field[1] in (asks[at].placeholder, _NO_WORDS)
        return Page(at=at, shows=shows, own=(), typed="" if empty else field[1])
    found = {int(one[2]): one[3] for one in _CHOICE.finditer(shows)}
    number = len(asks[at].labels) + 1
    own = found.get(number, _OWN_WORDS)
    return Page(
        at=at,
        shows=shows,
        marked=next((int(one[2]) for one in _CHOICE.finditer(shows) if one[1]), 0),
        ticks={place: label.startswith("[x]") for place, label in found.items()},
        own=(str(number),),
        typed="" if own == _OWN_WORDS else own,
        on=("Enter",) if _DONE in shows else ("Down",),
    )


def typed(screen: str) -> str:
    """The first words in the box for the next message: the last of those that look like one."""
    boxes = _BOX.findall(screen)
    words = boxes[-1].strip() if boxes else ""
    return "" if words == _EMPTY else words
