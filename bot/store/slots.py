"""Slots: their holders, the queue for them, and their assignment."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from statistics import median

from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.rows import Row, from_timestamp
from bot.store.values import HistoryKind, QueuedSession
from lifecycle.judge.capacity import Caps, Contender, hand_out, places

#: Whether an assignment can change anything: a waiting session has no reason, or a slot is free.
ASSIGNABLE = """SELECT EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1 AND waits = ''
    ) OR ((SELECT count(*) FROM sessions WHERE slot = 1) < ? AND EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1))"""
#: awaited: a person's command requested the run since the session last had a slot.
WAITING = """SELECT id, project, agent_type, agent_name, requester, priority, waits,
        wanted_since AS since, EXISTS (SELECT 1 FROM commands WHERE session = sessions.id
            AND kind IN ('answer', 'restart', 'restore', 'resume', 'retry', 'start', 'tell')
            AND at >= coalesce((SELECT max(freed_at) FROM slots WHERE session = sessions.id), 0)
        ) AS awaited
    FROM sessions WHERE slot = 0 AND wants_slot = 1"""
HOLDING = """SELECT sessions.id, project, sessions.agent_type, agent_name, requester, priority,
        slots.taken_at AS since, slots.requested AS awaited
    FROM sessions JOIN slots ON slots.session = sessions.id AND freed_at IS NULL WHERE slot = 1"""
#: How long each agent type held its last 50 slots.
DURATIONS = """SELECT agent_type, freed_at - taken_at AS seconds FROM (
        SELECT *, row_number() OVER (PARTITION BY agent_type ORDER BY freed_at DESC) AS age
        FROM slots WHERE freed_at IS NOT NULL
    ) WHERE age <= 50 ORDER BY agent_type"""
_TAKE = """UPDATE sessions SET slot = 1, wants_slot = 0, wanted_since = NULL, waits = ''
    WHERE id = ?"""
_ADD_SLOT = """INSERT INTO slots (session, agent_type, taken_at, requested)
    SELECT id, agent_type, ?, ? FROM sessions WHERE id = ?"""
_FREE = "UPDATE slots SET freed_at = ? WHERE session = ? AND freed_at IS NULL"
PRIORITY = "SELECT priority FROM sessions WHERE id = ?"
_PRIORITIZE = "UPDATE sessions SET priority = ? WHERE id = ?"
_WAIT = "UPDATE sessions SET waits = ? WHERE id = ?"


class SlotsTable(StoreTable):
    """The record of slot holders, and the queue of sessions that wait for a slot."""

    def assign(self, caps: Caps, free_mb: int | None = None) -> list[str]:
        """Assign free slots to waiting sessions, and write why each of the others waits.

        `free_mb` is the free memory of the machine in megabytes, None if it is unknown. Returns
        the ids of the sessions for which something changed; they are woken.
        """
        now = self._db.clock()
        with self._db.read() as connection:
            (assignable,) = connection.execute(ASSIGNABLE, (caps.sessions,)).fetchone()
            if not assignable or not any(_changes(connection, caps, free_mb, now)):
                return []

        def work(connection: sqlite3.Connection) -> list[str]:
            given, reasons = _changes(connection, caps, free_mb, now)
            for one in given:
                connection.execute(_TAKE, (one.session,))
                connection.execute(_ADD_SLOT, (now.timestamp(), one.awaited, one.session))
                add_history(connection, one.session, HistoryKind.SLOT, BOT, {}, now)
            connection.executemany(_WAIT, [(why, session) for session, why in reasons.items()])
            changed = [*(one.session for one in given), *reasons]
            for session in changed:
                wake(connection, session, now)
            return changed

        changed = self._db.write(work)
        self._db.announce(changed)
        return changed

    def prioritize(self, session: str, priority: int) -> None:
        """Set how many steps ahead a session is in the queue."""
        with self._db.read() as connection:
            row = connection.execute(PRIORITY, (session,)).fetchone()
        if row is not None and row["priority"] != priority:
            self._db.write(lambda connection: connection.execute(_PRIORITIZE, (priority, session)))
            self._db.announce([session])

    def handover_blocker(self, session: str, agent: str, agent_type: str, caps: Caps) -> str:
        """Why a session with a slot cannot be handed over to this agent now; empty if it can."""
        with self._db.read() as connection:
            holding = [_contender(row) for row in connection.execute(HOLDING)]
        others = [one for one in holding if one.session != session]
        taking = [
            replace(one, agent=agent, agent_type=agent_type)
            for one in holding
            if one.session == session
        ]
        return hand_out(taking, others, caps, None, self._db.clock()).waits.get(session, "")

    def queue(self, caps: Caps) -> list[QueuedSession]:
        """The sessions that wait for a slot, in their order, with an estimate of their start."""
        with self._db.read() as connection:
            rows = {row["id"]: row for row in connection.execute(WAITING)}
            holding = [_contender(row) for row in connection.execute(HOLDING)]
            durations = _medians(connection.execute(DURATIONS))
        waiting = [_contender(row) for row in rows.values()]
        return [
            QueuedSession(
                session=place.session,
                position=place.position,
                starts_at=place.starts_at,
                waits=rows[place.session]["waits"],
                since=from_timestamp(rows[place.session]["since"]),
                priority=rows[place.session]["priority"],
                awaited=bool(rows[place.session]["awaited"]),
            )
            for place in places(waiting, holding, caps, durations, self._db.clock())
        ]


def free_slot(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: close the record of the slot that a session gave back."""
    connection.execute(_FREE, (now.timestamp(), session))


def _changes(
    connection: sqlite3.Connection, caps: Caps, free_mb: int | None, now: datetime
) -> tuple[list[Contender], dict[str, str]]:
    """The sessions that get a slot, and the new reasons, by id, of those whose reason changed."""
    rows = {row["id"]: row for row in connection.execute(WAITING)}
    if not rows:
        return [], {}
    waiting = {name: _contender(row) for name, row in rows.items()}
    holding = [_contender(row) for row in connection.execute(HOLDING)]
    handed = hand_out(waiting.values(), holding, caps, free_mb, now)
    reasons = {name: why for name, why in handed.waits.items() if rows[name]["waits"] != why}
    return [waiting[name] for name in handed.given], reasons


def _contender(row: Row) -> Contender:
    return Contender(
        session=row["id"],
        project=row["project"],
        agent_type=row["agent_type"],
        agent=row["agent_name"],
        requester=row["requester"],
        since=from_timestamp(row["since"]),
        priority=row["priority"],
        awaited=bool(row["awaited"]),
    )


def _medians(rows: Iterable[Row]) -> dict[str, float]:
    """The median number of seconds by agent type."""
    return {
        kind: median(row["seconds"] for row in held)
        for kind, held in groupby(rows, key=lambda row: str(row["agent_type"]))
    }
