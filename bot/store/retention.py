"""Retention queries: the owners of files, and the size and deletion of expired rows."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import Row

_COLUMNS = """id, project, branch, agent_type, run, ended ->> 'at' AS ended,
        id IN (SELECT id FROM live) AS live"""
OWNERS = f"SELECT {_COLUMNS} FROM sessions ORDER BY id"  # noqa: S608 - our text
OWNER = f"SELECT {_COLUMNS} FROM sessions WHERE id = ?"  # noqa: S608 - our text
DELIVERIES_SIZE = """SELECT count(*) AS rows, coalesce(sum(length(body)), 0) AS bytes
    FROM deliveries WHERE done_at < ?"""
HISTORY_SIZE = """SELECT count(*) AS rows,
        coalesce(sum(length(data) + coalesce(length(record), 0)), 0) AS bytes
    FROM history LEFT JOIN decision_records ON decision_records.history = seq WHERE session = ?"""
_DELETE_HISTORY = (
    "DELETE FROM decision_records WHERE history IN (SELECT seq FROM history WHERE session = ?)",
    "DELETE FROM history WHERE session = ?",
    "DELETE FROM usage WHERE session = ?",
    "DELETE FROM model_usage WHERE session = ?",
)


class ResourceOwner(Struct, frozen=True, kw_only=True):
    """A session as the owner of folders, refs and programs."""

    id: str
    project: str
    branch: str
    agent_type: str
    run: int
    ended: datetime | None
    live: bool

    @property
    def over(self) -> bool:
        """Whether it has ended and no action for it is due."""
        return self.ended is not None and not self.live


class StoredSize(Struct, frozen=True, kw_only=True):
    """A number of rows, and about how many bytes they take."""

    rows: int
    bytes: int


class RetentionQueries(StoreTable):
    """Finding and deleting expired rows."""

    def owners(self) -> list[ResourceOwner]:
        """All sessions, ended or not."""
        with self._db.read() as connection:
            return [_owner(row) for row in connection.execute(OWNERS)]

    def owner(self, id: str) -> ResourceOwner | None:
        """The session with an id, ended or not."""
        with self._db.read() as connection:
            row = connection.execute(OWNER, (id,)).fetchone()
            return None if row is None else _owner(row)

    def deliveries_size(self, before: datetime) -> StoredSize:
        """The size of the deliveries processed before then, which `deliveries.prune` deletes."""
        return self._size(DELIVERIES_SIZE, before.timestamp())

    def history_size(self, session: str) -> StoredSize:
        """The size of a session's history with its decision records."""
        return self._size(HISTORY_SIZE, session)

    def delete_history(self, session: str) -> None:
        """Delete the history and the usage of a session. The session itself remains."""

        def work(connection: sqlite3.Connection) -> None:
            for statement in _DELETE_HISTORY:
                connection.execute(statement, (session,))

        self._db.write(work)

    def _size(self, query: str, value: str | float) -> StoredSize:
        with self._db.read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return StoredSize(rows=row["rows"], bytes=row["bytes"])


def _owner(row: Row) -> ResourceOwner:
    return ResourceOwner(
        id=row["id"],
        project=row["project"],
        branch=row["branch"],
        agent_type=row["agent_type"],
        run=row["run"],
        ended=None if row["ended"] is None else datetime.fromisoformat(row["ended"]),
        live=bool(row["live"]),
    )
