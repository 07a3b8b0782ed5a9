"""Loads the facts of many sessions at once, and records decisions about them with their actions.

Nothing is locked between reading a session and writing its decision. A change of its facts
increments its version and makes it due, and a decision about an older version is refused.
"""

import hashlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.errors import CorruptRow, SessionChanged, StoreFailure
from bot.store.history import BOT, add_history, history_row, wake
from bot.store.incidents import freezes_by_scope, widest_freeze
from bot.store.outbox import add_actions
from bot.store.repositories import archived
from bot.store.rows import (
    Row,
    RowDecoder,
    by_session,
    columns,
    corrupt_row,
    encoded,
    from_timestamp,
)
from bot.store.sessions import Related
from bot.store.slots import free_slot
from bot.store.usage import day_of, spent_beside, spent_on_day
from bot.store.values import (
    DecisionRecord,
    HistoryKind,
    LoadedSession,
    Receipt,
    ReplayableDecision,
    SessionDecision,
)
from lifecycle.model.facts import Done, Ended, Facts, Failure, Sent, Spending
from lifecycle.model.key import Key, KeyKind

SESSIONS = """SELECT *, id AS session, due AS recheck_at FROM sessions
    WHERE id IN (SELECT value FROM json_each(?))"""
OUTBOX = """SELECT seq, session, key, state, done_at AS at, next_at, result, reason,
        error AS detail, action, receipt
    FROM outbox WHERE session IN (SELECT value FROM json_each(?))
        AND substr(key, 1, 11) <> 'press_keys:' -- What a person types is no fact.
    ORDER BY session, seq"""
_RECHECK = "UPDATE sessions SET due = :recheck_at WHERE id = :id AND version = :version"
# A restore is a decision that reopens an ended session: its budgets count the runs from first_run
# on, which is the one after the last run that started.
_DECIDE = """UPDATE sessions SET due = :recheck_at, version = version + 1,
        status = :status, reason = :reason, because = :because, blockers = :blockers,
        cause = :cause,
        since = CASE WHEN status = :status THEN since ELSE :now END,
        run = :run, ended = :ended, slot = CASE WHEN :frees_slot THEN 0 ELSE slot END,
        wants_slot = :wants_slot, waits = CASE WHEN :wants_slot THEN waits ELSE '' END,
        wanted_since = CASE WHEN :wants_slot THEN coalesce(wanted_since, :now) END,
        taken_back = CASE WHEN :restored THEN ended ELSE taken_back END,
        restored_at = CASE WHEN :restored THEN :now ELSE restored_at END,
        first_run = CASE WHEN :restored THEN 1 + CAST(agent ->> 'run' AS INTEGER) ELSE first_run END
    WHERE id = :id AND version = :version"""
#: All sessions of this session's project. No rows while any of these sessions is open.
ENDED_PROJECT = """SELECT id, ended, finished FROM sessions
    WHERE project = (SELECT project FROM sessions WHERE id = ?1) AND NOT EXISTS (
        SELECT 1 FROM sessions WHERE ended IS NULL
            AND project = (SELECT project FROM sessions WHERE id = ?1))"""
_SET_FINISHED = "UPDATE sessions SET finished = ? WHERE id = ?"
_ADD_POLICY = "INSERT INTO policies (hash, policy) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ADD_RECORD = "INSERT INTO decision_records (history, policy, record) VALUES (?, ?, ?)"
RECORDS = """SELECT seq, session, at, kind, actor, data, record, policies.policy
    FROM history JOIN decision_records ON decision_records.history = seq
    JOIN policies ON policies.hash = decision_records.policy
    WHERE session = ? ORDER BY seq"""
#: The fields of a decision that its row in the history contains.
_SUMMARY = ("status", "reason", "because", "blockers")


class _Covers(Struct, frozen=True):
    """Further keys from an action's JSON, which are pending or done together with its own key."""

    covers: tuple[Key, ...] = ()


class _Ordered(Struct, frozen=True):
    """The parts of an action in the outbox that become facts."""

    key: Key
    action: _Covers
    receipt: Receipt | None


class _End(Struct, frozen=True):
    """The end of one session.

    `finished` has the numbers of ended sessions by status if `_count_ended` counted them when this
    session ended; otherwise, it is empty.
    """

    id: str
    ended: Ended
    finished: dict[str, int]


class _Record(Struct, frozen=True, kw_only=True):
    """A decision with its facts: the uncompressed content of the column `record`."""

    facts: Facts
    decision: dict[str, Any]


_facts = RowDecoder(Facts, "sessions")
_before = RowDecoder(SessionDecision, "sessions")
_end = RowDecoder(_End, "sessions")
_ordered = RowDecoder(_Ordered, "outbox", "seq")
_done = RowDecoder(Done, "outbox", "seq")
_failure = RowDecoder(Failure, "outbox", "seq")
_replayable = RowDecoder(ReplayableDecision, "policies", "seq")
_record = msgspec.msgpack.Decoder(_Record)


class FactsReader(StoreTable):
    """Reads the facts of sessions from all tables."""

    def load(self, sessions: Sequence[str]) -> list[LoadedSession]:
        """Load sessions from one snapshot, in the order of `sessions`, without unknown ids."""
        with self._db.read() as connection:
            found = {one.session: one for one in _load(connection, sessions, self._db.clock())}
        return [found[session] for session in sessions if session in found]

    def get(self, session: str) -> Facts:
        """Return a session's facts. Raises `CorruptRow`, or `StoreFailure` for an unknown id."""
        loaded = self.load([session])
        if not loaded:
            raise StoreFailure(f"there is no session {session!r}: `mergewright ls` lists them")
        (one,) = loaded
        if isinstance(one.facts, CorruptRow):
            raise one.facts
        return one.facts


def _load(
    connection: sqlite3.Connection, ids: Sequence[str], now: datetime
) -> Iterator[LoadedSession]:
    """Load each session. A session with a corrupt row has the exception as its facts."""
    among = (encoded(ids),)
    related, beside = Related(connection, ids), spent_beside(connection, *among)
    outbox = by_session(connection.execute(OUTBOX, among))
    freezes, closed = freezes_by_scope(connection), archived(connection)
    today: dict[tuple[str, str], Spending] = {}

    def spent_today(column: str, name: str) -> Spending:
        if (column, name) not in today:
            today[column, name] = spent_on_day(connection, column, name, day_of(now))
        return today[column, name]

    for row in connection.execute(SESSIONS, among):
        name, repository = row["id"], row["repository"]
        loaded = partial(LoadedSession, session=name, repository=repository, version=row["version"])
        try:
            facts = _facts(
                row,
                spent_beside=beside.get(name, Spending()),
                spent_today=spent_today("repository", repository),
                spent_by_person=spent_today("requester", row["requester"]),
                spent_by_agent=spent_today("agent", row["agent_name"]),
                frozen=widest_freeze(freezes, row["project"], name),
                archived=repository in closed,
                **related.fields(row),
                **_outbox_facts(outbox.get(name, ())),
            )
            yield loaded(facts=facts, before=_before(row))
        except CorruptRow as error:
            yield loaded(facts=error)


def _outbox_facts(rows: Iterable[Row]) -> dict[str, Any]:
    """Return those fields of `Facts` that are derived from a session's rows in the outbox."""
    done: dict[Key, Done] = {}
    pending: set[Key] = set()
    sent: dict[Key, Sent] = {}
    failures: dict[Key, Failure] = {}
    starts: list[float] = []
    for row in rows:
        one, state = _ordered(row), row["state"]
        keys = (one.key, *one.action.covers)
        if state == "due":
            pending.update(keys)
            if one.key.kind is KeyKind.START:
                starts.append(row["next_at"])
        elif state == "done":
            done.update(dict.fromkeys(keys, _done(row)))
        elif state == "failed":
            failures[one.key] = _failure(row)
        elif one.receipt is not None:
            sent[one.key] = one.receipt.sent
    return {
        "done": done,
        "pending": frozenset(pending),
        "sent": sent,
        "failures": failures,
        # When the pending start was or will be attempted next.
        "start_due": from_timestamp(max(starts)) if starts else None,
    }


class DecisionsTable(StoreTable):
    """Decisions about sessions, with their records for replays."""

    def record(
        self, decided: Sequence[tuple[LoadedSession, SessionDecision]], now: datetime
    ) -> list[Future[list[str]]]:
        """Write decisions and their actions, all in one transaction, and wait until it is on disk.

        Each future holds the keys of the session's actions that became due. If the session has
        changed since it was loaded, its future raises `SessionChanged`, and nothing is written for
        it; the other sessions are not affected. The history gets a row only if an action became
        due, or if the status, a reason or the blockers differ from those of the session's previous
        decision.
        """
        futures = self._db.submit_all([partial(_decide, *each, now) for each in decided])
        wait(futures)
        self._db.announce(
            loaded.session
            for (loaded, decision), future in zip(decided, futures, strict=True)
            if future.exception() is None and not _only_due(loaded, decision)
        )
        return futures

    def replayable(self, session: str) -> list[ReplayableDecision]:
        """Return a session's recorded decisions, oldest first, except expired ones.

        Raises `CorruptRow` for a record that cannot be read: a replay that skipped it would seem to
        find no difference.
        """
        return list(map(_replay, self._all(RECORDS, (session,))))


def _only_due(loaded: LoadedSession, decision: SessionDecision) -> bool:
    before = loaded.before
    return replace(decision, recheck_at=before.recheck_at, record=None) == before


def _decide(
    loaded: LoadedSession, decision: SessionDecision, now: datetime, connection: sqlite3.Connection
) -> list[str]:
    """Write a decision. Returns the keys of actions that became due. Raises `SessionChanged`."""
    before = loaded.before
    values = {
        **columns(replace(decision, actions=(), record=None)),
        "id": loaded.session,
        "version": loaded.version,
        "restored": before.ended is not None and decision.ended is None,
        "now": now.timestamp(),
    }
    if _only_due(loaded, decision):
        _check_version(connection.execute(_RECHECK, values), loaded)
        return []
    _check_version(connection.execute(_DECIDE, values), loaded)
    if before.ended is None and decision.ended is not None:
        _count_ended(connection, loaded.session, now)
    if decision.frees_slot:
        free_slot(connection, loaded.session, now)
    new = add_actions(connection, loaded.session, decision.actions, now)
    summary = {name: getattr(decision, name) for name in _SUMMARY}
    if new or any(getattr(before, name) != value for name, value in summary.items()):
        data = {**summary, "actions": new}
        written = add_history(connection, loaded.session, HistoryKind.DECISION, BOT, data, now)
        if decision.record is not None:
            _add_record(connection, written, decision.record)
    return new


def _check_version(written: sqlite3.Cursor, loaded: LoadedSession) -> None:
    if written.rowcount != 1:
        raise SessionChanged(
            f"session {loaded.session!r} changed during its decision: nothing was written, it is"
            " reconciled again"
        )


def _count_ended(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Count the ended sessions of this session's project, unless the project has an open session.

    Stores in this session how many have ended in each status since the last such count. They are
    posted as the project's summary (`post_summary`). Call this function in the transaction that
    ends the session.
    """
    ends = list(map(_end, connection.execute(ENDED_PROJECT, (session,)).fetchall()))
    since = max((one.ended.at for one in ends if one.id != session and one.finished), default=None)
    counts = Counter(one.ended.status for one in ends if since is None or one.ended.at > since)
    connection.execute(_SET_FINISHED, (encoded(counts), session))
    if counts:
        wake(connection, session, now)


def _add_record(connection: sqlite3.Connection, history: int, record: DecisionRecord) -> None:
    policy = encoded(record.policy)
    hashed = hashlib.sha256(policy.encode()).hexdigest()
    connection.execute(_ADD_POLICY, (hashed, policy))
    # JSON keys are strings only; MessagePack keeps the keys of the mappings in facts as they are.
    both = _Record(facts=record.facts, decision=msgspec.to_builtins(record.decision))
    packed = msgspec.msgpack.encode(both)
    connection.execute(_ADD_RECORD, (history, hashed, zlib.compress(packed)))


def _replay(row: Row) -> ReplayableDecision:
    try:
        record = _record.decode(zlib.decompress(row["record"]))
    except (zlib.error, msgspec.DecodeError) as error:
        raise corrupt_row("decision_records", row["seq"], "record", error) from error
    return _replayable(row, row=history_row(row), facts=record.facts, decision=record.decision)
