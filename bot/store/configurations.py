"""Repositories' own configuration files: the version last read, and the last valid text."""

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.outbox import add_repository_actions
from lifecycle.model.actions import Action

CONFIGURATIONS = "SELECT repository, blob, good FROM configurations ORDER BY repository"
_KEEP = """INSERT INTO configurations (repository, blob, good) VALUES (?, ?, ?)
    ON CONFLICT (repository) DO UPDATE SET blob = excluded.blob, good = excluded.good"""


class Configuration(Struct, frozen=True, kw_only=True):
    """What is kept of one repository's file."""

    repository: str
    blob: str = ""  #: Git's name for the one last seen; empty: there was none.
    good: str = ""  #: The text of the last one that could be used.


class RepositoryFile(Struct, frozen=True, kw_only=True):
    """The file as it was read from the default branch."""

    repository: str
    head: str  #: The commit it was read from.
    blob: str  #: Git's name for its content; empty: there is none.
    text: str | None  #: None: it is not text.


class ConfigurationsTable(StoreTable):
    """The table of what repositories say."""

    def all(self) -> list[Configuration]:
        """All of them."""
        with self._db.read() as connection:
            return [
                Configuration(repository=row["repository"], blob=row["blob"], good=row["good"])
                for row in connection.execute(CONFIGURATIONS)
            ]

    def set(self, seen: Configuration, actions: Sequence[Action] = ()) -> None:
        """Keep what a repository's file says now, and what follows, in one transaction."""
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_KEEP, (seen.repository, seen.blob, seen.good))
            add_repository_actions(connection, seen.repository, actions, now)

        self._db.write(work)
