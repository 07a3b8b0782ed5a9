"""Conversion between columns and values: times are seconds since 1970, structs are JSON."""

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum
from types import UnionType
from typing import Any, Generic, TypeVar, get_args

import msgspec

from bot.store.errors import CorruptRow
from lifecycle.model.key import Key, parse
from lifecycle.model.times import from_seconds

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Row = sqlite3.Row

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def from_timestamp(value: float) -> datetime:
    """Convert a column's seconds since 1970 to a UTC time, clamped to the start of 1970 or 2100."""
    return from_seconds(value)


def encoded(value: object) -> str:
    """Encode a value as JSON for its column. Mappings keep the order of their keys."""
    return _encoder.encode(value).decode()


def columns(value: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a struct as values for the columns of the same names."""
    return {name: _column(one) for name, one in msgspec.structs.asdict(value).items()}


def _column(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    return value.timestamp() if isinstance(value, datetime) else encoded(value)


#: The function that converts a column's value, by the field's type. None if the value is used
#: unchanged.
_CONVERTERS: dict[Any, Callable[[Any], Any] | None] = {
    **dict.fromkeys((str, int, bytes)),
    bool: bool,
    float: float,
    datetime: from_timestamp,
    Key: parse,
}


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """Return the function that converts a column to this type; None if none is needed."""
    for one in get_args(kind) if isinstance(kind, UnionType) else (kind,):
        if one in _CONVERTERS:
            return _CONVERTERS[one]
        if isinstance(one, type) and issubclass(one, Enum):
            return one
    return msgspec.json.Decoder(kind).decode


class RowDecoder(Generic[S]):
    """Builds structs from rows: each field from the column of its name, converted to its type.

    All rows must have the same columns. Columns without a field and unknown fields of JSON are
    ignored.
    """

    def __init__(self, kind: type[S], table: str, id: str = "id") -> None:
        """`table` and `id`, the column that identifies a row, are for messages of `CorruptRow`."""
        self._kind, self._table, self._id = kind, table, id
        self._columns: Sequence[tuple[str, Callable[[Any], Any] | None]] = ()

    def __call__(self, source: Row, **others: Any) -> S:
        """Build a struct; `others` are fields that are not in the row. Raises `CorruptRow`."""
        if not self._columns:
            fields, names = msgspec.structs.fields(self._kind), set(source.keys())
            self._columns = [(f.name, _converter(f.type)) for f in fields if f.name in names]
        values = {}
        for name, convert in self._columns:
            values[name] = value = source[name]
            if convert is None or value is None:
                continue
            try:
                values[name] = convert(value)
            except (ValueError, msgspec.DecodeError) as error:
                raise corrupt_row(self._table, source[self._id], name, error) from error
        return self._kind(**values, **others)


def corrupt_row(table: str, id: str | int, column: str, error: Exception) -> CorruptRow:
    """Return the error for a column whose content this version never writes."""
    return CorruptRow(
        f"{table}, row {id!r}, column {column!r} has content that Mergewright does not write"
        f" ({error}): restore the database from a backup, or correct the row by hand"
    )


def skip_corrupt(build: Callable[[Row], T], rows: Iterable[Row]) -> Iterator[T]:
    """Build a value from each row. Corrupt rows are logged and skipped."""
    for row in rows:
        try:
            yield build(row)
        except CorruptRow as error:
            log.error("%s", error)


def by_session(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by their column `session`. Each group keeps their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["session"], []).append(row)
    return found
