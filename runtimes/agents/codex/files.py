"""Where Codex keeps what it says of itself, and what of it is used.

It appends everything said and done to a rollout (`sessions/YYYY/MM/DD/rollout-*-ID.jsonl`, made at
the first prompt) and calls hooks. Turns, words and tokens come from the rollout; what it asks leave
for, and the name of its conversation, only from hooks; whether leave was given, from its screen.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Raw, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Seconds
from runtimes.agents.shared.forms import Ask, Page, asks_in, form, place_of
from runtimes.agents.shared.hooks import Hook, last
from runtimes.agents.shared.questions import Dialog, on_screen

#: The last line of every dialog.
_FOOT = re.compile(r"Press enter to |enter \w+ · esc ")
_CHOICE = re.compile(r"(?:› )?(\d)\. (.+)")
#: Of its questions: the line above each, its choices, and what is in the last line.
_COUNT = re.compile(r"^ *Question \d+/\d+ \(\d+ unanswered\)$", re.MULTILINE)
_OPTION = re.compile(r"^ *(› )?(\d)\. ", re.MULTILINE)
_QUESTION_FOOT = " | esc to interrupt"
_BOX = re.compile(r"^› ?(.*)", re.MULTILINE)
#: `• Reconnecting... 2/5 (3s • ...)`, and below it the error after which it tries again.
_RETRIES = re.compile(r"^[•◦] .*reconnecting\S* \d.*\n *└ (.+)", re.MULTILINE | re.IGNORECASE)
_EMPTY = "Ask Codex to do anything"  #: What it shows in an empty box.


class Payload(Struct, frozen=True):
    """What a hook is given."""

    session_id: str
    hook_event_name: str
    turn_id: str = ""
    tool_name: str = ""
    tool_input: object = None
    tool_use_id: str = ""


class Record(Struct, frozen=True):
    """One line of the rollout."""

    timestamp: Annotated[datetime, Meta(tz=True)]
    type: str
    payload: Raw


class Failure(Struct, frozen=True):
    """What ended a turn."""

    message: str = ""
    codex_error_info: object = None  #: A word, or a word with `http_status_code`.

    @property
    def word(self) -> str:
        """What kind of error it is."""
        info = self.codex_error_info
        return next(iter(info), "") if isinstance(info, dict) else str(info)

    @property
    def code(self) -> object:
        """The answer's HTTP status, where it had one."""
        info = self.codex_error_info
        more = info.get(self.word) if isinstance(info, dict) else None
        return more.get("http_status_code") if isinstance(more, dict) else None


class Tokens(Struct, frozen=True):
    """What was used; what was cached and reasoned is part of the others."""

    input_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_write_input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_output_tokens: Count = 0


class Context(Struct, frozen=True):
    """What a turn begins with: the payload of a `turn_context`."""

    model: str = ""


class Spent(Struct, frozen=True):
    """What one answer used: the payload of a `token_usage_record`."""

    response_id: str
    usage: Tokens


class Window(Struct, frozen=True):
    """One usage limit of a subscription."""

    used_percent: float = 0.0
    resets_at: Seconds | None = None


class Limits(Struct, frozen=True):
    """The usage limits it was told of."""

    primary: Window | None = None
    secondary: Window | None = None


class Event(Struct, frozen=True):
    """What happened: the payload of an `event_msg`."""

    type: str
    turn_id: str = ""
    last_agent_message: str | None = None
    error: Failure | None = None
    rate_limits: Limits | None = None


class Item(Struct, frozen=True):
    """What was said or done: the payload of a `response_item`."""

    type: str
    call_id: str = ""
    name: str = ""
    arguments: object = None


def used(tokens: Tokens) -> Usage:
    """What an answer used. It tells no price."""
    cached, written = tokens.cached_input_tokens, tokens.cache_write_input_tokens
    return Usage(
        input=max(0, tokens.input_tokens - cached - written),
        output=max(0, tokens.output_tokens - tokens.reasoning_output_tokens),
        cache_read=cached,
        cache_write=written,
        reasoning=tokens.reasoning_output_tokens,
    )


def folder(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".codex"


def rollout(files: RunFiles, native: str) -> Path | None:
    """The rollout of a conversation, where there is one."""
    found = (folder(files) / "sessions").glob(f"*/*/*/rollout-*-{native}.jsonl") if native else ()
    return next(iter(found), None)


def dialog(files: RunFiles, screen: str) -> Dialog:
    """What its screen asks: one of its questions below their count, or leave."""
    if counts := list(_COUNT.finditer(screen)):
        asked = last(files, "PreToolUse", Hook[Payload])
        asks = asks_in(asked.hook.tool_input) if asked else ()
        page = _page(screen[counts[-1].end() :], asks)
        return form(asked.hook.tool_use_id, asks, page) if asked and page else Dialog()
    above, choices = leave_on(screen)
    return on_screen(above, choices) if choices else Dialog()


def _page(shows: str, asks: Sequence[Ask]) -> Page | None:
    """What it shows of its questions; None: of none of these, or they are not open any more.

    Words of one's own it takes only as notes.
    """
    found = list(_OPTION.finditer(shows))
    marked = [int(one[2]) for one in found if one[1]]
    at = place_of(shows[: found[0].start()], asks) if marked and _QUESTION_FOOT in shows else None
    return None if at is None else Page(at=at, shows=shows, marked=marked[0])


def leave_on(screen: str) -> tuple[str, tuple[str, ...]]:
    """What a dialog that is open says above its choices, and these; empty where none is open."""
    lines = [line.strip() for line in screen.strip().splitlines()]
    if not lines or not _FOOT.match(lines[-1]):
        return "", ()
    found = [_CHOICE.fullmatch(line) for line in lines]
    # What it asks about may hold numbers too: the choices are the last that begin with 1.
    first = max((place for place, one in enumerate(found) if one and one[1] == "1"), default=None)
    if first is None:
        return lines[-1], ()
    above = "\n".join(lines[:first]).strip().split("\n\n")[-1].replace("\n", " ")
    return above, tuple(one[2] for one in found[first:] if one)


def retried(screen: str) -> str:
    """The error after which its screen says that it tries again; empty: it does not."""
    found = _RETRIES.search(screen)
    return found[1] if found else ""


def typed(screen: str) -> str:
    """The first words in the box for the next message: the last of those that look like one."""
    boxes = _BOX.findall(screen)
    words = boxes[-1].strip() if boxes else ""
    return "" if words == _EMPTY else words
