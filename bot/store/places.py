"""Which repository a configured name means: GitHub's number of it, which no renaming changes."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.base import Base
from bot.store.rows import Row

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
_WAKE = """UPDATE sessions SET version = version + 1, due = min(coalesce(due, :now), :now)
    WHERE id IN live AND repository = :name RETURNING id"""


class KnownRepository(Struct, frozen=True, kw_only=True):
    """One repository that is or was configured."""

    id: int
    name: str  #: `owner/name`, as configured.
    now: str  #: The same as GitHub spells it today.
    archived: bool = False


class Places(Base):
    """The table of repositories."""

    def places(self) -> list[KnownRepository]:
        """All of them, by name."""
        with self._read() as connection:
            return [_place(row) for row in connection.execute(PLACES)]

    def place(self, id: int) -> KnownRepository | None:
        """The repository of this number; None: it is not known."""
        return self._one(PLACE, id)

    def place_named(self, name: str) -> KnownRepository | None:
        """The repository that is configured under this name; None: it is not known."""
        return self._one(NAMED, name)

    def learn_place(self, place: KnownRepository, now: datetime) -> None:
        """Keep where a repository is. What is kept under a name it had before goes with it.

        Its sessions are visited. Saying the same again writes nothing.
        """
        if self.place(place.id) == place:
            return

        def work(connection: sqlite3.Connection) -> list[str]:
            before = connection.execute(PLACE, (place.id,)).fetchone()
            values = {"id": place.id, "name": place.name, "now": place.now}
            connection.execute(_FORGET, values)
            connection.execute(_LEARN, {**values, "archived": place.archived})
            if before is not None and before["name"] != place.name:
                for move in _MOVES:
                    connection.execute(move, (place.name, before["name"]))
            woken = connection.execute(_WAKE, {"name": place.name, "now": now.timestamp()})
            return [row["id"] for row in woken.fetchall()]

        self._announce(self.write(work))

    def _one(self, query: str, value: int | str) -> KnownRepository | None:
        with self._read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return None if row is None else _place(row)


def archived(connection: sqlite3.Connection) -> frozenset[str]:
    """The names of those that are archived."""
    return frozenset(row["name"] for row in connection.execute(PLACES) if row["archived"])


def _place(row: Row) -> KnownRepository:
    return KnownRepository(
        id=row["id"], name=row["name"], now=row["now"], archived=bool(row["archived"])
    )
