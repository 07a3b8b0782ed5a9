"""Deletes expired rows.

Histories, and rows that expire by their own age, are deleted in small transactions, so that other
writes do not have to wait. Of a deleted session, only the usage and cost remain, in the table
`ledger`.
"""

import sqlite3
from datetime import datetime
from enum import StrEnum

from bot.store.database import StoreTable
from bot.store.usage import keep_in_ledger
from bot.store.values import StoredSize

#: The most rows of a kind, or of a history, that one transaction deletes.
STEP = 500

DELIVERIES_SIZE = """SELECT count(*) AS rows, coalesce(sum(length(body)), 0) AS bytes
    FROM deliveries WHERE done_at < ?"""
DELIVERIES = """DELETE FROM deliveries WHERE id IN
    (SELECT id FROM deliveries WHERE done_at < ? LIMIT ?)"""
ACTIONS_SIZE = """SELECT count(*) AS rows, coalesce(sum(length(action)), 0) AS bytes
    FROM outbox WHERE session IS NULL AND done_at < ?"""
ACTIONS = """DELETE FROM outbox WHERE seq IN
    (SELECT seq FROM outbox WHERE session IS NULL AND done_at < ? LIMIT ?)"""
COMMANDS_SIZE = """SELECT count(*) AS rows, coalesce(sum(length(text)), 0) AS bytes
    FROM commands WHERE state = 'refused' AND at < ?"""
COMMANDS = """DELETE FROM commands WHERE key IN
    (SELECT key FROM commands WHERE state = 'refused' AND at < ? LIMIT ?)"""
OUTSIDERS_SIZE = """SELECT count(*) AS rows, 0 AS bytes FROM outsiders WHERE notified_at < ?"""
OUTSIDERS = """DELETE FROM outsiders WHERE (repository, issue, login) IN
    (SELECT repository, issue, login FROM outsiders WHERE notified_at < ? LIMIT ?)"""
INCIDENTS_SIZE = """SELECT count(*) AS rows, coalesce(sum(length(text)), 0) AS bytes
    FROM incidents WHERE cleared_at < ?"""
INCIDENTS = """DELETE FROM incidents WHERE seq IN
    (SELECT seq FROM incidents WHERE cleared_at < ? LIMIT ?)"""
NOTIFICATIONS_SIZE = """SELECT count(*) AS rows, coalesce(sum(length(message)), 0) AS bytes
    FROM notifications WHERE done_at < ? AND (event <> 'raised' OR gone_at IS NOT NULL)"""
NOTIFICATIONS = """DELETE FROM notifications WHERE seq IN
    (SELECT seq FROM notifications
        WHERE done_at < ? AND (event <> 'raised' OR gone_at IS NOT NULL) LIMIT ?)"""
HISTORY_SIZE = """SELECT count(*) AS rows,
        coalesce(sum(length(data) + coalesce(length(record), 0)), 0) AS bytes
    FROM history LEFT JOIN decision_records ON decision_records.history = seq WHERE session = ?"""
#: A row's decision record is deleted with it (ON DELETE CASCADE).
HISTORY = "DELETE FROM history WHERE seq IN (SELECT seq FROM history WHERE session = ? LIMIT ?)"
#: Selects a session only if it has ended, is not live and is not due to be reconciled.
DELETABLE = """SELECT 1 FROM sessions WHERE id = ?1 AND ended IS NOT NULL
    AND coalesce(due > ?2, 1) AND id NOT IN (SELECT id FROM live)"""
_OF_SESSION = (
    *("outbox", "commands", "slots", "handovers", "session_pulls", "session_paths", "metadata"),
    *("model_usage", "usage_steps", "refused_hosts", "usage", "history", "inherited"),
    "notifications",
)
_DELETE = (
    *(f"DELETE FROM {table} WHERE session = ?" for table in _OF_SESSION),
    "DELETE FROM freezes WHERE scope = 'session:' || ?",
    "DELETE FROM sessions WHERE id = ?",
)


class DatedKind(StrEnum):
    """Kinds of rows that expire by their own age, not with a session."""

    DELIVERIES = "webhooks"
    ACTIONS = "actions without a session"
    COMMANDS = "refused commands"
    OUTSIDERS = "notified outsiders"
    INCIDENTS = "closed incidents"
    NOTIFICATIONS = "sent notifications"


_DATED = {
    DatedKind.DELIVERIES: (DELIVERIES_SIZE, DELIVERIES),
    DatedKind.ACTIONS: (ACTIONS_SIZE, ACTIONS),
    DatedKind.COMMANDS: (COMMANDS_SIZE, COMMANDS),
    DatedKind.OUTSIDERS: (OUTSIDERS_SIZE, OUTSIDERS),
    DatedKind.INCIDENTS: (INCIDENTS_SIZE, INCIDENTS),
    DatedKind.NOTIFICATIONS: (NOTIFICATIONS_SIZE, NOTIFICATIONS),
}


class ExpiryTable(StoreTable):
    """Measures and deletes expired rows."""

    def dated(self, kind: DatedKind, before: datetime) -> StoredSize:
        """Return the size of the rows of this kind that were finished before a time.

        For a refused command, the time when it was given counts instead. A notification of a
        lasting problem is left out until the problem is over.
        """
        return self._size(_DATED[kind][0], before.timestamp())

    def delete_dated(self, kind: DatedKind, before: datetime) -> None:
        """Delete the rows of this kind that were finished before a time.

        The exceptions for some kinds are described at `ExpiryTable.dated`.
        """
        self._delete(_DATED[kind][1], before.timestamp())

    def history(self, session: str) -> StoredSize:
        """Return the size of a session's history with its decision records."""
        return self._size(HISTORY_SIZE, session)

    def delete_history(self, session: str) -> None:
        """Delete the history of a session. The session itself remains."""
        self._delete(HISTORY, session)

    def delete_session(self, session: str, now: datetime) -> bool:
        """Copy a session's usage to the ledger and delete all its rows, in one transaction.

        Returns False, with nothing deleted, if the session is unknown, has not ended, is due to be
        reconciled, holds a slot, or has actions to execute.
        """

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(DELETABLE, (session, now.timestamp())).fetchone() is None:
                return False
            keep_in_ledger(connection, session)
            for statement in _DELETE:
                connection.execute(statement, (session,))
            return True

        deleted = self._db.write(work)
        if deleted:
            self._db.announce([session])
        return deleted

    def _size(self, query: str, value: float | str) -> StoredSize:
        (row,) = self._all(query, (value,))
        return StoredSize(**dict(row))

    def _delete(self, statement: str, value: float | str) -> None:
        while self._execute(statement, (value, STEP)) == STEP:
            pass
