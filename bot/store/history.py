"""What happened to a session, in order; rows are only ever added."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from bot.store.database import StoreTable
from bot.store.rows import Row, corrupt_row, decoded, encoded, from_timestamp, skip_corrupt
from bot.store.values import HistoryKind, HistoryRow
from lifecycle.model.names import NAME

_ADD = "INSERT INTO history (session, at, kind, actor, data) VALUES (?, ?, ?, ?, ?)"
HISTORY = """SELECT seq, session, at, kind, actor, data FROM history
    WHERE session = ? ORDER BY seq DESC LIMIT ?"""

#: Who did what nobody asked for by name.
BOT = NAME

_data: msgspec.json.Decoder[Mapping[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class HistoryTable(StoreTable):
    """The table of history."""

    def of(self, session: str, limit: int = 200) -> list[HistoryRow]:
        """The last `limit` things that happened to a session, newest first."""
        with self._db.read() as connection:
            return list(skip_corrupt(history_row, connection.execute(HISTORY, (session, limit))))

    def add(
        self, session: str, kind: HistoryKind, actor: str, data: Mapping[str, Any], now: datetime
    ) -> None:
        """Write down something that happened to a session."""
        self._db.write(lambda connection: add_history(connection, session, kind, actor, data, now))
        self._db.announce([session])


def add_history(
    connection: sqlite3.Connection,
    session: str,
    kind: HistoryKind,
    actor: str,
    data: Mapping[str, Any],
    now: datetime,
) -> int:
    """Add a row inside a transaction; its number."""
    values = (session, now.timestamp(), kind, actor, encoded(data))
    return connection.execute(_ADD, values).lastrowid or 0


def history_row(row: Row) -> HistoryRow:
    """A whole row of `history`. Raises `BadRow`."""
    try:
        kind = HistoryKind(row["kind"])
    except ValueError as error:
        raise corrupt_row("history", row["seq"], "kind", error) from error
    return HistoryRow(
        seq=row["seq"],
        session=row["session"],
        at=from_timestamp(row["at"]),
        kind=kind,
        actor=row["actor"],
        data=decoded(_data, row, "history", "seq", "data"),
    )
