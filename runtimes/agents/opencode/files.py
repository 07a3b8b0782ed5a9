"""Where OpenCode keeps what it says of itself, and what of it is used.

It keeps sessions, messages and their parts in a database, and answers on a port of its own, behind
a password. Turns, words, tokens and costs come from the database; what it waits for, and that it
tries again after an error, only from the port.
"""

import http.client
import os
import sqlite3
import stat
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.databases import reading
from runtimes.agents.shared.files import Count, Dollars, read_text, understood

_Millis = Annotated[float, Meta(ge=0, le=4e12)]
_ANSWER_SECONDS = 1.0  #: It answers in milliseconds, but for the first time.
_ANSWER_BYTES = 1024 * 1024
#: A tool in one of these has not returned.
RUNNING = ("pending", "running")


class Server(Struct, frozen=True):
    """Where a run answers: written before its program starts."""

    port: int
    password: str


class Cache(Struct, frozen=True):
    """Tokens that were read from a cache, and written to it."""

    read: Count = 0
    write: Count = 0


class Tokens(Struct, frozen=True):
    """What one message used; none of it is part of another."""

    input: Count = 0
    output: Count = 0
    reasoning: Count = 0
    cache: Cache = Cache()


class Times(Struct, frozen=True):
    """When a message began and ended."""

    created: _Millis
    completed: _Millis | None = None


class Failure(Struct, frozen=True):
    """What ended a message."""

    name: str = ""
    data: dict[str, object] = {}


class Message(Struct, frozen=True, rename="camel"):
    """What was said, by whom and at what expense."""

    role: str
    time: Times
    finish: str = ""
    cost: Dollars = 0.0
    tokens: Tokens = Tokens()
    model_id: str = msgspec.field(default="", name="modelID")
    error: Failure | None = None


class Span(Struct, frozen=True):
    """When a part began and ended."""

    start: _Millis | None = None
    end: _Millis | None = None


class State(Struct, frozen=True):
    """How far a tool is."""

    status: str = ""
    input: dict[str, object] = {}
    output: str = ""
    error: str = ""
    time: Span = Span()


class Part(Struct, frozen=True):
    """One part of a message."""

    type: str
    text: str = ""
    time: Span = Span()
    tool: str = ""
    call_id: str = msgspec.field(default="", name="callID")
    state: State = State()
    tokens: Tokens = Tokens()
    cost: Dollars = 0.0


class Leave(Struct, frozen=True):
    """Leave it asks for."""

    id: str = ""
    permission: str = ""
    patterns: tuple[str, ...] = ()
    metadata: dict[str, object] = {}


class Question(Struct, frozen=True):
    """What it asks people."""

    id: str = ""
    questions: object = None


class Status(Struct, frozen=True):
    """What it does: `busy`, or `retry` after an error, which it never gives up."""

    type: str = ""
    attempt: int = 0
    message: str = ""
    next: _Millis = 0.0


def used(tokens: Tokens, cost: float) -> Usage:
    """What an answer used. It knows no price where tokens cost nothing."""
    return Usage(
        input=tokens.input,
        output=tokens.output,
        cache_read=tokens.cache.read,
        cache_write=tokens.cache.write,
        reasoning=tokens.reasoning,
        cost_usd=cost or None,
    )


def time(millis: float) -> datetime:
    """A time as it writes it down."""
    return datetime.fromtimestamp(millis / 1000, UTC)


def data(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".local" / "share" / "opencode"


def database(files: RunFiles) -> Path:
    """Its database."""
    return data(files) / "opencode.db"


def server(files: RunFiles) -> Path:
    """Where a run's `Server` is written down."""
    return files.dir / "opencode-server.json"


def written(files: RunFiles) -> tuple[str, str]:
    """The files the database is kept in."""
    return str(database(files)), f"{database(files)}-wal"


def changed(names: tuple[str, str]) -> tuple[object, ...]:
    """What differs once anything was written to a database in these files."""
    found: list[object] = []
    for name in names:
        try:
            status = os.lstat(name)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found += [name, status.st_ino, status.st_size, status.st_mtime_ns]
    return tuple(found)


def knows(files: RunFiles, conversation: str) -> bool:
    """Whether a conversation is at home."""
    if not conversation or not changed(written(files)):
        return False
    try:
        with reading(database(files)) as kept:
            row = kept.execute("select 1 from session where id = ?", (conversation,))
            return row.fetchone() is not None
    except sqlite3.Error:
        return False


def answers(files: RunFiles, kinds: Mapping[str, type[Any]]) -> Sequence[Any] | None:
    """What the program answers to `GET` of each path; None where one of them failed."""
    try:
        with _port(files) as ask:
            return [
                msgspec.json.decode(ask("GET", path), type=kind) for path, kind in kinds.items()
            ]
    except (OSError, msgspec.DecodeError):
        return None


def post(files: RunFiles, path: str, body: Mapping[str, object]) -> None:
    """Ask the program for something. Raises `OSError` where it does not do it."""
    with _port(files) as ask:
        ask("POST", path, msgspec.json.encode(body))


@contextmanager
def _port(files: RunFiles) -> Iterator[Callable[..., bytes]]:
    """What asks the program, by method, path and body; it and this raise `OSError`."""
    where = understood(read_text(server(files)), Server)
    if where is None:
        raise OSError(f"{server(files)} does not say where the program answers")
    word = b64encode(f"opencode:{where.password}".encode()).decode()
    headers = {"Authorization": f"Basic {word}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", where.port, timeout=_ANSWER_SECONDS)

    def ask(method: str, path: str, body: bytes | None = None) -> bytes:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        said = answer.read(_ANSWER_BYTES)
        if answer.status != http.HTTPStatus.OK:
            raise OSError(f"its port answered {answer.status} to {method} {path}")
        return said

    with closing(connection):
        try:
            yield ask
        except http.client.HTTPException as error:
            raise OSError(f"its port does not answer: {error!r}") from error
