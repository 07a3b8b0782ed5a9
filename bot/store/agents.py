"""Agents by name, and what became of what they worked on: read off their sessions."""

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

AT_WORK = "SELECT agent_name, count(*) AS sessions FROM sessions WHERE ended IS NULL GROUP BY 1"
LAST = """SELECT agent_name FROM sessions WHERE project = ? AND requester = ?
    ORDER BY created DESC LIMIT 1"""
LEDGER = """SELECT agent_name, created,
        json_extract(ended, '$.status') AS outcome, json_extract(ended, '$.at') AS ended_at,
        (SELECT total(cost_usd) FROM usage WHERE session = sessions.id) AS cost_usd,
        (SELECT total(unpriced) FROM usage WHERE session = sessions.id) AS unpriced,
        (SELECT count(*) FROM outbox WHERE session = sessions.id AND state = 'done'
            AND json_extract(action, '$.prompt.name') IN ('fix_ci', 'resolve_conflict')
        ) AS repairs,
        (SELECT count(*) FROM outbox WHERE session = sessions.id AND state = 'done'
            AND json_extract(action, '$.prompt.name') = 'address_review') AS rounds
    FROM sessions ORDER BY agent_name"""


#: Of several in a row, the first says whose the runs before were.
_HAND_OVER = """INSERT INTO handovers (session, run, agent_type)
    SELECT id, ?, agent_type FROM sessions WHERE id = ? ON CONFLICT DO NOTHING"""
TYPE_OF_RUN = """SELECT agent_type FROM handovers WHERE session = ? AND run > ?
    ORDER BY run LIMIT 1"""
_ASSIGN = "UPDATE sessions SET agent_name = ?, agent_type = ? WHERE id = ?"


class AgentsTable(StoreTable):
    """What is known of agents."""

    def assign(self, session: str, agent: str, agent_type: str, run: int) -> None:
        """Give a session to another agent, from a run on; it is that agent's in every record."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_HAND_OVER, (run, session))
            connection.execute(_ASSIGN, (agent, agent_type, session))

        self._db.write(work)

    def type_of_run(self, session: Session, run: int) -> str:
        """Which agent type a session had in one of its runs."""
        with self._db.read() as connection:
            row = connection.execute(TYPE_OF_RUN, (session.id, run)).fetchone()
        return session.agent_type if row is None else str(row["agent_type"])

    def open_sessions(self) -> dict[str, int]:
        """How many sessions that are not over each agent has."""
        with self._db.read() as connection:
            return {row["agent_name"]: row["sessions"] for row in connection.execute(AT_WORK)}

    def last(self, project: str, requester: str) -> str:
        """Who had the newest session that a person asked for; empty: there is none."""
        with self._db.read() as connection:
            row = connection.execute(LAST, (project, requester)).fetchone()
            return "" if row is None else str(row["agent_name"])

    def records(self) -> list[AgentRecord]:
        """The record of every agent that ever had a session, by name."""
        with self._db.read() as connection:
            rows = connection.execute(LEDGER).fetchall()
        return [
            _ledger(agent, list(theirs))
            for agent, theirs in groupby(rows, key=lambda row: str(row["agent_name"]))
        ]


def _ledger(agent: str, rows: Sequence[Row]) -> AgentRecord:
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
        unpriced=round(sum(row["unpriced"] for row in rows)),
        seconds_to_merge=median(map(_seconds, merged)) if merged else None,
    )


def _seconds(row: Row) -> float:
    """From the beginning of a session to its end."""
    return datetime.fromisoformat(row["ended_at"]).timestamp() - float(row["created"])
