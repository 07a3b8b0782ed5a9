"""Decisions about sessions: written with their actions, and with the facts they are based on.

Nothing is locked between reading a session and writing its decision. Every change of a session
increments its version, and a decision about an older version is refused: the session is due again.
"""

import hashlib
import sqlite3
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.errors import SessionChanged
from bot.store.history import BOT, add_history, history_row, wake
from bot.store.outbox import add_actions
from bot.store.rows import Row, corrupt_row, decoded, encoded, ended_of, to_timestamp
from bot.store.slots import free_slot
from bot.store.values import (
    DecisionRecord,
    HistoryKind,
    LoadedSession,
    ReplayableDecision,
    SessionDecision,
)
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy

_RECHECK = "UPDATE sessions SET due = :due WHERE id = :id AND version = :version"
# A restore is a decision that takes an outcome back: the runs after the last one that started
# belong to the restored session.
_DECIDE = """UPDATE sessions SET due = :due, version = version + 1,
        status = :status, reason = :reason, because = :because, blockers = :blockers,
        since = CASE WHEN status = :status THEN since ELSE :now END,
        run = :run, ended = :ended, slot = CASE WHEN :frees_slot THEN 0 ELSE slot END,
        wants_slot = :wants_slot, waits = CASE WHEN :wants_slot THEN waits ELSE '' END,
        wanted_since = CASE WHEN :wants_slot THEN coalesce(wanted_since, :now) END,
        restored_at = CASE WHEN :restored THEN :now ELSE restored_at END,
        first_run = CASE WHEN :restored THEN 1 + CAST(agent ->> 'run' AS INTEGER) ELSE first_run END
    WHERE id = :id AND version = :version"""
OPEN_IN_PROJECT = """SELECT 1 FROM sessions WHERE ended IS NULL
    AND project = (SELECT project FROM sessions WHERE id = ?) LIMIT 1"""
ENDS_IN_PROJECT = """SELECT id, ended, outcomes FROM sessions
    WHERE project = (SELECT project FROM sessions WHERE id = ?)"""
_SET_OUTCOMES = "UPDATE sessions SET outcomes = ? WHERE id = ?"
_ADD_POLICY = "INSERT INTO policies (hash, policy) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ADD_RECORD = "INSERT INTO decision_records (history, policy, record) VALUES (?, ?, ?)"
RECORDS = """SELECT seq, session, at, kind, actor, data, record, policies.policy
    FROM history JOIN decision_records ON decision_records.history = seq
    JOIN policies ON policies.hash = decision_records.policy
    WHERE session = ? ORDER BY seq"""


class _Record(Struct, frozen=True, kw_only=True):
    """The column `record`, before it is compressed: one or two kilobytes a decision."""

    facts: Facts
    decision: dict[str, Any]


_outcomes = msgspec.json.Decoder(dict[str, int])
_record = msgspec.msgpack.Decoder(_Record)
_policy = msgspec.json.Decoder(Policy)


class DecisionsTable(StoreTable):
    """Decisions about sessions, with their records for replays."""

    def record(
        self, decided: Sequence[tuple[LoadedSession, SessionDecision]], now: datetime
    ) -> list[Future[list[str]]]:
        """Write decisions and their actions, all in one transaction.

        Each future holds the keys of the session's new actions; or `SessionChanged`, with nothing
        written, if the session changed since it was loaded. A failure concerns its own session
        alone. The history gets a row only if a decision differs from the one before or has new
        actions.
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
        """Every recorded decision of a session that has not been deleted, oldest first.

        Raises `CorruptRow`: a skipped one would count as replayed without a difference.
        """
        with self._db.read() as connection:
            return [_replayable(row) for row in connection.execute(RECORDS, (session,))]


def outcomes_of(row: Row) -> dict[str, int]:
    """How many sessions of the project ended with which status, if this one was the last of them.

    Empty if it was not.
    """
    return decoded(_outcomes, row, "sessions", "id", "outcomes")


def _only_due(loaded: LoadedSession, decision: SessionDecision) -> bool:
    before = loaded.before
    return replace(decision, recheck_at=before.recheck_at, record=None) == before


def _decide(
    loaded: LoadedSession, decision: SessionDecision, now: datetime, connection: sqlite3.Connection
) -> list[str]:
    """Write one decision. Returns the keys of the new actions. Raises `SessionChanged`."""
    before = loaded.before
    identity = {
        "id": loaded.session,
        "version": loaded.version,
        "due": to_timestamp(decision.recheck_at),
    }
    if _only_due(loaded, decision):
        _check_version(connection.execute(_RECHECK, identity), loaded)
        return []
    summary = {
        "status": decision.status,
        "reason": decision.reason,
        "because": decision.because,
        "blockers": encoded(decision.blockers),
    }
    state = {
        "run": decision.run,
        "ended": None if decision.ended is None else encoded(decision.ended),
        "frees_slot": decision.frees_slot,
        "wants_slot": decision.wants_slot,
        "restored": before.ended is not None and decision.ended is None,
    }
    values = {**identity, **summary, **state, "now": now.timestamp()}
    _check_version(connection.execute(_DECIDE, values), loaded)
    if before.ended is None and decision.ended is not None:
        _count_outcomes(connection, loaded.session, now)
    if decision.frees_slot:
        free_slot(connection, loaded.session, now)
    new = add_actions(connection, loaded.session, decision.actions, now)
    if new or any(getattr(before, name) != getattr(decision, name) for name in summary):
        data = {**summary, "blockers": decision.blockers, "actions": new}
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


def _count_outcomes(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """In the transaction that ends a session: if it was its project's last open one, count the
    outcomes of all that ended since the project had no open session before."""
    counts: Counter[str] = Counter()
    if connection.execute(OPEN_IN_PROJECT, (session,)).fetchone() is None:
        rows = connection.execute(ENDS_IN_PROJECT, (session,)).fetchall()
        ends = {row["id"]: ended for row in rows if (ended := ended_of(row))}
        last = [ends[row["id"]].at for row in rows if row["id"] != session and outcomes_of(row)]
        since = max(last, default=None)
        counts.update(
            ended.status.value for ended in ends.values() if since is None or ended.at > since
        )
    connection.execute(_SET_OUTCOMES, (encoded(counts), session))
    if counts:
        wake(connection, session, now)


def _add_record(connection: sqlite3.Connection, history: int, record: DecisionRecord) -> None:
    policy = encoded(record.policy)
    hashed = hashlib.sha256(policy.encode()).hexdigest()
    connection.execute(_ADD_POLICY, (hashed, policy))
    # JSON has no keys but texts; MessagePack writes the mappings of facts as they are.
    both = _Record(facts=record.facts, decision=msgspec.to_builtins(record.decision))
    packed = msgspec.msgpack.encode(both)
    connection.execute(_ADD_RECORD, (history, hashed, zlib.compress(packed)))


def _replayable(row: Row) -> ReplayableDecision:
    try:
        record = _record.decode(zlib.decompress(row["record"]))
    except (zlib.error, msgspec.DecodeError) as error:
        raise corrupt_row("decision_records", row["seq"], "record", error) from error
    return ReplayableDecision(
        row=history_row(row),
        facts=record.facts,
        policy=decoded(_policy, row, "policies", "seq", "policy"),
        decision=record.decision,
    )
