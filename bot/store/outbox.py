"""The outbox: actions that are due, sent, done or failed. Each is executed at least once.

An action belongs to a session, or to a repository if it concerns no session.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.observations import add_observations
from bot.store.receipts import receipt_of
from bot.store.refreshes import add_refreshes
from bot.store.rows import (
    Row,
    decoded,
    encoded,
    from_timestamp,
    from_timestamp_or_none,
    key_of,
    skip_corrupt,
)
from bot.store.values import DueAction, HistoryKind, Observation, OutboxEntry, RefreshRequest
from lifecycle.model.actions import Action
from lifecycle.model.status import Reason

_ADD = """INSERT INTO outbox (session, key, next_at, created, action) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, key) DO UPDATE SET state = 'due', reason = '', error = '',
        done_at = NULL, attempts = CASE state WHEN 'sent' THEN attempts ELSE 0 END,
        receipt = CASE state WHEN 'sent' THEN receipt ELSE '' END,
        next_at = excluded.next_at, action = excluded.action
    WHERE state IN ('failed', 'sent')"""
_ADD_FOR_REPOSITORY = """INSERT INTO outbox (repository, key, next_at, created, action)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (repository, key) DO NOTHING"""
DUE_ACTIONS = """SELECT seq, session, coalesce(first.repository, sessions.repository) AS repository,
        action, attempts, receipt
    FROM outbox AS first LEFT JOIN sessions ON sessions.id = session
    WHERE state = 'due' AND next_at <= ?1 AND NOT EXISTS (SELECT 1 FROM outbox AS earlier
        WHERE earlier.state = 'due' AND earlier.next_at <= ?1
            AND earlier.session = first.session AND earlier.seq < first.seq)
    ORDER BY first.created, seq LIMIT ?2"""
ENDS_PROGRAM = """SELECT EXISTS (SELECT 1 FROM outbox WHERE session = ? AND state = 'due'
    AND action ->> 'type' IN ('stop', 'release'))"""
OF_SESSION = """SELECT seq, key, state, attempts, created, next_at, done_at, result, reason, error,
        action FROM outbox WHERE session = ? ORDER BY seq DESC LIMIT ?"""
RUN_STARTS = """SELECT action ->> 'run' AS run, min(created) AS at FROM outbox
    WHERE session = ? AND action ->> 'type' = 'start' GROUP BY 1"""
_DONE = """UPDATE outbox SET state = 'done', result = ?, done_at = ?, attempts = attempts + 1
    WHERE seq = ? AND state = 'due' RETURNING session, key"""
_RETRY = """UPDATE outbox SET error = ?, next_at = ?, attempts = attempts + 1
    WHERE seq = ? AND state = 'due' RETURNING session"""
_FAILED = """UPDATE outbox SET state = 'failed', reason = ?, error = ?, done_at = ?,
    attempts = attempts + 1 WHERE seq = ? AND state = 'due' RETURNING session, key"""
_RESET_DUE = "UPDATE outbox SET next_at = ?1 WHERE state = 'due' AND next_at < ?1"
_DEFER = """UPDATE outbox SET next_at = :until, error = coalesce(nullif(:why, ''), error)
    WHERE seq = :seq AND state = 'due'"""
PRUNE_ACTIONS = "DELETE FROM outbox WHERE session IS NULL AND done_at < ?"
_WITHDRAW = "DELETE FROM outbox WHERE seq = ? AND state = 'due' RETURNING session, key"

_Data = Mapping[str, str]

_action: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)


class OutboxTable(StoreTable):
    """Actions in the order they were decided."""

    def due(self, now: datetime, limit: int = 50) -> list[DueAction]:
        """The actions to execute now, oldest first: of each session at most the first.

        Actions without a session do not wait for each other. An action that waits for its next
        attempt delays no other: a stop does not wait for a comment.
        """
        with self._db.read() as connection:
            rows = connection.execute(DUE_ACTIONS, (now.timestamp(), limit))
            return list(skip_corrupt(_due, rows))

    def ends_program(self, session: str) -> bool:
        """Whether an action that ends the session's program is due."""
        with self._db.read() as connection:
            return bool(connection.execute(ENDS_PROGRAM, (session,)).fetchone()[0])

    def mark_done(
        self,
        seq: int,
        result: str,
        now: datetime,
        *,
        observed: Observation | None = None,
        refreshes: Sequence[RefreshRequest] = (),
    ) -> None:
        """Mark an action as done, write what was observed by it, and wake its session.

        All in one transaction. Does nothing if the action is not due.
        """

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_DONE, (result, now.timestamp(), seq)).fetchall()
            if marked:
                add_refreshes(connection, refreshes, now)
                if observed is not None:
                    add_observations(connection, [observed], now)
            return _record(connection, marked, HistoryKind.DONE, {"result": result}, now)

        self._db.announce(self._db.write(work))

    def mark_retry(self, seq: int, error: str, next_at: datetime) -> None:
        """Record a failed attempt; the next one is at `next_at`."""
        values = (error, next_at.timestamp(), seq)

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_RETRY, values).fetchall()
            return [row["session"] for row in marked if row["session"]]

        self._db.announce(self._db.write(work))

    def mark_failed(self, seq: int, reason: Reason, error: str, now: datetime) -> None:
        """Mark an action as failed for good and wake its session."""
        values = (reason, error, now.timestamp(), seq)
        self._change(_FAILED, values, HistoryKind.FAILED, {"reason": reason, "error": error}, now)

    def withdraw(self, seq: int, now: datetime) -> None:
        """Delete a due action. A later decision may contain its key again."""
        self._change(_WITHDRAW, (seq,), HistoryKind.WITHDRAWN, {}, now)

    def prune(self, before: datetime) -> None:
        """Delete actions without a session that were done or failed before then."""
        values = (before.timestamp(),)
        self._db.write(lambda connection: connection.execute(PRUNE_ACTIONS, values))

    def reset_due(self, now: datetime) -> None:
        """Reset the due time of overdue actions to now, because no bot ran to attempt them."""
        self._db.write(lambda connection: connection.execute(_RESET_DUE, (now.timestamp(),)))

    def defer(self, seq: int, until: datetime, why: str = "") -> None:
        """Postpone a due action to `until`. That does not count as an attempt."""
        values = {"seq": seq, "until": until.timestamp(), "why": why}
        self._db.write(lambda connection: connection.execute(_DEFER, values))

    def of(self, session: str, limit: int = 200) -> list[OutboxEntry]:
        """The last `limit` actions of a session, newest first."""
        with self._db.read() as connection:
            return list(skip_corrupt(_entry, connection.execute(OF_SESSION, (session, limit))))

    def run_starts(self, session: str) -> dict[int, datetime]:
        """Return when the start of each run was decided, by run number. A run's files are newer."""
        with self._db.read() as connection:
            rows = connection.execute(RUN_STARTS, (session,)).fetchall()
        return {int(row["run"]): from_timestamp(row["at"]) for row in rows}

    def _change(
        self,
        statement: str,
        values: tuple[str | float | int, ...],
        kind: HistoryKind,
        data: _Data,
        now: datetime,
    ) -> None:
        def work(connection: sqlite3.Connection) -> list[str]:
            return _record(
                connection, connection.execute(statement, values).fetchall(), kind, data, now
            )

        self._db.announce(self._db.write(work))


def add_actions(
    connection: sqlite3.Connection, session: str, actions: Sequence[Action], now: datetime
) -> list[str]:
    """Add actions inside a transaction. Returns the keys that were not due or done before.

    A failed action becomes due again: a decision contains its key only if the failure was reset.
    """
    at = now.timestamp()
    return [
        str(action.key)
        for action in actions
        if connection.execute(_ADD, (session, str(action.key), at, at, encoded(action))).rowcount
    ]


def add_repository_actions(
    connection: sqlite3.Connection, repository: str, actions: Sequence[Action], now: datetime
) -> None:
    """Add actions without a session inside a transaction. Known keys are ignored."""
    at = now.timestamp()
    rows = [(repository, str(action.key), at, at, encoded(action)) for action in actions]
    connection.executemany(_ADD_FOR_REPOSITORY, rows)


def _record(
    connection: sqlite3.Connection,
    rows: Sequence[Row],
    kind: HistoryKind,
    data: _Data,
    now: datetime,
) -> list[str]:
    """Inside a transaction: record what happened to actions and wake their sessions."""
    sessions = [row for row in rows if row["session"]]
    for row in sessions:
        add_history(connection, row["session"], kind, BOT, {"action": row["key"], **data}, now)
        wake(connection, row["session"], now)
    return [row["session"] for row in sessions]


def _due(row: Row) -> DueAction:
    return DueAction(
        seq=row["seq"],
        session=row["session"] or "",
        repository=row["repository"],
        action=decoded(_action, row, "outbox", "seq", "action"),
        attempts=row["attempts"],
        receipt=receipt_of(row),
    )


def _entry(row: Row) -> OutboxEntry:
    return OutboxEntry(
        seq=row["seq"],
        key=key_of(row),
        state=row["state"],
        attempts=row["attempts"],
        created=from_timestamp(row["created"]),
        next_at=from_timestamp(row["next_at"]),
        done_at=from_timestamp_or_none(row["done_at"]),
        result=row["result"],
        reason=row["reason"],
        error=row["error"],
        action=decoded(_action, row, "outbox", "seq", "action"),
    )
