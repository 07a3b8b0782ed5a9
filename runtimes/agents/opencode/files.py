"""The database of OpenCode: sessions, messages and their parts.

It is the source of turns, words, tokens and costs. What the program waits for, and that it retries
after an error, is known from its port only: see `port`.
"""

import os
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Dollars, open_database

Millis = Annotated[float, Meta(ge=0, le=4e12)]  #: Since 1970.
#: States of a tool that has not returned.
RUNNING = ("pending", "running")


class OpenCodeCache(Struct, frozen=True):
    """Tokens read from a cache, and written to it."""

    read: Count = 0
    write: Count = 0


class OpenCodeTokens(Struct, frozen=True):
    """Tokens of one message; no number is part of another."""

    input: Count = 0
    output: Count = 0
    reasoning: Count = 0
    cache: OpenCodeCache = OpenCodeCache()

    def usage(self, cost: float) -> Usage:
        """Return them as usage. The program reports a cost of 0 if it knows no price."""
        return Usage(
            input=self.input,
            output=self.output,
            cache_read=self.cache.read,
            cache_write=self.cache.write,
            reasoning=self.reasoning,
            cost_usd=cost or None,
        )


class OpenCodeTimes(Struct, frozen=True):
    """When a message began and ended."""

    created: Millis
    completed: Millis | None = None


class OpenCodeError(Struct, frozen=True):
    """The error that ended a message."""

    name: str = ""
    data: dict[str, object] = {}


class OpenCodeMessage(Struct, frozen=True, rename="camel"):
    """`message.data`: a prompt, or a response of the model."""

    role: str
    time: OpenCodeTimes
    finish: str = ""
    cost: Dollars = 0.0
    tokens: OpenCodeTokens = OpenCodeTokens()
    model_id: str = msgspec.field(default="", name="modelID")
    error: OpenCodeError | None = None


class OpenCodeSpan(Struct, frozen=True):
    """When a part began and ended."""

    start: Millis | None = None
    end: Millis | None = None


class OpenCodeToolState(Struct, frozen=True):
    """The state of a tool call."""

    status: str = ""
    input: dict[str, object] = {}
    output: str = ""
    error: str = ""
    time: OpenCodeSpan = OpenCodeSpan()


class OpenCodePart(Struct, frozen=True):
    """`part.data`: one part of a message."""

    type: str
    text: str = ""
    time: OpenCodeSpan = OpenCodeSpan()
    tool: str = ""
    call_id: str = msgspec.field(default="", name="callID")
    state: OpenCodeToolState = OpenCodeToolState()
    tokens: OpenCodeTokens = OpenCodeTokens()
    cost: Dollars = 0.0


def to_datetime(millis: float) -> datetime:
    """Convert a time of the database."""
    return datetime.fromtimestamp(millis / 1000, UTC)


def folder(files: RunFiles) -> Path:
    """The program's data folder."""
    return files.home / ".local" / "share" / "opencode"


def database(files: RunFiles) -> Path:
    """The program's database."""
    return folder(files) / "opencode.db"


def database_files(files: RunFiles) -> tuple[str, str]:
    """The database and its write-ahead log."""
    return str(database(files)), f"{database(files)}-wal"


def fingerprint(names: tuple[str, str]) -> tuple[object, ...]:
    """Return a value that changes with every write to these files; empty without a database."""
    found: list[object] = []
    for name in names:
        try:
            status = os.lstat(name)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found += [name, status.st_ino, status.st_size, status.st_mtime_ns]
    return tuple(found)


def has_conversation(files: RunFiles, conversation: str) -> bool:
    """Whether the session's home has a conversation of this id."""
    if not conversation or not fingerprint(database_files(files)):
        return False
    try:
        with open_database(database(files)) as connection:
            row = connection.execute("select 1 from session where id = ?", (conversation,))
            return row.fetchone() is not None
    except sqlite3.Error:
        return False
