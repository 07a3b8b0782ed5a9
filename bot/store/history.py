"""The history of sessions, and functions that wake sessions after a change."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder, encoded, from_timestamp, skip_corrupt
from bot.store.values import HistoryKind, HistoryRow
from lifecycle.model.names import NAME

_ADD = "INSERT INTO history (session, at, kind, actor, data) VALUES (?, ?, ?, ?, ?)"
OF_SESSION = """SELECT seq, session, at, kind, actor, data FROM history
    WHERE session = ? ORDER BY seq DESC LIMIT ?"""
NEWEST = "SELECT at FROM history WHERE seq = (SELECT max(seq) FROM history)"

_CHANGED = "SET version = version + 1, due = CASE WHEN due < :now THEN due ELSE :now END"
_WAKE = f"UPDATE sessions {_CHANGED} WHERE id = :id"
_WAKE_SCOPE = f"""UPDATE sessions {_CHANGED}
    WHERE id IN (SELECT id FROM live) AND :scope IN
        ('', 'project:' || project, 'repository:' || repository, 'session:' || id)
    RETURNING id"""
_WAKE_SIBLINGS = {
    column: f"""UPDATE sessions {_CHANGED}
        WHERE {column} = (SELECT {column} FROM sessions WHERE id = :id)
            AND id <> :id AND ended IS NULL"""
    for column in ("repository", "requester", "agent_name")
}

#: The actor of what the bot does by itself.
BOT = NAME

#: Decodes a whole row of `history`.
history_row = RowDecoder(HistoryRow, "history", "seq")


class HistoryTable(StoreTable):
    """What happened to each session, in order; rows are never changed."""

    def of(self, session: str, limit: int = 200) -> list[HistoryRow]:
        """The last `limit` events of a session, newest first; a negative limit reads all."""
        return list(skip_corrupt(history_row, self._all(OF_SESSION, (session, limit))))

    def newest(self) -> datetime | None:
        """The time of the last event of any session."""
        row = self._first(NEWEST)
        return from_timestamp(row["at"]) if row else None


def add_history(
    connection: sqlite3.Connection,
    session: str,
    kind: HistoryKind,
    actor: str,
    data: Mapping[str, Any],
    now: datetime,
) -> int:
    """Record an event inside a transaction. Returns its sequence number.

    `data` is anything JSON can hold.
    """
    values = (session, now.timestamp(), kind, actor, encoded(data))
    return connection.execute(_ADD, values).lastrowid or 0


def wake(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: a fact of this session changed, so it is reconciled now."""
    connection.execute(_WAKE, {"id": session, "now": now.timestamp()})


def wake_scope(connection: sqlite3.Connection, scope: str, now: datetime) -> list[str]:
    """Inside a transaction: wake the live sessions in a scope. Returns their ids.

    A scope is empty for all, `project:NAME`, `repository:NAME` or `session:ID`.
    """
    rows = connection.execute(_WAKE_SCOPE, {"scope": scope, "now": now.timestamp()}).fetchall()
    return [row["id"] for row in rows]


def wake_siblings(connection: sqlite3.Connection, session: str, column: str, now: datetime) -> None:
    """Inside a transaction: wake the other open sessions with the same value of this column."""
    connection.execute(_WAKE_SIBLINGS[column], {"id": session, "now": now.timestamp()})
