"""Between rows and values: times as seconds since 1970, structs as JSON."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from bot.store.errors import CorruptRow

T = TypeVar("T")
Row = sqlite3.Row

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def to_timestamp(at: datetime | None) -> float | None:
    """A time as a column has it."""
    return None if at is None else at.timestamp()


def from_timestamp(value: float) -> datetime:
    """A column's time. Exact to the microsecond, so that it goes back as the same number."""
    return datetime.fromtimestamp(value, UTC)


def from_timestamp_or_none(value: float | None) -> datetime | None:
    """A column's time, where it has one."""
    return None if value is None else from_timestamp(value)


def encoded(value: object) -> str:
    """A struct as a column has it; the same value always gives the same text."""
    return _encoder.encode(value).decode()


def decoded(decoder: msgspec.json.Decoder[T], row: Row, table: str, id: str, column: str) -> T:
    """A column's struct; fields it does not know are skipped. Raises `BadRow`."""
    try:
        return decoder.decode(row[column])
    except msgspec.DecodeError as error:
        raise corrupt_row(table, row[id], column, error) from error


def corrupt_row(table: str, id: str | int, column: str, error: Exception) -> CorruptRow:
    """The error for a column that holds what nothing here writes."""
    return CorruptRow(
        f"{table}, row {id!r}, column {column!r} holds what Mergewright does not write ({error}):"
        " restore the database from a backup, or mend this row by hand"
    )


def skip_corrupt(build: Callable[[Row], T], rows: Iterable[Row]) -> Iterator[T]:
    """Every row as a value. A bad row is left out and logged: it must not stop all the others."""
    for row in rows:
        try:
            yield build(row)
        except CorruptRow as error:
            log.error("%s", error)


def by_session(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by their column `session`, each in the order they came."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["session"], []).append(row)
    return found
