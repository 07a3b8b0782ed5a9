"""Slots and agents: which sessions have a slot or wait for one, and who works on each."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from statistics import median

from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.rows import Row, RowDecoder
from bot.store.values import AgentRecord, HistoryKind, QueuedSession, Session
from lifecycle.judge.capacity import Caps, Contender, hand_out, places
from lifecycle.model.status import Status

#: Whether an assignment can change anything: a waiting session has no reason, or a slot is free.
ASSIGNABLE = """SELECT EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1 AND waits = ''
    ) OR ((SELECT count(*) FROM sessions WHERE slot = 1) < ? AND EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1))"""
#: awaited: a person's command requested the run since the session last had a slot.
WAITING = """SELECT id AS session, project, agent_type, agent_name AS agent, requester, priority,
        waits, wanted_since AS since, EXISTS (SELECT 1 FROM commands WHERE session = sessions.id
            AND kind IN ('answer', 'restart', 'resume', 'retry', 'start', 'tell')
            AND at >= coalesce((SELECT max(freed_at) FROM slots WHERE session = sessions.id), 0)
        ) AS awaited
    FROM sessions WHERE slot = 0 AND wants_slot = 1"""
HOLDING = """SELECT sessions.id AS session, project, sessions.agent_type, agent_name AS agent,
        requester, priority, slots.taken_at AS since, slots.requested AS awaited
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
OPEN_SESSIONS = (
    "SELECT agent_name, count(*) AS sessions FROM sessions WHERE ended IS NULL GROUP BY 1"
)
LAST_AGENT = """SELECT agent_name FROM sessions WHERE project = ? AND requester = ?
    ORDER BY created DESC LIMIT 1"""
RECORDS = """SELECT agent_name, created,
        ended ->> 'status' AS outcome, ended ->> 'at' AS ended_at,
        (SELECT count(*) FROM outbox WHERE session = sessions.id AND state = 'done'
            AND action -> 'prompt' ->> 'name' IN ('fix_ci', 'resolve_conflict')
        ) AS repairs,
        (SELECT count(*) FROM outbox WHERE session = sessions.id AND state = 'done'
            AND action -> 'prompt' ->> 'name' = 'address_review') AS rounds
    FROM sessions ORDER BY agent_name"""
#: Of the runs that an agent had, also in sessions that were handed over since.
COSTS = """SELECT agent, sum(cost_usd) AS cost_usd, sum(unpriced) AS unpriced
    FROM usage GROUP BY agent"""
#: If a session is handed over twice before a run, the first row names the type of the runs before.
_ADD_HANDOVER = """INSERT INTO handovers (session, run, agent_type, agent_name)
    SELECT id, ?, agent_type, agent_name FROM sessions WHERE id = ? ON CONFLICT DO NOTHING"""
TYPE_OF_RUN = """SELECT agent_type FROM handovers WHERE session = ? AND run > ?
    ORDER BY run LIMIT 1"""
_ASSIGN = "UPDATE sessions SET agent_name = ?, agent_type = ? WHERE id = ?"

_contender = RowDecoder(Contender, "sessions", "session")
_queued = RowDecoder(QueuedSession, "sessions", "session")


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
            granted, reasons = _changes(connection, caps, free_mb, now)
            for one in granted:
                connection.execute(_TAKE, (one.session,))
                connection.execute(_ADD_SLOT, (now.timestamp(), one.awaited, one.session))
                add_history(connection, one.session, HistoryKind.SLOT, BOT, {}, now)
            connection.executemany(_WAIT, [(why, session) for session, why in reasons.items()])
            changed = [*(one.session for one in granted), *reasons]
            for session in changed:
                wake(connection, session, now)
            return changed

        return self._change(work)

    def prioritize(self, session: str, priority: int) -> None:
        """Set how many steps ahead a session is in the queue."""
        row = self._first(PRIORITY, (session,))
        if row is not None and row["priority"] != priority:
            self._execute(_PRIORITIZE, (priority, session))
            self._db.announce([session])

    def handover_blocker(self, session: str, agent: str, agent_type: str, caps: Caps) -> str:
        """Why a session with a slot cannot be handed over to this agent now; empty if it can."""
        holding = list(map(_contender, self._all(HOLDING)))
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
            rows = {row["session"]: row for row in connection.execute(WAITING)}
            holding = list(map(_contender, connection.execute(HOLDING)))
            durations = _medians(connection.execute(DURATIONS))
        waiting = list(map(_contender, rows.values()))
        return [
            _queued(rows[place.session], position=place.position, starts_at=place.starts_at)
            for place in places(waiting, holding, caps, durations, self._db.clock())
        ]


class AgentsTable(StoreTable):
    """Named agents, derived from the sessions that they are assigned to."""

    def assign(self, session: str, agent: str, agent_type: str, run: int) -> None:
        """Assign a session to another agent from a run on. Usage of a run remains its agent's."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD_HANDOVER, (run, session))
            connection.execute(_ASSIGN, (agent, agent_type, session))

        self._db.write(work)

    def type_of_run(self, session: Session, run: int) -> str:
        """The agent type that a session had in one of its runs."""
        row = self._first(TYPE_OF_RUN, (session.id, run))
        return session.agent_type if row is None else str(row["agent_type"])

    def open_sessions(self) -> dict[str, int]:
        """The number of open sessions by agent name."""
        return {row["agent_name"]: row["sessions"] for row in self._all(OPEN_SESSIONS)}

    def last(self, project: str, requester: str) -> str:
        """Return the agent of a person's newest session in a project; empty if there is none."""
        row = self._first(LAST_AGENT, (project, requester))
        return "" if row is None else str(row["agent_name"])

    def records(self) -> list[AgentRecord]:
        """The record of every agent that ever had a session, by name."""
        by_name = groupby(self._all(RECORDS), key=lambda row: str(row["agent_name"]))
        sessions = {agent: list(rows) for agent, rows in by_name}
        costs = {str(row["agent"]): row for row in self._all(COSTS)}
        names = sorted({*sessions, *costs})
        return [_record(name, sessions.get(name, ()), costs.get(name)) for name in names]


def free_slot(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: close the record of the slot that a session gave back."""
    connection.execute(_FREE, (now.timestamp(), session))


def _changes(
    connection: sqlite3.Connection, caps: Caps, free_mb: int | None, now: datetime
) -> tuple[list[Contender], dict[str, str]]:
    """The sessions that get a slot, and the new reasons, by id, of those whose reason changed."""
    rows = {row["session"]: row for row in connection.execute(WAITING)}
    if not rows:
        return [], {}
    waiting = {name: _contender(row) for name, row in rows.items()}
    holding = list(map(_contender, connection.execute(HOLDING)))
    handed = hand_out(waiting.values(), holding, caps, free_mb, now)
    reasons = {name: why for name, why in handed.waits.items() if rows[name]["waits"] != why}
    return [waiting[name] for name in handed.granted], reasons


def _medians(rows: Iterable[Row]) -> dict[str, float]:
    """The median number of seconds by agent type."""
    return {
        kind: median(row["seconds"] for row in held)
        for kind, held in groupby(rows, key=lambda row: str(row["agent_type"]))
    }


def _record(agent: str, rows: Sequence[Row], cost: Row | None) -> AgentRecord:
    merged = [row for row in rows if row["outcome"] == Status.MERGED]
    return AgentRecord(
        agent=agent,
        sessions=len(rows),
        live=sum(row["outcome"] is None for row in rows),
        outcomes=dict(sorted(Counter(row["outcome"] for row in rows if row["outcome"]).items())),
        first_pass=sum(not row["repairs"] and not row["rounds"] for row in merged),
        repairs=sum(row["repairs"] for row in rows),
        review_rounds=sum(row["rounds"] for row in rows),
        cost_usd=cost["cost_usd"] if cost else 0.0,
        unpriced=cost["unpriced"] if cost else 0,
        seconds_to_merge=median(map(_seconds, merged)) if merged else None,
    )


def _seconds(row: Row) -> float:
    """From the creation of a session to its end."""
    return datetime.fromisoformat(row["ended_at"]).timestamp() - float(row["created"])
