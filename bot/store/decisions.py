"""A visit's two steps at the store: read sessions, record what was decided about them.

Nothing is held in between. Every change of a session counts up its version, and a decision about
an older version is not written: its session is due again. A bot that lost its lease writes nothing.
"""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.errors import Fenced
from bot.store.finishing import mark_project_finished
from bot.store.history import BOT, add_history
from bot.store.judgements import add_judgement
from bot.store.outbox import add_actions
from bot.store.rows import encoded, to_timestamp
from bot.store.slots import free_slot
from bot.store.values import HistoryKind, LoadedSession, SessionDecision

_RECHECK = "UPDATE sessions SET due = :due WHERE id = :id AND version = :version"
# Where an outcome is no more, that is a restore: the runs after the last one that started are of
# another life.
_DECIDED = """UPDATE sessions SET due = :due, version = version + 1,
        status = :status, reason = :reason, because = :because, blockers = :blockers,
        since = CASE WHEN status = :status THEN since ELSE :now END, decided_at = :now,
        run = :run, ended = :ended, slot = slot AND NOT :frees_slot,
        wants_slot = :wants_slot, waits = CASE WHEN :wants_slot THEN waits ELSE '' END,
        wanted_since = CASE WHEN :wants_slot THEN coalesce(wanted_since, :now) END,
        restored_at = CASE WHEN :restored THEN :now ELSE restored_at END,
        first_run = CASE WHEN :restored THEN 1 + json_extract(agent, '$.run') ELSE first_run END
    WHERE id = :id AND version = :version"""


class DecisionsTable(StoreTable):
    """Decisions about sessions, written with all that follows from them."""

    def record(
        self, decided: Sequence[tuple[LoadedSession, SessionDecision]], now: datetime
    ) -> list[Future[list[str]]]:
        """Write decisions and what follows from them down, in one transaction.

        Returns, for each, the keys of the actions that are new; or `Fenced`, with nothing written,
        where the session has changed since it was read. That and any other failure is its own
        alone. The history gets a row only where a decision differs from the one before or brings
        new actions.
        """
        futures = self._db.submit_all([partial(_record, *each, now) for each in decided])
        wait(futures)
        self._db.announce(
            visit.session
            for (visit, decision), future in zip(decided, futures, strict=True)
            if future.exception() is None and not _only_due(visit, decision)
        )
        return futures


def _only_due(visit: LoadedSession, decision: SessionDecision) -> bool:
    before = visit.before
    return replace(decision, recheck_at=before.recheck_at, judgement=None) == before


def _record(
    visit: LoadedSession, decision: SessionDecision, now: datetime, connection: sqlite3.Connection
) -> list[str]:
    """Write one decision down; the keys of the actions that are new. Raises `Fenced`."""
    before = visit.before
    at = now.timestamp()
    due = {"id": visit.session, "version": visit.version, "due": to_timestamp(decision.recheck_at)}
    if _only_due(visit, decision):
        _fenced(connection.execute(_RECHECK, due), visit)
        return []
    said = {
        "status": decision.status,
        "reason": decision.reason,
        "because": decision.because,
        "blockers": encoded(decision.blockers),
    }
    held = {
        "run": decision.run,
        "ended": None if decision.ended is None else encoded(decision.ended),
        "frees_slot": decision.frees_slot,
        "wants_slot": decision.wants_slot,
        "restored": before.ended is not None and decision.ended is None,
    }
    _fenced(connection.execute(_DECIDED, {**due, **said, **held, "now": at}), visit)
    if before.ended is None and decision.ended is not None:
        mark_project_finished(connection, visit.session, now)
    if decision.frees_slot:
        free_slot(connection, visit.session, now)
    new = add_actions(connection, visit.session, decision.actions, now)
    if new or any(getattr(before, name) != getattr(decision, name) for name in said):
        data = {**said, "blockers": decision.blockers, "actions": new}
        written = add_history(connection, visit.session, HistoryKind.DECISION, BOT, data, now)
        if decision.judgement is not None:
            add_judgement(connection, written, decision.judgement)
    return new


def _fenced(written: sqlite3.Cursor, visit: LoadedSession) -> None:
    if written.rowcount != 1:
        raise Fenced(
            f"session {visit.session!r} changed while it was decided about: nothing was written,"
            " it is visited again"
        )
