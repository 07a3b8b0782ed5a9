"""The history of sessions, and functions that wake sessions after a change."""

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
OF_SESSION = """SELECT seq, session, at, kind, actor, data FROM history
    WHERE session = ? ORDER BY seq DESC LIMIT ?"""

_CHANGED = "SET version = version + 1, due = CASE WHEN due < :now THEN due ELSE :now END"
_WAKE = f"UPDATE sessions {_CHANGED} WHERE id = :id"
_WAKE_SCOPE = f"""UPDATE sessions {_CHANGED}
    WHERE (:scope = '' OR 'project:' || project = :scope OR 'session:' || id = :scope)
        AND id IN (SELECT id FROM live)
    RETURNING id"""  # noqa: S608 - our text
_WAKE_REPOSITORY = f"""UPDATE sessions {_CHANGED}
    WHERE repository = :repository AND id IN (SELECT id FROM live)
    RETURNING id"""  # noqa: S608 - our text
_WAKE_SIBLINGS = f"""UPDATE sessions {_CHANGED}
    WHERE repository = (SELECT repository FROM sessions WHERE id = :id)
        AND id <> :id AND ended IS NULL"""  # noqa: S608 - our text

#: The actor of what the bot does by itself.
BOT = NAME

_data: msgspec.json.Decoder[Mapping[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class HistoryTable(StoreTable):
    """What happened to each session, in order; rows are never changed."""

    def of(self, session: str, limit: int = 200) -> list[HistoryRow]:
        """The last `limit` events of a session, newest first; a negative limit reads all."""
        with self._db.read() as connection:
            return list(skip_corrupt(history_row, connection.execute(OF_SESSION, (session, limit))))

    def add(
        self, session: str, kind: HistoryKind, actor: str, data: Mapping[str, Any], now: datetime
    ) -> None:
        """Record an event of a session. `data` is anything JSON can hold."""
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
    """Record an event inside a transaction. Returns its sequence number."""
    values = (session, now.timestamp(), kind, actor, encoded(data))
    return connection.execute(_ADD, values).lastrowid or 0


def history_row(row: Row) -> HistoryRow:
    """Decode a whole row of `history`. Raises `CorruptRow`."""
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


def wake(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: a fact of this session changed, so it is reconciled now."""
    connection.execute(_WAKE, {"id": session, "now": now.timestamp()})


def wake_scope(connection: sqlite3.Connection, scope: str, now: datetime) -> list[str]:
    """Inside a transaction: wake the live sessions in the scope of a freeze. Returns their ids."""
    rows = connection.execute(_WAKE_SCOPE, {"scope": scope, "now": now.timestamp()}).fetchall()
    return [row["id"] for row in rows]


def wake_repository(connection: sqlite3.Connection, repository: str, now: datetime) -> list[str]:
    """Inside a transaction: wake the live sessions of a repository. Returns their ids."""
    values = {"repository": repository, "now": now.timestamp()}
    return [row["id"] for row in connection.execute(_WAKE_REPOSITORY, values).fetchall()]


def wake_siblings(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: wake the other open sessions of this session's repository."""
    connection.execute(_WAKE_SIBLINGS, {"id": session, "now": now.timestamp()})
