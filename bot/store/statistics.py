"""Counts of rows and sums of usage, for metrics."""

from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder

SESSIONS = "SELECT project, status, count(*) AS sessions FROM sessions GROUP BY project, status"
WAITING = "SELECT count(*) AS rows, min(at) AS since FROM deliveries WHERE state = 'new'"
DUE = "SELECT count(*) AS rows, min(created) AS since FROM outbox WHERE state = 'due'"
SENT = "SELECT count(*) AS rows, min(created) AS since FROM outbox WHERE state = 'sent'"
#: Failed actions of open sessions. Failed actions of ended sessions need no attention.
FAILED = """SELECT count(*) AS rows, min(outbox.created) AS since
    FROM outbox JOIN sessions ON sessions.id = session
    WHERE state = 'failed' AND ended IS NULL"""
SLOTS = "SELECT count(*) AS rows FROM sessions WHERE slot = 1"
REFRESHES = "SELECT count(*) AS rows, min(since) AS since FROM refreshes"
_COLUMNS = "input, output, cache_read, cache_write, reasoning, cost_usd, active_seconds"
_SUMS = ", ".join(f"sum({name}) AS {name}" for name in _COLUMNS.split(", "))
USAGE = f"""SELECT repository, agent, {_SUMS} FROM (
        SELECT repository, agent, {_COLUMNS} FROM usage
        UNION ALL SELECT repository, agent, {_COLUMNS} FROM ledger)
    GROUP BY repository, agent"""


class Backlog(Struct, frozen=True):
    """The number of rows in a state, and since when the oldest one exists."""

    rows: int
    since: datetime | None  #: A refresh counts from its last request. None if there are no rows.


class AgentUsage(Struct, frozen=True):
    """The usage of an agent in a repository over all time, including that of deleted sessions."""

    repository: str
    agent: str
    input: int  #: In tokens, as are the next four.
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost_usd: float
    active_seconds: float


_backlog = RowDecoder(Backlog, "sqlite_schema", "rows")
_usage = RowDecoder(AgentUsage, "usage", "agent")


class StatisticsTable(StoreTable):
    """Counts of rows, and sums of usage."""

    def sessions(self) -> dict[tuple[str, str], int]:
        """Return the number of sessions by project and status."""
        return {(row["project"], row["status"]): row["sessions"] for row in self._all(SESSIONS)}

    def slots(self) -> int:
        """Return the number of sessions that hold a slot."""
        (row,) = self._all(SLOTS)
        return int(row["rows"])

    def inbox(self) -> Backlog:
        """Return the backlog of deliveries that are not processed yet."""
        return self._backlog(WAITING)

    def refreshes(self) -> Backlog:
        """Return the backlog of refresh requests that are not done yet."""
        return self._backlog(REFRESHES)

    def outbox(self) -> dict[str, Backlog]:
        """Return the backlogs of actions by state: `due`, `sent` and `failed`.

        Failed actions count only if they belong to an open session.
        """
        return {
            "due": self._backlog(DUE),
            "sent": self._backlog(SENT),
            "failed": self._backlog(FAILED),
        }

    def usage(self) -> list[AgentUsage]:
        """Return the usage of all agents by repository and agent."""
        return list(map(_usage, self._all(USAGE)))

    def _backlog(self, query: str) -> Backlog:
        (row,) = self._all(query)
        return _backlog(row)
