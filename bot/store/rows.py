"""Conversion between columns and values: times are seconds since 1970, structs are JSON."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from bot.store.errors import CorruptRow
from lifecycle.model.facts import Agent, Command, Ended, Issue, Pull, Work
from lifecycle.model.key import Key, parse
from lifecycle.model.status import Blocker

T = TypeVar("T")
Row = sqlite3.Row

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()
_agent = msgspec.json.Decoder(Agent)
_work = msgspec.json.Decoder(Work)
_issue = msgspec.json.Decoder(Issue)
_pulls = msgspec.json.Decoder(tuple[Pull, ...])
_ended = msgspec.json.Decoder(Ended)
_blockers = msgspec.json.Decoder(tuple[Blocker, ...])


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def to_timestamp(at: datetime | None) -> float | None:
    """A time as its column holds it."""
    return None if at is None else at.timestamp()


def from_timestamp(value: float) -> datetime:
    """A column's time, exact to the microsecond: it converts back to the same number."""
    return datetime.fromtimestamp(value, UTC)


def from_timestamp_or_none(value: float | None) -> datetime | None:
    """A column's time, or None for NULL."""
    return None if value is None else from_timestamp(value)


def encoded(value: object) -> str:
    """A struct as its column holds it. Equal values give equal texts."""
    return _encoder.encode(value).decode()


def decoded(decoder: msgspec.json.Decoder[T], row: Row, table: str, id: str, column: str) -> T:
    """A column's struct; unknown fields are skipped. `id` names the column with the row's id.

    Raises `CorruptRow`.
    """
    try:
        return decoder.decode(row[column])
    except msgspec.DecodeError as error:
        raise corrupt_row(table, row[id], column, error) from error


def key_of(row: Row) -> Key:
    """The key of an action in the outbox. Raises `CorruptRow`."""
    try:
        return parse(row["key"])
    except ValueError as error:
        raise corrupt_row("outbox", row["seq"], "key", error) from error


def corrupt_row(table: str, id: str | int, column: str, error: Exception) -> CorruptRow:
    """The error for a column whose content this version never writes."""
    return CorruptRow(
        f"{table}, row {id!r}, column {column!r} has content that Mergewright does not write"
        f" ({error}): restore the database from a backup, or correct the row by hand"
    )


def skip_corrupt(build: Callable[[Row], T], rows: Iterable[Row]) -> Iterator[T]:
    """Build a value of each row. A corrupt row is logged and skipped, so that it stops no other."""
    for row in rows:
        try:
            yield build(row)
        except CorruptRow as error:
            log.error("%s", error)


def by_session(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by their column `session`, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["session"], []).append(row)
    return found


# The JSON columns of `sessions`. All raise `CorruptRow`.


def agent_of(row: Row) -> Agent:
    return decoded(_agent, row, "sessions", "id", "agent")


def work_of(row: Row) -> Work:
    return decoded(_work, row, "sessions", "id", "work")


def issue_of(row: Row) -> Issue:
    return decoded(_issue, row, "sessions", "id", "issue")


def pulls_of(row: Row) -> tuple[Pull, ...]:
    return decoded(_pulls, row, "sessions", "id", "pulls")


def ended_of(row: Row) -> Ended | None:
    return None if row["ended"] is None else decoded(_ended, row, "sessions", "id", "ended")


def blockers_of(row: Row) -> tuple[Blocker, ...]:
    return decoded(_blockers, row, "sessions", "id", "blockers")


def command_of(row: Row) -> Command:
    """A granted row of `commands`."""
    return Command(
        key=row["key"],
        kind=row["kind"],
        actor=row["actor"],
        at=from_timestamp(row["at"]),
        text=row["text"],
        head=row["head"],
        comment=row["comment"],
    )
