"""Which repository a configured name means: GitHub's number of it, which no renaming changes."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import Row
from bot.store.wake import wake_repository

PLACES = "SELECT id, name, current_name, archived FROM repositories ORDER BY name"
PLACE = "SELECT id, name, current_name, archived FROM repositories WHERE id = ?"
NAMED = "SELECT id, name, current_name, archived FROM repositories WHERE name = ?"
_FORGET = "DELETE FROM repositories WHERE id = :id OR name = :name"
_LEARN = """INSERT INTO repositories (id, name, current_name, archived)
    VALUES (:id, :name, :current_name, :archived)"""
#: What is kept by a repository's name.
_TABLES = ("sessions", "session_pulls", "commands", "refreshes", "usage", "outsiders")
_MOVES = tuple(
    f"UPDATE OR IGNORE {table} SET repository = ? WHERE repository = ?"  # noqa: S608 - our tables
    for table in _TABLES
)


class RepositoryRecord(Struct, frozen=True, kw_only=True):
    """One repository that is or was configured."""

    id: int
    name: str  #: `owner/name`, as configured.
    current_name: str  #: `owner/name` at GitHub today.
    archived: bool = False


class RepositoriesTable(StoreTable):
    """The table of repositories."""

    def all(self) -> list[RepositoryRecord]:
        """All of them, by name."""
        with self._db.read() as connection:
            return [_place(row) for row in connection.execute(PLACES)]

    def get(self, id: int) -> RepositoryRecord | None:
        """The repository of this number; None: it is not known."""
        return self._one(PLACE, id)

    def named(self, name: str) -> RepositoryRecord | None:
        """The repository that is configured under this name; None: it is not known."""
        return self._one(NAMED, name)

    def record(self, place: RepositoryRecord, now: datetime) -> None:
        """Keep where a repository is. What is kept under a name it had before goes with it.

        Its sessions are visited. Saying the same again writes nothing.
        """
        if self.get(place.id) == place:
            return

        def work(connection: sqlite3.Connection) -> list[str]:
            before = connection.execute(PLACE, (place.id,)).fetchone()
            values = {"id": place.id, "name": place.name, "current_name": place.current_name}
            connection.execute(_FORGET, values)
            connection.execute(_LEARN, {**values, "archived": place.archived})
            if before is not None and before["name"] != place.name:
                for move in _MOVES:
                    connection.execute(move, (place.name, before["name"]))
            return wake_repository(connection, place.name, now)

        self._db.announce(self._db.write(work))

    def _one(self, query: str, value: int | str) -> RepositoryRecord | None:
        with self._db.read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return None if row is None else _place(row)


def archived(connection: sqlite3.Connection) -> frozenset[str]:
    """The names of those that are archived."""
    return frozenset(row["name"] for row in connection.execute(PLACES) if row["archived"])


def _place(row: Row) -> RepositoryRecord:
    return RepositoryRecord(
        id=row["id"],
        name=row["name"],
        current_name=row["current_name"],
        archived=bool(row["archived"]),
    )
