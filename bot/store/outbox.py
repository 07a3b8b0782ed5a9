"""The outbox: actions that are due, sent, done or failed. Actions may be repeated after a crash.

An action belongs to a session, or to a repository if it concerns no session.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.observations import add_observations
from bot.store.refreshes import add_refreshes
from bot.store.rows import Row, RowDecoder, encoded, from_timestamp, skip_corrupt
from bot.store.values import (
    AwaitedReceipt,
    DueAction,
    HistoryKind,
    InheritedAction,
    Observation,
    OutboxEntry,
    Receipt,
    RefreshRequest,
)
from lifecycle.model.actions import Action, PressKeys
from lifecycle.model.key import KeyKind
from lifecycle.model.status import Reason

_ADD = """INSERT INTO outbox (session, key, next_at, created, action) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, key) DO UPDATE SET state = 'due', reason = '', error = '',
        done_at = NULL, attempts = CASE state WHEN 'sent' THEN attempts ELSE 0 END,
        receipt = CASE state WHEN 'sent' THEN receipt END,
        next_at = excluded.next_at, action = excluded.action
    WHERE state IN ('failed', 'sent')"""
_ADD_FOR_REPOSITORY = """INSERT INTO outbox (repository, key, next_at, created, action)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (repository, key) DO NOTHING"""
DUE_ACTIONS = """SELECT seq, coalesce(session, '') AS session,
        coalesce(first.repository, sessions.repository) AS repository, action, attempts, receipt
    FROM outbox AS first LEFT JOIN sessions ON sessions.id = session
    WHERE state = 'due' AND next_at <= ?1 AND NOT EXISTS (SELECT 1 FROM outbox AS earlier
        WHERE earlier.state = 'due' AND earlier.next_at <= ?1
            AND earlier.session = first.session AND earlier.seq < first.seq)
    ORDER BY sessions.created, seq LIMIT ?2"""
#: Runs inside the transaction that replaces a leader, so that it records every due action. Typed
#: keys are left out.
INHERIT = """INSERT INTO inherited (former, seq, session, repository, at, action)
    SELECT ?1, seq, coalesce(session, ''), coalesce(outbox.repository, sessions.repository), ?2,
        action
    FROM outbox LEFT JOIN sessions ON sessions.id = session
    WHERE state = 'due' AND action ->> 'type' <> 'press_keys'
    ON CONFLICT DO NOTHING"""
_INHERITED = "SELECT former, at, seq, session, repository, action FROM inherited ORDER BY seq"
_FORGET = "DELETE FROM inherited WHERE former = ?"
ENDS_PROGRAM = """SELECT 1 FROM outbox WHERE session = ? AND state = 'due'
    AND action ->> 'type' IN ('stop', 'release') LIMIT 1"""
OF_SESSION = """SELECT seq, key, state, attempts, created, next_at, done_at, result, reason, error,
        action FROM outbox WHERE session = ? AND substr(key, 1, 11) <> 'press_keys:'
    ORDER BY seq DESC LIMIT ?"""
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
_SENT = """UPDATE outbox SET state = 'sent', receipt = ?, error = ''
    WHERE seq = ? AND state = 'due' RETURNING session"""
_NOTE = "UPDATE outbox SET receipt = ? WHERE seq = ? AND state = 'due'"
# A due message may have been sent before a crash. Two SELECTs, so that each uses its index.
AWAITED = """SELECT seq, session, key, run, state = 'sent' AS sent, receipt FROM (
        SELECT seq, session, key, state, action, receipt FROM outbox WHERE state = 'sent'
        UNION ALL SELECT seq, session, key, state, action, receipt FROM outbox
            WHERE state = 'due' AND action ->> 'type' = 'send_message')
    JOIN sessions ON sessions.id = session WHERE action ->> 'run' = run"""
NEWEST_ACTION = "SELECT max(seq) AS seq FROM outbox"
GIVEN_UP = """SELECT 1 FROM history WHERE session = ?1
    AND (kind = 'failed' OR kind = 'withdrawn' AND data ->> 'tried')
    AND substr(data ->> 'action', 1, length(?2) + 1) IN (?2, ?2 || ':', ?2 || '#') LIMIT 1"""
# The keys of typed keys are `press_keys:...`, and `;` follows `:` in ASCII.
_OF_KEYS = "session = ? AND key BETWEEN 'press_keys:' AND 'press_keys;'"
TYPED = f"SELECT max(created) AS at FROM outbox WHERE {_OF_KEYS}"
WAITING_KEYS = f"SELECT min(created) AS at FROM outbox WHERE {_OF_KEYS} AND state = 'due'"
KEYS_OF_REQUEST = "SELECT action FROM outbox WHERE session = ? AND key = ?"
_FORGET_KEYS = f"DELETE FROM outbox WHERE {_OF_KEYS} AND state <> 'due' AND created < ?"
_ADD_KEYS = """INSERT INTO outbox (session, key, next_at, created, action)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT (session, key) DO NOTHING"""
_TAKE_KEYS = """UPDATE outbox SET state = 'done', done_at = ?, attempts = attempts + 1, action = ?
    WHERE seq = ? AND state = 'due'"""
#: How long typed keys are remembered, so that a repeated request does not type them again.
_KEYS_KNOWN = timedelta(minutes=10)
_WITHDRAW = "DELETE FROM outbox WHERE seq = ? AND state = 'due' RETURNING session, key"

_Data = Mapping[str, str | bool]

_due = RowDecoder(DueAction, "outbox", "seq")
_inherited = RowDecoder(InheritedAction, "inherited", "seq")
_entry = RowDecoder(OutboxEntry, "outbox", "seq")
_keys: msgspec.json.Decoder[PressKeys] = msgspec.json.Decoder(PressKeys)
_awaited = RowDecoder(AwaitedReceipt, "outbox", "seq")


class OutboxTable(StoreTable):
    """Actions in the order they were decided."""

    def add(self, repository: str, actions: Sequence[Action], now: datetime) -> None:
        """Add actions without a session. Those with a stored key are ignored."""
        self._db.write(
            lambda connection: add_repository_actions(connection, repository, actions, now)
        )

    def due(self, now: datetime, limit: int = 50) -> list[DueAction]:
        """Return the actions to execute now, at most one per session, the oldest session first.

        In this order, sessions that began together finish one by one, instead of all at the end.
        All actions without a session come first. An action that waits for its next attempt does not
        delay other actions of its session, so that a stop does not wait for a comment.
        """
        return list(skip_corrupt(_due, self._all(DUE_ACTIONS, (now.timestamp(), limit))))

    def inherited(self) -> list[InheritedAction]:
        """Return the actions that were due when a leader was replaced, in order of decision.

        Includes actions that were done or withdrawn since. An action that was due under several
        former leaders is returned once for each.
        """
        return list(skip_corrupt(_inherited, self._all(_INHERITED)))

    def forget_inherited(self, former: str) -> None:
        """Delete the list of actions that were due when this former leader was replaced."""
        self._execute(_FORGET, (former,))

    def ends_program(self, session: str) -> bool:
        """Whether an action that ends the session's program is due."""
        return self._first(ENDS_PROGRAM, (session,)) is not None

    def newest(self) -> int:
        """Return the highest `seq` of the stored actions; 0 if there is none."""
        row = self._first(NEWEST_ACTION)
        return (row and row["seq"]) or 0

    def given_up(self, session: str, kind: KeyKind) -> bool:
        """Whether an action of this kind ever failed for good in the session.

        An action that was withdrawn after a possible attempt counts too.
        """
        return self._first(GIVEN_UP, (session, kind)) is not None

    def mark_done(
        self,
        seq: int,
        result: str,
        now: datetime,
        *,
        observed: Observation | None = None,
        refreshes: Sequence[RefreshRequest] = (),
    ) -> None:
        """Mark an action as done and wake its session.

        `observed` and `refreshes`, which result from the action, are written in the same
        transaction. Does nothing if the action is not due.
        """

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_DONE, (result, now.timestamp(), seq)).fetchall()
            if marked:
                add_refreshes(connection, refreshes, now)
                if observed is not None:
                    add_observations(connection, [observed], now)
            return _record(connection, marked, HistoryKind.DONE, {"result": result}, now)

        self._change(work)

    def mark_retry(self, seq: int, error: str, next_at: datetime) -> None:
        """Record a failed attempt. The next attempt is at `next_at`."""
        values = (error, next_at.timestamp(), seq)

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_RETRY, values).fetchall()
            return [row["session"] for row in marked if row["session"]]

        self._change(work)

    def note(self, seq: int, receipt: Receipt) -> None:
        """Before a message or an answer is sent, record how its arrival will be recognised."""
        self._execute(_NOTE, (encoded(receipt), seq))

    def mark_sent(self, seq: int, receipt: Receipt) -> None:
        """Record that a message or an answer was sent, and wake its session."""

        def work(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(_SENT, (encoded(receipt), seq)).fetchall()
            for row in rows:
                wake(connection, row["session"], receipt.sent.at)
            return [row["session"] for row in rows]

        self._change(work)

    def awaited(self) -> list[AwaitedReceipt]:
        """Return messages and answers that may have arrived at a current run, oldest first.

        Includes due messages, because a crash may have hidden that they were sent.
        """
        found = skip_corrupt(_awaited, self._all(AWAITED))
        return sorted(found, key=lambda awaited: awaited.seq)

    def mark_failed(self, seq: int, reason: Reason, error: str, now: datetime) -> None:
        """Mark an action as failed for good and wake its session."""
        values = (reason, error, now.timestamp(), seq)
        self._mark(_FAILED, values, HistoryKind.FAILED, {"reason": reason, "error": error}, now)

    def withdraw(
        self,
        seq: int,
        now: datetime,
        *,
        tried: bool = False,
        observed: Observation | None = None,
    ) -> None:
        """Delete a due action and wake its session. A later decision may contain its key again.

        `tried` says whether an attempt may have been made, and may have had an effect.
        `observed` is written in the same transaction.
        """
        data = {"tried": True} if tried else {}

        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(_WITHDRAW, (seq,)).fetchall()
            if marked and observed is not None:
                add_observations(connection, [observed], now)
            return _record(connection, marked, HistoryKind.WITHDRAWN, data, now)

        self._change(work)

    def add_keys(self, session: str, action: PressKeys) -> PressKeys | None:
        """Queue an action that types a person's keys; record in the history who typed how much.

        No decision is needed. Returns None if the action was added. If its key is stored already,
        adds nothing and returns the stored action, whose text may have been erased.
        """
        at = action.at.timestamp()
        row = (session, str(action.key), at, at, encoded(action))
        data = {"count": action.count}

        def work(connection: sqlite3.Connection) -> list[str]:
            forgotten = (session, (action.at - _KEYS_KNOWN).timestamp())
            connection.execute(_FORGET_KEYS, forgotten)
            if not connection.execute(_ADD_KEYS, row).rowcount:
                return []
            add_history(connection, session, HistoryKind.KEYS, action.by, data, action.at)
            return [session]

        if self._change(work):
            return None
        stored = self._first(KEYS_OF_REQUEST, row[:2])
        return None if stored is None else _keys.decode(stored["action"])

    def take_keys(self, seq: int, action: PressKeys, now: datetime) -> bool:
        """Erase a person's keys and mark them as done, right before they go to the terminal.

        Returns False if they are not due any more: then they must not go there.
        """
        erased = encoded(replace(action, paste="", keys=()))
        return bool(self._execute(_TAKE_KEYS, (now.timestamp(), erased, seq)))

    def drop_keys(self, session: str, action: PressKeys, why: str, now: datetime) -> None:
        """Record in the history that keys from `take_keys` were not typed, or may not have been.

        `why` is the reason, as a text for people.
        """
        data = {"count": action.count, "by": action.by, "dropped": why}

        def work(connection: sqlite3.Connection) -> list[str]:
            add_history(connection, session, HistoryKind.KEYS, BOT, data, now)
            return [session]

        self._change(work)

    def typed_at(self, session: str) -> datetime | None:
        """Return when somebody last typed into the terminal by page or API; None if nobody did."""
        row = self._first(TYPED, (session,))
        return from_timestamp(row["at"]) if row and row["at"] is not None else None

    def keys_wait_since(self, session: str) -> datetime | None:
        """Return when the oldest keys still waiting to be typed were queued; None if none are."""
        row = self._first(WAITING_KEYS, (session,))
        return from_timestamp(row["at"]) if row and row["at"] is not None else None

    def reset_due(self, now: datetime) -> None:
        """Set the due time of overdue actions to now, after a time in which no bot was running."""
        self._execute(_RESET_DUE, (now.timestamp(),))

    def defer(self, seq: int, until: datetime, why: str = "") -> None:
        """Postpone a due action without counting an attempt. If given, `why` replaces its error."""
        self._execute(_DEFER, {"seq": seq, "until": until.timestamp(), "why": why})

    def of(self, session: str, limit: int = 200) -> list[OutboxEntry]:
        """Return the last `limit` actions of a session that are not `PressKeys`, newest first."""
        return list(skip_corrupt(_entry, self._all(OF_SESSION, (session, limit))))

    def run_starts(self, session: str) -> dict[int, datetime]:
        """Return when each run's start was decided, which is before the run's files are made."""
        rows = self._all(RUN_STARTS, (session,))
        return {int(row["run"]): from_timestamp(row["at"]) for row in rows}

    def _mark(
        self,
        statement: str,
        values: tuple[str | float | int, ...],
        kind: HistoryKind,
        data: _Data,
        now: datetime,
    ) -> None:
        def work(connection: sqlite3.Connection) -> list[str]:
            marked = connection.execute(statement, values).fetchall()
            return _record(connection, marked, kind, data, now)

        self._change(work)


def add_actions(
    connection: sqlite3.Connection, session: str, actions: Sequence[Action], now: datetime
) -> list[str]:
    """Add actions inside a transaction. Returns the keys of those that were neither due nor done.

    If an action is already stored as failed or sent, it becomes due again, because a decision lists
    such an action only if the action is to be repeated.
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
    """Add actions without a session, inside a transaction. Those with a stored key are ignored."""
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
    """Record events of actions, and wake their sessions, inside a transaction.

    Actions without a session are left out. Returns the ids of the sessions.
    """
    sessions = [row for row in rows if row["session"]]
    for row in sessions:
        add_history(connection, row["session"], kind, BOT, {"action": row["key"], **data}, now)
        wake(connection, row["session"], now)
    return [row["session"] for row in sessions]
