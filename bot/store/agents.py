"""Agents by name: their assignment to sessions, and their record."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from statistics import median

from bot.store.database import StoreTable
from bot.store.rows import Row
from bot.store.values import AgentRecord, Session
from lifecycle.model.status import Status

OPEN_SESSIONS = (
    "SELECT agent_name, count(*) AS sessions FROM sessions WHERE ended IS NULL GROUP BY 1"
)
LAST = """SELECT agent_name FROM sessions WHERE project = ? AND requester = ?
    ORDER BY created DESC LIMIT 1"""
RECORDS = """SELECT agent_name, created,
        ended ->> 'status' AS outcome, ended ->> 'at' AS ended_at,
        (SELECT coalesce(sum(cost_usd), 0.0) FROM usage WHERE session = sessions.id) AS cost_usd,
        (SELECT coalesce(sum(unpriced), 0) FROM usage WHERE session = sessions.id) AS unpriced,
        (SELECT count(*) FROM outbox WHERE session = sessions.id AND state = 'done'
            AND action -> 'prompt' ->> 'name' IN ('fix_ci', 'resolve_conflict')
        ) AS repairs,
        (SELECT count(*) FROM outbox WHERE session = sessions.id AND state = 'done'
            AND action -> 'prompt' ->> 'name' = 'address_review') AS rounds
    FROM sessions ORDER BY agent_name"""
#: If a session is handed over twice before a run, the first row names the type of the runs before.
_ADD_HANDOVER = """INSERT INTO handovers (session, run, agent_type)
    SELECT id, ?, agent_type FROM sessions WHERE id = ? ON CONFLICT DO NOTHING"""
TYPE_OF_RUN = """SELECT agent_type FROM handovers WHERE session = ? AND run > ?
    ORDER BY run LIMIT 1"""
_ASSIGN = "UPDATE sessions SET agent_name = ?, agent_type = ? WHERE id = ?"


class AgentsTable(StoreTable):
    """Named agents, derived from the sessions that they are assigned to."""

    def assign(self, session: str, agent: str, agent_type: str, run: int) -> None:
        """Assign a session to another agent from a run on. All its usage counts as that agent's."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD_HANDOVER, (run, session))
            connection.execute(_ASSIGN, (agent, agent_type, session))

        self._db.write(work)

    def type_of_run(self, session: Session, run: int) -> str:
        """The agent type that a session had in one of its runs."""
        with self._db.read() as connection:
            row = connection.execute(TYPE_OF_RUN, (session.id, run)).fetchone()
        return session.agent_type if row is None else str(row["agent_type"])

    def open_sessions(self) -> dict[str, int]:
        """The number of open sessions by agent name."""
        with self._db.read() as connection:
            return {row["agent_name"]: row["sessions"] for row in connection.execute(OPEN_SESSIONS)}

    def last(self, project: str, requester: str) -> str:
        """Return the agent of a person's newest session in a project; empty if there is none."""
        with self._db.read() as connection:
            row = connection.execute(LAST, (project, requester)).fetchone()
            return "" if row is None else str(row["agent_name"])

    def records(self) -> list[AgentRecord]:
        """The record of every agent that ever had a session, by name."""
        with self._db.read() as connection:
            rows = connection.execute(RECORDS).fetchall()
        return [
            _record(agent, list(theirs))
            for agent, theirs in groupby(rows, key=lambda row: str(row["agent_name"]))
        ]


def _record(agent: str, rows: Sequence[Row]) -> AgentRecord:
    merged = [row for row in rows if row["outcome"] == Status.MERGED]
    return AgentRecord(
        agent=agent,
        sessions=len(rows),
        live=sum(row["outcome"] is None for row in rows),
        outcomes=dict(sorted(Counter(row["outcome"] for row in rows if row["outcome"]).items())),
        first_pass=sum(not row["repairs"] and not row["rounds"] for row in merged),
        repairs=sum(row["repairs"] for row in rows),
        review_rounds=sum(row["rounds"] for row in rows),
        cost_usd=sum(row["cost_usd"] for row in rows),
        unpriced=sum(row["unpriced"] for row in rows),
        seconds_to_merge=median(map(_seconds, merged)) if merged else None,
    )


def _seconds(row: Row) -> float:
    """From the creation of a session to its end."""
    return datetime.fromisoformat(row["ended_at"]).timestamp() - float(row["created"])
