"""What retention asks of the store: who holds what, and rows that have outlived their days."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import Row

_COLUMNS = """id, project, branch, agent_type, run, json_extract(ended, '$.at') AS ended,
        id IN live AS live"""
TENANTS = f"SELECT {_COLUMNS} FROM sessions ORDER BY id"  # noqa: S608 - our text
TENANT = f"SELECT {_COLUMNS} FROM sessions WHERE id = ?"  # noqa: S608 - our text
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


class ResourceOwner(Struct, frozen=True, kw_only=True):
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


class StoredSize(Struct, frozen=True, kw_only=True):
    """So many rows, and about how much they take."""

    rows: int
    bytes: int


class RetentionQueries(StoreTable):
    """Looking for what may go, and letting go of rows."""

    def sessions(self) -> list[ResourceOwner]:
        """Every session there is, as of one moment."""
        with self._db.read() as connection:
            return [_tenant(row) for row in connection.execute(TENANTS)]

    def session(self, id: str) -> ResourceOwner | None:
        """One of them."""
        with self._db.read() as connection:
            row = connection.execute(TENANT, (id,)).fetchone()
            return None if row is None else _tenant(row)

    def deliveries_size(self, before: datetime) -> StoredSize:
        """The deliveries that were worked through before then; `prune` deletes them."""
        return self._pile(SETTLED, before.timestamp())

    def history_size(self, session: str) -> StoredSize:
        """The history of a session with what its decisions were made from."""
        return self._pile(TOLD, session)

    def delete_history(self, session: str) -> None:
        """Delete what was told of a session and what it used. The session itself stays known."""

        def work(connection: sqlite3.Connection) -> None:
            for statement in _FORGET:
                connection.execute(statement, (session,))

        self._db.write(work)

    def _pile(self, query: str, value: str | float) -> StoredSize:
        with self._db.read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return StoredSize(rows=row["rows"], bytes=row["bytes"])


def _tenant(row: Row) -> ResourceOwner:
    return ResourceOwner(
        id=row["id"],
        project=row["project"],
        branch=row["branch"],
        agent_type=row["agent_type"],
        run=row["run"],
        ended=None if row["ended"] is None else datetime.fromisoformat(row["ended"]),
        live=bool(row["live"]),
    )
