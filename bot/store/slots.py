"""Stores which sessions hold or await a slot, without which no agent runs; sums up agents' work."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import groupby, takewhile
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.rows import Row, RowDecoder, encoded
from bot.store.values import AgentRecord, HistoryKind, QueuedSession, Session
from lifecycle.judge.capacity import Caps, Contender, hand_out, places
from lifecycle.model.status import Status

#: Whether an assignment can change anything: a slot is free, or no reason is stored yet for a
#: session's wait.
ASSIGNABLE = """SELECT EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1 AND waits = ''
    ) OR ((SELECT count(*) FROM sessions WHERE slot = 1) < ? AND EXISTS (
        SELECT 1 FROM sessions WHERE slot = 0 AND wants_slot = 1))"""
#: The column `awaited` says whether a person's command requested the run since the session last had
#: a slot.
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
#: The open sessions of one project by agent.
OPEN_IN_PROJECT = """SELECT agent_name, count(*) AS sessions FROM sessions
    WHERE ended IS NULL AND project = ? GROUP BY 1 ORDER BY 1"""
LAST_AGENT = """SELECT agent_name FROM sessions WHERE project = ? AND requester = ?
    ORDER BY created DESC LIMIT 1"""
RECORDS = """SELECT id, project, repository, agent_name AS agent, created, head,
        ended ->> 'status' AS outcome, ended ->> 'at' AS ended_at
    FROM sessions"""
#: The agents that had runs of a session before it was handed over, in their order.
HANDOVERS = """SELECT session, run - 1 AS last_run, agent_name AS agent, head,
        ended ->> 'status' AS outcome
    FROM handovers WHERE run > 1 ORDER BY session, run"""
#: How many messages asked a run for a repair, and for changes that a review requests.
MESSAGES = """SELECT session, action ->> 'run' AS run,
        sum(action -> 'prompt' ->> 'name' <> 'address_review') AS repairs,
        sum(action -> 'prompt' ->> 'name' = 'address_review') AS rounds
    FROM outbox WHERE session IS NOT NULL AND state = 'done'
        AND action -> 'prompt' ->> 'name' IN ('fix_ci', 'resolve_conflict', 'address_review')
    GROUP BY 1, 2 ORDER BY 1, 2"""
#: The usage of each agent's own runs, also in sessions that were handed over since.
COSTS = """SELECT agent, sum(cost_usd) AS cost_usd, sum(unpriced) AS unpriced,
        sum(tokens) AS tokens, sum(active_seconds) AS active_seconds
    FROM (SELECT agent, sum(cost_usd) AS cost_usd, sum(unpriced) AS unpriced,
            sum(tokens) AS tokens, sum(active_seconds) AS active_seconds
        FROM usage GROUP BY agent
        UNION ALL SELECT agent, cost_usd, unpriced, input + output + cache_write + reasoning,
            active_seconds
        FROM ledger) GROUP BY agent"""
_SOME = "WHERE repository IN (SELECT value FROM json_each(?1))"
COSTS_OF_SOME = COSTS.replace("FROM usage", f"FROM usage {_SOME}").replace(
    "FROM ledger", f"FROM ledger {_SOME}"
)
#: If a session is handed over twice before its next run, the first row stays, because it names the
#: agent of the earlier runs.
_ADD_HANDOVER = """INSERT INTO handovers (session, run, agent_type, agent_name, head, ended)
    SELECT id, ?, agent_type, agent_name, coalesce(head, ''), taken_back FROM sessions WHERE id = ?
    ON CONFLICT DO NOTHING"""
TYPE_OF_RUN = """SELECT agent_type FROM handovers WHERE session = ? AND run > ?
    ORDER BY run LIMIT 1"""
PATHS = "SELECT path FROM session_paths WHERE session = ?"
_ADD_PATH = "INSERT INTO session_paths (session, path) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ASSIGN = "UPDATE sessions SET agent_name = ?, agent_type = ?, taken_back = NULL WHERE id = ?"

#: The outcome of an agent whose session another agent took over, or is credited with.
HANDED_OVER = "handed_over"


class AgentEnd(Struct, frozen=True):
    """When and how a session of an agent ended."""

    at: datetime
    outcome: str  #: The status that the session ended with.


_contender = RowDecoder(Contender, "sessions", "session")
_queued = RowDecoder(QueuedSession, "sessions", "session")


class SlotsTable(StoreTable):
    """The record of slot holders, and the queue of sessions that wait for a slot."""

    def assign(self, caps: Caps, free_mb: int | None = None) -> list[str]:
        """Assign free slots within `caps` to waiting sessions, and write why the others wait.

        `free_mb` is the free memory of the machine in megabytes, None if it is unknown. Returns the
        ids of the sessions for which something changed; they are woken.
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
        """Set a session's priority in the queue for slots, in steps; below 0, it moves back.

        Each step counts as `Caps.priority_seconds` of waiting.
        """
        row = self._first(PRIORITY, (session,))
        if row is not None and row["priority"] != priority:
            self._execute(_PRIORITIZE, (priority, session))
            self._db.announce([session])

    def handover_blocker(self, session: str, agent: str, agent_type: str, caps: Caps) -> str:
        """Return why `caps` forbid handing a session over to `agent` now; empty if they allow it.

        Always empty for a session that holds no slot.
        """
        holding = list(map(_contender, self._all(HOLDING)))
        others = [one for one in holding if one.session != session]
        taking = [
            replace(one, agent=agent, agent_type=agent_type)
            for one in holding
            if one.session == session
        ]
        return hand_out(taking, others, caps, None, self._db.clock()).waits.get(session, "")

    def queue(self, caps: Caps) -> list[QueuedSession]:
        """Return the sessions that wait for a slot, in queue order, with estimated start times."""
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
    """Named agents, known only from the sessions that are assigned to them."""

    def assign(self, session: str, agent: str, agent_type: str, run: int) -> None:
        """Assign a session to another agent from the run `run` on.

        In statistics, the former agent keeps the usage of the earlier runs. If the session had
        ended and was restored, the former agent also keeps that outcome.
        """

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD_HANDOVER, (run, session))
            connection.execute(_ASSIGN, (agent, agent_type, session))

        self._db.write(work)

    def type_of_run(self, session: Session, run: int) -> str:
        """Return the agent type that a session had in the run with this number."""
        row = self._first(TYPE_OF_RUN, (session.id, run))
        return session.agent_type if row is None else str(row["agent_type"])

    def open_sessions(self) -> dict[str, int]:
        """Return the number of open sessions by agent name."""
        return {row["agent_name"]: row["sessions"] for row in self._all(OPEN_SESSIONS)}

    def open_in(self, project: str) -> dict[str, int]:
        """Return the number of open sessions in a project by agent name."""
        rows = self._all(OPEN_IN_PROJECT, (project,))
        return {row["agent_name"]: row["sessions"] for row in rows}

    def last(self, project: str, requester: str) -> str:
        """Return the agent of a person's newest session in a project; empty if there is none."""
        row = self._first(LAST_AGENT, (project, requester))
        return "" if row is None else str(row["agent_name"])

    def add_paths(self, session: str, paths: Iterable[str]) -> None:
        """Record files that a session's pushed commits change."""
        values = [(session, path) for path in paths]
        self._db.write(lambda connection: connection.executemany(_ADD_PATH, values))

    def paths(self, session: str) -> list[str]:
        """Return the stored paths of the files that a session's pushed commits change."""
        return [row["path"] for row in self._all(PATHS, (session,))]

    def merged(self, project: str) -> list[tuple[str, str]]:
        """Return each merged session of a project with the agent that committed last.

        The pairs are (agent, session ID).
        """
        earlier = _by_session(self._all(HANDOVERS))
        rows = [row for row in self._all(RECORDS) if row["project"] == project]
        return [
            (agent, row["id"])
            for row in rows
            for agent, share in _shares(row, earlier.get(row["id"], ()), ()).items()
            if share.outcome == Status.MERGED
        ]

    def records(
        self, configured: Iterable[str] = (), repositories: Collection[str] | None = None
    ) -> list[AgentRecord]:
        """Return the records of the `configured` agents and of all with sessions, sorted by name.

        Sessions outside `repositories` are ignored, unless it is None.
        """
        shares, costs = self._parts(repositories), self._costs(repositories)
        names = sorted({*shares, *costs, *configured})
        return [_record(name, shares[name], costs.get(name)) for name in names]

    def history(
        self, agent: str, repositories: Collection[str] | None = None
    ) -> tuple[AgentRecord, list[AgentEnd]]:
        """Return an agent's record, and the ends of sessions credited to it, earliest first.

        The agent may be unknown; its record is then empty. `repositories` is as in `records`.
        """
        shares = self._parts(repositories)[agent]
        ends = [AgentEnd(one.ended, one.outcome) for one in shares if one.ended and one.outcome]
        record = _record(agent, shares, self._costs(repositories).get(agent))
        return record, sorted(ends, key=lambda end: end.at)

    def _parts(self, repositories: Collection[str] | None) -> defaultdict[str, list["_Share"]]:
        """Return what each agent did in each of its sessions, as a `_Share`."""
        earlier, messages = _by_session(self._all(HANDOVERS)), _by_session(self._all(MESSAGES))
        shares = defaultdict[str, list[_Share]](list)
        for row in self._all(RECORDS):
            if repositories is not None and row["repository"] not in repositories:
                continue
            found = _shares(row, earlier.get(row["id"], ()), messages.get(row["id"], ()))
            for agent, share in found.items():
                shares[agent].append(share)
        return shares

    def _costs(self, repositories: Collection[str] | None) -> dict[str, Row]:
        rows = (
            self._all(COSTS)
            if repositories is None
            else self._all(COSTS_OF_SOME, (encoded(list(repositories)),))
        )
        return {str(row["agent"]): row for row in rows}


def free_slot(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Close the record of the slot that a session gave back, inside a transaction."""
    connection.execute(_FREE, (now.timestamp(), session))


def _changes(
    connection: sqlite3.Connection, caps: Caps, free_mb: int | None, now: datetime
) -> tuple[list[Contender], dict[str, str]]:
    """Return the sessions that get a slot, and the changed reasons why others wait, by session."""
    rows = {row["session"]: row for row in connection.execute(WAITING)}
    if not rows:
        return [], {}
    waiting = {name: _contender(row) for name, row in rows.items()}
    holding = list(map(_contender, connection.execute(HOLDING)))
    handed = hand_out(waiting.values(), holding, caps, free_mb, now)
    reasons = {name: why for name, why in handed.waits.items() if rows[name]["waits"] != why}
    return [waiting[name] for name in handed.granted], reasons


def _medians(rows: Iterable[Row]) -> dict[str, float]:
    """Return the median number of seconds for which a slot was held, by agent type."""
    return {
        kind: median(row["seconds"] for row in held)
        for kind, held in groupby(rows, key=lambda row: str(row["agent_type"]))
    }


class _Share(Struct):
    """One agent's part in one session."""

    outcome: str | None = HANDED_OVER  #: If None, the agent has the session, which is open.
    ended: datetime | None = None  #: When the session ended.
    seconds: float = 0.0  #: From the creation of the session to its end.
    first_pass: bool = True  #: Whether no agent was asked for a repair or for changes.
    repairs: int = 0
    rounds: int = 0


def _by_session(rows: Iterable[Row]) -> dict[str, list[Row]]:
    return {name: list(found) for name, found in groupby(rows, key=lambda row: str(row["session"]))}


def _shares(row: Row, earlier: Sequence[Row], messages: Sequence[Row]) -> dict[str, _Share]:
    """Return each agent's share of a session.

    `row` is the session's row from `RECORDS`. `earlier` and `messages` are its rows from
    `HANDOVERS` and `MESSAGES`.
    """
    shares = {one["agent"]: _Share(one["outcome"] or HANDED_OVER) for one in earlier}
    present = earner = str(row["agent"])
    if row["outcome"] == Status.MERGED:  # The agent that committed last is credited with it.
        for one in takewhile(lambda one: one["head"] == row["head"], reversed(earlier)):
            earner = one["agent"]
    shares[present] = _Share()
    shares[earner].outcome = row["outcome"]
    if row["outcome"]:
        ended = datetime.fromisoformat(row["ended_at"])
        shares[earner].ended = ended
        shares[earner].seconds = ended.timestamp() - float(row["created"])
        shares[earner].first_pass = not messages
    for one in messages:
        agents = (each["agent"] for each in earlier if one["run"] <= each["last_run"])
        share = shares[next(agents, present)]
        share.repairs += one["repairs"]
        share.rounds += one["rounds"]
    return shares


def _record(agent: str, shares: Sequence[_Share], cost: Row | None) -> AgentRecord:
    merged = [share for share in shares if share.outcome == Status.MERGED]
    outcomes = Counter(share.outcome for share in shares if share.outcome)
    return AgentRecord(
        agent=agent,
        sessions=len(shares),
        live=sum(share.outcome is None for share in shares),
        outcomes=dict(sorted(outcomes.items())),
        first_pass=sum(share.first_pass for share in merged),
        repairs=sum(share.repairs for share in shares),
        review_rounds=sum(share.rounds for share in shares),
        cost_usd=cost["cost_usd"] if cost else 0.0,
        unpriced=cost["unpriced"] if cost else 0,
        tokens=cost["tokens"] if cost else 0,
        active_seconds=cost["active_seconds"] if cost else 0.0,
        seconds_to_merge=median(share.seconds for share in merged) if merged else None,
    )
