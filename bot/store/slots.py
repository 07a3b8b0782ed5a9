"""Slots: who wants one, who holds one, how long they were held, and handing them out."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from statistics import median

from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history
from bot.store.rows import Row, from_timestamp
from bot.store.values import HistoryKind, QueuedSession
from bot.store.wake import wake
from lifecycle.judge.capacity import Caps, Contender, hand_out, places

#: Whether a look may change anything: somebody was not told yet why it waits, or a slot is free.
WORTH_IT = """SELECT EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1 AND waits = ''
    ) OR ((SELECT count(*) FROM sessions WHERE slot = 1) < ? AND EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1))"""
#: What a person asks for is awaited from then on, until the session has had a slot for it.
WAITING = """SELECT id, project, agent_type, agent_name, requester, priority, waits,
        wanted_since AS since, EXISTS (SELECT 1 FROM commands WHERE session = sessions.id
            AND kind IN ('answer', 'restart', 'restore', 'resume', 'retry', 'start', 'tell')
            AND at >= coalesce((SELECT max(freed) FROM slots WHERE session = sessions.id), 0)
        ) AS awaited
    FROM sessions WHERE slot = 0 AND wants_slot = 1"""
HOLDING = """SELECT sessions.id, project, sessions.agent_type, agent_name, requester, priority,
        slots.taken AS since, slots.awaited
    FROM sessions JOIN slots ON slots.session = sessions.id AND freed IS NULL WHERE slot = 1"""
#: The newest of each agent type tell how long it holds a slot.
HELD = """SELECT agent_type, freed - taken AS seconds FROM (
        SELECT *, row_number() OVER (PARTITION BY agent_type ORDER BY freed DESC) AS age
        FROM slots WHERE freed IS NOT NULL
    ) WHERE age <= 50 ORDER BY agent_type"""
_TAKE = """UPDATE sessions SET slot = 1, wants_slot = 0, wanted_since = NULL, waits = ''
    WHERE id = ?"""
_TAKEN = """INSERT INTO slots (session, agent_type, taken, awaited)
    SELECT id, agent_type, ?, ? FROM sessions WHERE id = ?"""
_FREED = "UPDATE slots SET freed = ? WHERE session = ? AND freed IS NULL"
PRIORITY = "SELECT priority FROM sessions WHERE id = ?"
_PRIORITISE = "UPDATE sessions SET priority = ? WHERE id = ?"
_WAIT = "UPDATE sessions SET waits = ? WHERE id = ?"


class SlotsTable(StoreTable):
    """The table of slots, and the line before it."""

    def assign(self, caps: Caps, free_mb: int | None = None) -> list[str]:
        """Give the slots that are free to those that want one, and tell the others why not.

        `free_mb` is the machine's free memory; None: not known. Returns the sessions for which
        something changed: they are visited.
        """
        now = self._db.clock()
        with self._db.read() as connection:
            (worth_it,) = connection.execute(WORTH_IT, (caps.sessions,)).fetchone()
            if not worth_it or not any(_changes(connection, caps, free_mb, now)):
                return []

        def work(connection: sqlite3.Connection) -> list[str]:
            given, told = _changes(connection, caps, free_mb, now)
            for one in given:
                connection.execute(_TAKE, (one.session,))
                connection.execute(_TAKEN, (now.timestamp(), one.awaited, one.session))
                add_history(connection, one.session, HistoryKind.SLOT, BOT, {}, now)
            connection.executemany(_WAIT, [(why, session) for session, why in told.items()])
            changed = [*(one.session for one in given), *told]
            for session in changed:
                wake(connection, session, now)
            return changed

        changed = self._db.write(work)
        self._db.announce(changed)
        return changed

    def prioritize(self, session: str, priority: int) -> None:
        """Move a session up or down the line."""
        with self._db.read() as connection:
            row = connection.execute(PRIORITY, (session,)).fetchone()
        if row is not None and row["priority"] != priority:
            self._db.write(lambda connection: connection.execute(_PRIORITISE, (priority, session)))
            self._db.announce([session])

    def handover_blocker(self, session: str, agent: str, agent_type: str, caps: Caps) -> str:
        """Why the holder of a slot may not go on under this agent now; empty: it may."""
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
        """Those that wait for a slot, who is next first, with an estimate of when."""
        with self._db.read() as connection:
            rows = {row["id"]: row for row in connection.execute(WAITING)}
            holding = [_contender(row) for row in connection.execute(HOLDING)]
            usual = _usual(connection.execute(HELD))
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
            for place in places(waiting, holding, caps, usual, self._db.clock())
        ]


def free_slot(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: its slot was given back, so write down how long it was held."""
    connection.execute(_FREED, (now.timestamp(), session))


def _changes(
    connection: sqlite3.Connection, caps: Caps, free_mb: int | None, now: datetime
) -> tuple[list[Contender], dict[str, str]]:
    """Who gets a slot, and who of the others is told something else than before."""
    rows = {row["id"]: row for row in connection.execute(WAITING)}
    if not rows:
        return [], {}
    waiting = {name: _contender(row) for name, row in rows.items()}
    holding = [_contender(row) for row in connection.execute(HOLDING)]
    handed = hand_out(waiting.values(), holding, caps, free_mb, now)
    told = {name: why for name, why in handed.waits.items() if rows[name]["waits"] != why}
    return [waiting[name] for name in handed.given], told


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


def _usual(rows: Iterable[Row]) -> dict[str, float]:
    """The median of the seconds, by agent type."""
    return {
        kind: median(row["seconds"] for row in held)
        for kind, held in groupby(rows, key=lambda row: str(row["agent_type"]))
    }
