"""What observers saw, written down only where it is news."""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from bot.store.changes import agent_changes, issue_changes, pull_changes, work_changes
from bot.store.database import StoreTable
from bot.store.decode import agent_of, issue_of, pulls_of, work_of
from bot.store.history import add_history
from bot.store.receipts import add_receipts
from bot.store.rows import Row, encoded
from bot.store.usage import add_agent_usage
from bot.store.values import HistoryKind, Observation
from bot.store.wake import wake
from lifecycle.model.facts import Agent, Pull

COLUMNS = ("agent", "work", "pulls", "issue")
_OF_RUN = ("agent", "work")  # these speak of one run, the others of the session
# A sweep over the agents does not read the large columns.
STORED = """SELECT id, run, agent, work,
        CASE WHEN :large THEN pulls END AS pulls, CASE WHEN :large THEN issue END AS issue
    FROM sessions WHERE id IN (SELECT value FROM json_each(:ids))"""
_STORE = """UPDATE sessions SET agent = coalesce(:agent, agent), work = coalesce(:work, work),
        pulls = coalesce(:pulls, pulls), issue = coalesce(:issue, issue)
    WHERE id = :id"""
_FORGET_PULLS = "DELETE FROM session_pulls WHERE session = ?"
_ADD_PULL = """INSERT INTO session_pulls (repository, number, session, head)
    SELECT repository, ?, id, ? FROM sessions WHERE id = ? ON CONFLICT DO NOTHING"""


class ObservationsTable(StoreTable):
    """Facts coming in."""

    def record(self, observations: Sequence[Observation], now: datetime) -> list[str]:
        """Write down, in one transaction, what differs from what is stored, and visit those.

        What was seen of the program or workspace of another run than the session's is dropped.
        When a pull request was read is no change. Returns the sessions that changed. A sweep that
        saw nothing new writes nothing.
        """
        observations = [self._db.redact(seen) for seen in observations]
        with self._db.read() as connection:
            news = _with_news(connection, observations)
        if not news:
            return []
        changed = self._db.write(lambda connection: add_observations(connection, news, now))
        self._db.announce(changed)
        return changed


def add_observations(
    connection: sqlite3.Connection, observations: Sequence[Observation], now: datetime
) -> list[str]:
    """Write observations down inside a transaction; the sessions that changed."""
    changed = dict.fromkeys(seen.session for seen in observations if _add(connection, seen, now))
    return list(changed)


def _with_news(
    connection: sqlite3.Connection, observations: Sequence[Observation]
) -> list[Observation]:
    """The observations of those sessions for which any of them is to be written."""
    rows = _rows(connection, observations)
    news = {
        seen.session
        for seen in observations
        if (row := rows.get(seen.session))
        and (seen.received or seen.advanced or seen.missing or _differing(seen, row))
    }
    return [seen for seen in observations if seen.session in news]


def _rows(connection: sqlite3.Connection, observations: Sequence[Observation]) -> dict[str, Row]:
    values = {
        "ids": encoded([seen.session for seen in observations]),
        "large": any(seen.pulls is not None or seen.issue is not None for seen in observations),
    }
    return {row["id"]: row for row in connection.execute(STORED, values)}


def _differing(seen: Observation, row: Row) -> dict[str, str]:
    """The columns that would change, with their new text."""
    late = seen.run is not None and seen.run != row["run"]
    differing = {}
    for column in COLUMNS:
        value = getattr(seen, column)
        if value is None or (late and column in _OF_RUN):
            continue
        text = encoded(value)
        if text != row[column]:
            differing[column] = text
    if seen.agent is not None and "agent" in differing and _overtaken(seen.agent, row):
        del differing["agent"]
    return differing


def _overtaken(agent: Agent, row: Row) -> bool:
    """Whether the run was stopped while it was looked at: nothing more is to be seen of it."""
    before = agent_of(row)
    return before.stopped and not agent.stopped and before.run == agent.run


def _add(connection: sqlite3.Connection, seen: Observation, now: datetime) -> bool:
    row = _rows(connection, [seen]).get(seen.session)
    if row is None:
        return False
    receipts = add_receipts(connection, seen, now)
    differing = _differing(seen, row)
    if not differing:
        return receipts
    if seen.agent is not None and "agent" in differing:
        add_agent_usage(connection, seen.session, agent_of(row), seen.agent, now)
    connection.execute(_STORE, {**dict.fromkeys(COLUMNS), **differing, "id": seen.session})
    if "pulls" in differing:
        _index_pulls(connection, seen.session, seen.pulls or ())
        if differing.keys() == {"pulls"} and _unread(seen.pulls or ()) == _unread(pulls_of(row)):
            return receipts
    _tell(connection, seen, row, differing, now)
    wake(connection, seen.session, now)
    return True


def _tell(
    connection: sqlite3.Connection,
    seen: Observation,
    row: Row,
    differing: Mapping[str, str],
    now: datetime,
) -> None:
    """What changed is history: of the agent and its work, and of what GitHub shows."""
    of_agent: list[str] = []
    of_github: list[str] = []
    if seen.agent is not None and "agent" in differing:
        of_agent += agent_changes(agent_of(row), seen.agent)
    if seen.work is not None and "work" in differing:
        of_agent += work_changes(work_of(row), seen.work)
    if seen.issue is not None and "issue" in differing:
        of_github += issue_changes(issue_of(row), seen.issue)
    if seen.pulls is not None and "pulls" in differing:
        of_github += pull_changes(pulls_of(row), seen.pulls)
    for actor, changes in (("agent", of_agent), ("github", of_github)):
        if changes:
            data = {"changes": changes}
            add_history(connection, seen.session, HistoryKind.OBSERVED, actor, data, now)


def _unread(pulls: Sequence[Pull]) -> list[Pull]:
    """Pull requests without the time of reading, which alone is no change."""
    return [msgspec.structs.replace(pull, read_at=None) for pull in pulls]


def _index_pulls(connection: sqlite3.Connection, session: str, pulls: Sequence[Pull]) -> None:
    connection.execute(_FORGET_PULLS, (session,))
    connection.executemany(_ADD_PULL, [(pull.number, pull.head, session) for pull in pulls])
