"""What retention asks of the store: who holds what, and rows that have outlived their days."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.base import Base
from bot.store.rows import Row
from bot.store.sessions import wake

_COLUMNS = """SELECT id, project, branch, agent_type, run, json_extract(ended, '$.at') AS ended,
        id IN live AS live FROM sessions"""
TENANTS = f"{_COLUMNS} ORDER BY id"
TENANT = f"{_COLUMNS} WHERE id = ?"
SETTLED = """SELECT count(*) AS rows, coalesce(sum(length(body)), 0) AS bytes FROM deliveries
    WHERE done_at < ?"""
TOLD = """SELECT count(*) AS rows, coalesce(sum(length(data) + coalesce(length(judged), 0)), 0)
        AS bytes
    FROM history LEFT JOIN judgements ON judgements.history = seq WHERE session = ?"""
_FORGET = (
    "DELETE FROM judgements WHERE history IN (SELECT seq FROM history WHERE session = ?)",
    "DELETE FROM history WHERE session = ?",
    "DELETE FROM usage WHERE session = ?",
    "DELETE FROM answers WHERE session = ?",
)


class Tenant(Struct, frozen=True, kw_only=True):
    """A session as the holder of folders, refs and programs."""

    id: str
    project: str
    branch: str
    agent_type: str
    run: int
    ended: datetime | None
    live: bool

    @property
    def over(self) -> bool:
        """Whether it has ended and nothing is left to do for it."""
        return self.ended is not None and not self.live


class Pile(Struct, frozen=True, kw_only=True):
    """So many rows, and about how much they take."""

    rows: int
    bytes: int


class Retaining(Base):
    """Looking for what may go, and letting go of rows."""

    def tenants(self) -> list[Tenant]:
        """Every session there is, as of one moment."""
        with self._read() as connection:
            return [_tenant(row) for row in connection.execute(TENANTS)]

    def tenant(self, id: str) -> Tenant | None:
        """One of them."""
        with self._read() as connection:
            row = connection.execute(TENANT, (id,)).fetchone()
            return None if row is None else _tenant(row)

    def settled_deliveries(self, before: datetime) -> Pile:
        """The deliveries that were worked through before then; `prune` deletes them."""
        return self._pile(SETTLED, before.timestamp())

    def told(self, session: str) -> Pile:
        """The history of a session with what its decisions were made from."""
        return self._pile(TOLD, session)

    def forget(self, session: str) -> None:
        """Delete what was told of a session and what it used. The session itself stays known."""

        def work(connection: sqlite3.Connection) -> None:
            for statement in _FORGET:
                connection.execute(statement, (session,))

        self.write(work)

    def look_again(self, session: str) -> None:
        """Have a session visited now."""
        now = self.clock()
        self.write(lambda connection: wake(connection, session, now))
        self._announce([session])

    def _pile(self, query: str, value: str | float) -> Pile:
        with self._read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return Pile(rows=row["rows"], bytes=row["bytes"])


def _tenant(row: Row) -> Tenant:
    return Tenant(
        id=row["id"],
        project=row["project"],
        branch=row["branch"],
        agent_type=row["agent_type"],
        run=row["run"],
        ended=None if row["ended"] is None else datetime.fromisoformat(row["ended"]),
        live=bool(row["live"]),
    )
