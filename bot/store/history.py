"""The history of sessions, and functions that wake sessions: make them due after a change."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder, encoded, from_timestamp, skip_corrupt
from bot.store.values import HistoryKind, HistoryRow, SessionEvent
from lifecycle.model.actions import Action
from lifecycle.model.names import NAME

_ADD = "INSERT INTO history (session, at, kind, actor, data) VALUES (?, ?, ?, ?, ?)"
OF_SESSION = """SELECT seq, session, at, kind, actor, data FROM history
    WHERE session = ? ORDER BY seq DESC LIMIT ?"""
# EVENTS_BEFORE pages backwards, newest event first; EVENTS_AFTER forwards, oldest first.
_EVENTS = """SELECT seq, session, at, kind, actor, data, project
    FROM history JOIN sessions ON sessions.id = session WHERE {} LIMIT ?"""
EVENTS_BEFORE = _EVENTS.format("session = ? AND seq < ? ORDER BY seq DESC")
EVENTS_AFTER = _EVENTS.format("seq > ? ORDER BY seq")
EVENTS_SINCE = _EVENTS.format(
    "session IN (SELECT value FROM json_each(?)) AND at >= ? ORDER BY seq"
)
NEWEST_EVENT = "SELECT max(seq) AS seq FROM history"
ACTIONS = """SELECT session, outbox.key, action FROM json_each(?) AS wanted CROSS JOIN outbox
    WHERE session = wanted.value ->> 0 AND outbox.key = wanted.value ->> 1"""
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

#: The actor of events that the bot itself causes.
BOT = NAME

#: Decodes a whole row of `history`.
history_row = RowDecoder(HistoryRow, "history", "seq")
_action: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)


class HistoryTable(StoreTable):
    """The events of each session, in order. Rows never change; those of ended sessions expire."""

    def of(self, session: str, limit: int = 200) -> list[HistoryRow]:
        """Return the last `limit` events of a session, newest first; a negative limit reads all."""
        return list(skip_corrupt(history_row, self._all(OF_SESSION, (session, limit))))

    def page(self, session: str, before: int, limit: int) -> list[SessionEvent]:
        """Return a session's last `limit` events with a `seq` below `before`, newest first."""
        return self._events(EVENTS_BEFORE, (session, before, limit))

    def after(self, seq: int, limit: int) -> list[SessionEvent]:
        """Return the first `limit` events of any session after the event `seq`, oldest first."""
        return self._events(EVENTS_AFTER, (seq, limit))

    def since(self, sessions: Iterable[str], at: datetime, limit: int) -> list[SessionEvent]:
        """Return the first `limit` events of these sessions at or after a time, oldest first."""
        return self._events(EVENTS_SINCE, (encoded(list(sessions)), at.timestamp(), limit))

    def newest_seq(self) -> int:
        """Return the `seq` of the last event of any session; 0 if there is none."""
        row = self._first(NEWEST_EVENT)
        return (row and row["seq"]) or 0

    def _events(self, query: str, values: tuple[object, ...]) -> list[SessionEvent]:
        with self._db.read() as connection:
            rows = connection.execute(query, values).fetchall()
            projects = {row["seq"]: row["project"] for row in rows}
            events = list(skip_corrupt(history_row, rows))
            wanted = [(event.session, key) for event in events for key in _keys(event)]
            actions: dict[str, dict[str, Action]] = {}
            for row in connection.execute(ACTIONS, (encoded(wanted),)):
                with suppress(msgspec.DecodeError):  # The event then has only the action's key.
                    action = _action.decode(row["action"])
                    actions.setdefault(row["session"], {})[row["key"]] = action
        return [
            SessionEvent(
                row=event, project=projects[event.seq], actions=actions.get(event.session, {})
            )
            for event in events
        ]

    def newest(self) -> datetime | None:
        """Return the time of the last event of any session; None if there is none."""
        row = self._first(NEWEST)
        return from_timestamp(row["at"]) if row else None


def _keys(event: HistoryRow) -> tuple[str, ...]:
    """Return the keys of the actions that an event names."""
    return (*event.data.get("actions", ()), *filter(None, (event.data.get("action"),)))


def add_history(
    connection: sqlite3.Connection,
    session: str,
    kind: HistoryKind,
    actor: str,
    data: Mapping[str, Any],
    now: datetime,
) -> int:
    """Record an event inside a transaction. Returns its sequence number.

    `data` must be encodable as JSON.
    """
    values = (session, now.timestamp(), kind, actor, encoded(data))
    return connection.execute(_ADD, values).lastrowid or 0


def wake(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Make a session due now and increment its version, inside a transaction.

    A decision based on the earlier version is then refused.
    """
    connection.execute(_WAKE, {"id": session, "now": now.timestamp()})


def wake_scope(connection: sqlite3.Connection, scope: str, now: datetime) -> list[str]:
    """Wake the live sessions in a scope, inside a transaction. Returns their ids.

    A scope is `project:NAME`, `repository:NAME` or `session:ID`; empty for all live sessions.
    """
    rows = connection.execute(_WAKE_SCOPE, {"scope": scope, "now": now.timestamp()}).fetchall()
    return [row["id"] for row in rows]


def wake_siblings(connection: sqlite3.Connection, session: str, column: str, now: datetime) -> None:
    """Wake the other open sessions with the same value in a column, inside a transaction.

    `column` is `repository`, `requester` or `agent_name`.
    """
    connection.execute(_WAKE_SIBLINGS[column], {"id": session, "now": now.timestamp()})
