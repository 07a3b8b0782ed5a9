"""The database of OpenCode: sessions, messages and their parts.

The database is the source of turns, texts, tokens and costs. Only the program's port (`port.py`)
tells what the program waits for and whether it retries after an error.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from lifecycle.model.facts import Usage
from lifecycle.model.times import from_seconds
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.databases import open_database
from runtimes.agents.shared.files import Count, Dollars, decode_json
from runtimes.agents.shared.messages import Message, MessageKind, as_text

Millis = Annotated[float, Meta(ge=0, le=4e12)]  #: Milliseconds since 1970.
#: States of a tool that has not returned.
RUNNING = ("pending", "running")
_BATCH = 200  #: Parts read at once.
#: The parts after a position, in order; `~` sorts after the parts of a message and marks its end.
_PARTS_AFTER = """
with root as (
    select message.* from message join session on session.id = message.session_id
    where session.parent_id is null
), parts as (
    select message_id, id, data from part union all select id, '~', '{"type": "end"}' from root
)
select root.time_created, root.id, parts.id, parts.data, root.data,
    root.id = (select id from root order by time_created desc, id desc limit 1)
from parts join root on root.id = parts.message_id
where (root.time_created, root.id, parts.id) > (?, ?, ?)
order by root.time_created, root.id, parts.id limit ?
"""


class OpenCodeCache(Struct, frozen=True):
    """Tokens read from a cache, and written to it."""

    read: Count = 0
    write: Count = 0


class OpenCodeTokens(Struct, frozen=True):
    """Tokens of one message or part; no number includes another."""

    input: Count = 0
    output: Count = 0
    reasoning: Count = 0
    cache: OpenCodeCache = OpenCodeCache()

    def usage(self, cost: float) -> Usage:
        """Convert to `Usage`. A `cost` of 0 becomes None: the program knows no price then."""
        return Usage(
            input=self.input,
            output=self.output,
            cache_read=self.cache.read,
            cache_write=self.cache.write,
            reasoning=self.reasoning,
            cost_usd=cost or None,
        )


class OpenCodeTimes(Struct, frozen=True):
    """When a message began and ended (`created`, `completed`), or a part (`start`, `end`)."""

    created: Millis = 0.0
    completed: Millis | None = None
    start: Millis | None = None
    end: Millis | None = None


class OpenCodeError(Struct, frozen=True):
    """The error that ended a message."""

    name: str = ""
    data: dict[str, object] = {}


class OpenCodeMessage(Struct, frozen=True, rename="camel"):
    """The JSON in the column `message.data`: a prompt, or a response of the model."""

    role: str
    time: OpenCodeTimes
    finish: str = ""
    cost: Dollars = 0.0
    tokens: OpenCodeTokens = OpenCodeTokens()
    model_id: str = msgspec.field(default="", name="modelID")
    error: OpenCodeError | None = None


class OpenCodeToolState(Struct, frozen=True):
    """The state of a tool call."""

    status: str = ""
    input: dict[str, object] = {}
    output: str = ""
    error: str = ""
    time: OpenCodeTimes = OpenCodeTimes()


class OpenCodePart(Struct, frozen=True):
    """The JSON in the column `part.data`: one part of a message."""

    type: str
    text: str = ""
    time: OpenCodeTimes = OpenCodeTimes()
    tool: str = ""
    call_id: str = msgspec.field(default="", name="callID")
    state: OpenCodeToolState = OpenCodeToolState()
    tokens: OpenCodeTokens = OpenCodeTokens()
    cost: Dollars = 0.0


def to_datetime(millis: float) -> datetime:
    """Convert a time of the database, in milliseconds since 1970."""
    return from_seconds(millis / 1000)


def database(files: RunFiles) -> Path:
    """Return the path of the program's database."""
    return files.home / ".local/share/opencode/opencode.db"


def database_files(files: RunFiles) -> tuple[str, str]:
    """Return the paths of the database and its write-ahead log."""
    return str(database(files)), f"{database(files)}-wal"


def fingerprint(names: tuple[str, str]) -> tuple[object, ...]:
    """Return a value that changes with every write to these files; empty without a database."""
    found: list[object] = []
    for name in names:
        with suppress(OSError):
            status = os.lstat(name)
            found += [name, status.st_ino, status.st_size, status.st_mtime_ns]
    return tuple(found)


def query(files: RunFiles, sql: str, *values: object) -> Sequence[tuple[Any, ...]] | None:
    """Return the rows that a query finds, or None if the database cannot be read."""
    try:
        with open_database(database(files)) as connection:
            return connection.execute(sql, values).fetchall()
    except sqlite3.Error:
        return None


class OpenCodeMessageReader:
    """Reads the messages of a session's conversations, without those of subagents."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._database_files = database_files(files)
        #: Position of the last part that was returned completely.
        self._position: tuple[float, str, str] = (0, "", "")
        #: Id of the last part whose tool call was returned; its result may still be missing.
        self._called = ""
        self._exhausted: tuple[object, ...] = ()  #: Fingerprint when there were no more messages.

    def new(self) -> list[Message]:
        state = fingerprint(self._database_files)
        found: list[Message] = []
        while state and state != self._exhausted and not found:
            rows = query(self._files, _PARTS_AFTER, *self._position, _BATCH)
            if rows is None:
                break
            position = self._position
            found = list(self._messages(rows))
            if self._position == position:
                self._exhausted = state
        return found

    def _messages(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[Message]:
        for created, name, part_name, part_data, data, last in rows:
            message = decode_json(data, OpenCodeMessage)
            part = decode_json(part_data, OpenCodePart)
            if message is not None and part is not None:
                over = not last or message.time.completed is not None
                answer = name if message.role == "assistant" else ""
                for found in self._from_part(message, part, part_name, over):
                    yield replace(found, answer=answer, model=message.model_id)
                if not over and _is_growing(message, part):
                    return
            self._position = (created, name, part_name)

    def _from_part(
        self, message: OpenCodeMessage, part: OpenCodePart, name: str, over: bool
    ) -> Iterator[Message]:
        at = to_datetime(part.time.start or message.time.created)
        end = to_datetime(message.time.completed or message.time.created)
        match part.type:
            case "text" if message.role == "user":
                yield Message(kind=MessageKind.PROMPT, text=part.text, at=at)
            case "text" | "reasoning" if over or part.time.end:
                kind = MessageKind.ANSWER if part.type == "text" else MessageKind.THOUGHT
                yield Message(kind=kind, text=part.text, at=at)
            case "tool":
                yield from self._from_tool(part, name, at, over)
            case "step-finish":
                yield Message(kind=MessageKind.USAGE, used=part.tokens.usage(part.cost), at=end)
            case "end" if message.error is not None:
                text = str(message.error.data.get("message") or message.error.name)
                yield Message(kind=MessageKind.NOTE, text=text, at=end)

    def _from_tool(
        self, part: OpenCodePart, name: str, at: datetime, over: bool
    ) -> Iterator[Message]:
        """Yield the call once, and the result when the tool has returned or its message is over."""
        state, span = part.state, part.state.time
        began = to_datetime(span.start) if span.start else at
        if self._called != name:
            self._called = name
            made = Message(kind=MessageKind.CALL, text=as_text(state.input), at=began)
            yield replace(made, tool=part.tool, call=part.call_id)
        if over or state.status not in RUNNING:
            ended = to_datetime(span.end) if span.end else began
            text = state.output or state.error
            yield Message(kind=MessageKind.RESULT, call=part.call_id, text=text, at=ended)


def _is_growing(message: OpenCodeMessage, part: OpenCodePart) -> bool:
    """Whether a part may still change. Call this only if its message has not ended."""
    match part.type:
        case "tool":
            return part.state.status in RUNNING
        case "text" | "reasoning":
            return message.role != "user" and part.time.end is None
    return part.type == "end"
