"""The outbox: actions written down, each done at least once and marked once.

An action belongs to a session, or to a repository alone where no session exists.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history
from bot.store.observe import add_observations
from bot.store.receipts import receipt_of
from bot.store.refreshes import add_refreshes
from bot.store.rows import (
    Row,
    decoded,
    encoded,
    from_timestamp,
    from_timestamp_or_none,
    skip_corrupt,
)
from bot.store.values import (
    DueAction,
    HistoryKind,
    Observation,
    OutboxEntry,
    RefreshRequest,
)
from bot.store.wake import wake
from lifecycle.model.actions import Action
from lifecycle.model.status import Reason

_ADD = """INSERT INTO outbox (session, key, next_at, created, action) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, key) DO UPDATE SET state = 'due', reason = '', error = '',
        done_at = NULL, attempts = CASE state WHEN 'sent' THEN attempts ELSE 0 END,
        receipt = CASE state WHEN 'sent' THEN receipt ELSE '' END,
        next_at = excluded.next_at, action = excluded.action
    WHERE state IN ('dead', 'sent')"""
_ADD_FOR_REPOSITORY = """INSERT INTO outbox (repository, key, next_at, created, action)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (repository, key) DO NOTHING"""
DUE_ACTIONS = """SELECT seq, session, coalesce(first.repository, sessions.repository) AS repository,
        action, attempts, receipt
    FROM outbox AS first LEFT JOIN sessions ON sessions.id = session
    WHERE state = 'due' AND next_at <= ?1 AND NOT EXISTS (SELECT 1 FROM outbox AS earlier
        WHERE earlier.state = 'due' AND earlier.next_at <= ?1
            AND earlier.session = first.session AND earlier.seq < first.seq)
    ORDER BY first.created, seq LIMIT ?2"""
_ENDING = """SELECT EXISTS (SELECT 1 FROM outbox WHERE session = ? AND state = 'due'
    AND action ->> 'type' IN ('stop', 'release'))"""
ORDERED = """SELECT seq, key, state, attempts, created, next_at, done_at, result, reason, error,
        action FROM outbox WHERE session = ? ORDER BY seq DESC LIMIT ?"""
RUNS = """SELECT action ->> 'run' AS run, min(created) AS at FROM outbox
    WHERE session = ? AND action ->> 'type' = 'start' GROUP BY 1"""
_DONE = """UPDATE outbox SET state = 'done', result = ?, done_at = ?, attempts = attempts + 1
    WHERE seq = ? AND state = 'due' RETURNING session, key"""
_RETRY = """UPDATE outbox SET error = ?, next_at = ?, attempts = attempts + 1
    WHERE seq = ? AND state = 'due' RETURNING session"""
_DEAD = """UPDATE outbox SET state = 'dead', reason = ?, error = ?, done_at = ?,
    attempts = attempts + 1 WHERE seq = ? AND state = 'due' RETURNING session, key"""
_TAKE_UP = "UPDATE outbox SET next_at = ?1 WHERE state = 'due' AND next_at < ?1"
_HOLD = """UPDATE outbox SET next_at = :until, error = coalesce(nullif(:why, ''), error)
    WHERE seq = :seq AND state = 'due'"""
PRUNE_ACTIONS = "DELETE FROM outbox WHERE session IS NULL AND done_at < ?"
_WITHDRAW = "DELETE FROM outbox WHERE seq = ? AND state = 'due' RETURNING session, key"

_Data = Mapping[str, str]

_action: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)


class OutboxTable(StoreTable):
    """The table of actions."""

    def due(self, now: datetime, limit: int = 50) -> list[DueAction]:
        """Actions to do now, oldest first: of each session at most the first.

        Actions without a session do not wait for each other. One that waits for its next try
        holds nothing back: a stop must not wait for a comment.
        """
        with self._db.read() as connection:
            rows = connection.execute(DUE_ACTIONS, (now.timestamp(), limit))
            return list(skip_corrupt(_due, rows))

    def ends_program(self, session: str) -> bool:
        """Whether an end of the session's program is written down and not done yet."""
        with self._db.read() as connection:
            return bool(connection.execute(_ENDING, (session,)).fetchone()[0])

    def mark_done(
        self,
        seq: int,
        result: str,
        now: datetime,
        *,
        observed: Observation | None = None,
        refreshes: Sequence[RefreshRequest] = (),
    ) -> None:
        """Write down that an action was done and what was learned from it, and visit its session.

        All in one transaction. Marking one that is not due any more does nothing.
        """

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_DONE, (result, now.timestamp(), seq)).fetchall()
            if marked:
                add_refreshes(connection, refreshes, now)
                if observed is not None:
                    add_observations(connection, [observed], now)
            return _told(connection, marked, HistoryKind.DONE, {"result": result}, now)

        self._db.announce(self._db.write(work))

    def mark_retry(self, seq: int, error: str, next_at: datetime) -> None:
        """It failed and is to be tried again at `next_at`."""
        values = (error, next_at.timestamp(), seq)

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_RETRY, values).fetchall()
            return [row["session"] for row in marked if row["session"]]

        self._db.announce(self._db.write(work))

    def mark_failed(self, seq: int, reason: Reason, error: str, now: datetime) -> None:
        """It failed for good: shown to people, and its session is visited."""
        values = (reason, error, now.timestamp(), seq)
        self._change(_DEAD, values, HistoryKind.FAILED, {"reason": reason, "error": error}, now)

    def withdraw(self, seq: int, now: datetime) -> None:
        """Take back an action that was not done, as if it never was; it may be asked for again."""
        self._change(_WITHDRAW, (seq,), HistoryKind.WITHDRAWN, {}, now)

    def add_for_repository(self, repository: str, actions: Sequence[Action], now: datetime) -> None:
        """Write down actions that concern a repository and no session, each key once."""
        self._db.write(
            lambda connection: add_repository_actions(connection, repository, actions, now)
        )

    def prune(self, before: datetime) -> None:
        """Delete actions without a session that were done or given up before then."""
        values = (before.timestamp(),)
        self._db.write(lambda connection: connection.execute(PRUNE_ACTIONS, values))

    def reset_due(self, now: datetime) -> None:
        """Count what is due as due from now on: nothing was tried while no bot acted."""
        self._db.write(lambda connection: connection.execute(_TAKE_UP, (now.timestamp(),)))

    def defer(self, seq: int, until: datetime, why: str = "") -> None:
        """Leave an action alone for a while; that is not a failed try."""
        values = {"seq": seq, "until": until.timestamp(), "why": why}
        self._db.write(lambda connection: connection.execute(_HOLD, values))

    def of(self, session: str, limit: int = 200) -> list[OutboxEntry]:
        """The actions last written down for a session, newest first."""
        with self._db.read() as connection:
            return list(skip_corrupt(_ordered, connection.execute(ORDERED, (session, limit))))

    def run_starts(self, session: str) -> dict[int, datetime]:
        """When each run was ordered that is known: nothing of it is older."""
        with self._db.read() as connection:
            rows = connection.execute(RUNS, (session,)).fetchall()
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
            return _told(
                connection, connection.execute(statement, values).fetchall(), kind, data, now
            )

        self._db.announce(self._db.write(work))


def add_actions(
    connection: sqlite3.Connection, session: str, actions: Sequence[Action], now: datetime
) -> list[str]:
    """Write actions down inside a transaction; the keys that were not waiting or done before.

    One that was given up is tried again: it is asked for anew only where that was forgiven.
    """
    at = now.timestamp()
    return [
        action.key
        for action in actions
        if connection.execute(_ADD, (session, action.key, at, at, encoded(action))).rowcount
    ]


def add_repository_actions(
    connection: sqlite3.Connection, repository: str, actions: Sequence[Action], now: datetime
) -> None:
    """Write actions without a session down inside a transaction; a known key changes nothing."""
    at = now.timestamp()
    rows = [(repository, action.key, at, at, encoded(action)) for action in actions]
    connection.executemany(_ADD_FOR_REPOSITORY, rows)


def _told(
    connection: sqlite3.Connection,
    rows: Sequence[Row],
    kind: HistoryKind,
    data: _Data,
    now: datetime,
) -> list[str]:
    """Inside a transaction: what became of actions is history, and their sessions are visited."""
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


def _ordered(row: Row) -> OutboxEntry:
    return OutboxEntry(
        seq=row["seq"],
        key=row["key"],
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
