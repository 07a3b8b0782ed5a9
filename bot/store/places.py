"""Which repository a configured name means: GitHub's number of it, which no renaming changes."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import Table
from bot.store.rows import Row
from bot.store.wake import wake_repository

PLACES = "SELECT id, name, now, archived FROM repositories ORDER BY name"
PLACE = "SELECT id, name, now, archived FROM repositories WHERE id = ?"
NAMED = "SELECT id, name, now, archived FROM repositories WHERE name = ?"
_FORGET = "DELETE FROM repositories WHERE id = :id OR name = :name"
_LEARN = """INSERT INTO repositories (id, name, now, archived)
    VALUES (:id, :name, :now, :archived)"""
#: What is kept by a repository's name.
_TABLES = ("sessions", "session_pulls", "commands", "refreshes", "usage", "outsiders")
_MOVES = tuple(
    f"UPDATE OR IGNORE {table} SET repository = ? WHERE repository = ?"  # noqa: S608 - our tables
    for table in _TABLES
)


class KnownRepository(Struct, frozen=True, kw_only=True):
    """One repository that is or was configured."""

    id: int
    name: str  #: `owner/name`, as configured.
    now: str  #: The same as GitHub spells it today.
    archived: bool = False


class Repositories(Table):
    """The table of repositories."""

    def all(self) -> list[KnownRepository]:
        """All of them, by name."""
        with self._db.read() as connection:
            return [_place(row) for row in connection.execute(PLACES)]

    def get(self, id: int) -> KnownRepository | None:
        """The repository of this number; None: it is not known."""
        return self._one(PLACE, id)

    def named(self, name: str) -> KnownRepository | None:
        """The repository that is configured under this name; None: it is not known."""
        return self._one(NAMED, name)

    def record(self, place: KnownRepository, now: datetime) -> None:
        """Keep where a repository is. What is kept under a name it had before goes with it.

        Its sessions are visited. Saying the same again writes nothing.
        """
        if self.get(place.id) == place:
            return

        def work(connection: sqlite3.Connection) -> list[str]:
            before = connection.execute(PLACE, (place.id,)).fetchone()
            values = {"id": place.id, "name": place.name, "now": place.now}
            connection.execute(_FORGET, values)
            connection.execute(_LEARN, {**values, "archived": place.archived})
            if before is not None and before["name"] != place.name:
                for move in _MOVES:
                    connection.execute(move, (place.name, before["name"]))
            return wake_repository(connection, place.name, now)

        self._db.announce(self._db.write(work))

    def _one(self, query: str, value: int | str) -> KnownRepository | None:
        with self._db.read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return None if row is None else _place(row)


def archived(connection: sqlite3.Connection) -> frozenset[str]:
    """The names of those that are archived."""
    return frozenset(row["name"] for row in connection.execute(PLACES) if row["archived"])


def _place(row: Row) -> KnownRepository:
    return KnownRepository(
        id=row["id"], name=row["name"], now=row["now"], archived=bool(row["archived"])
    )
