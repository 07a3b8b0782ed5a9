"""Configured repositories by GitHub's id, which survives renames, and their own configuration."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import wake_repository
from bot.store.outbox import add_repository_actions
from bot.store.rows import Row
from lifecycle.model.actions import Action

ALL = "SELECT id, name, current_name, archived FROM repositories ORDER BY name"
BY_ID = "SELECT id, name, current_name, archived FROM repositories WHERE id = ?"
BY_NAME = "SELECT id, name, current_name, archived FROM repositories WHERE name = ?"
_REMOVE = "DELETE FROM repositories WHERE id = :id OR name = :name"
_ADD = """INSERT INTO repositories (id, name, current_name, archived)
    VALUES (:id, :name, :current_name, :archived)"""
#: The tables with a column `repository`.
_TABLES = (
    *("sessions", "session_pulls", "commands", "outbox", "refreshes", "usage", "outsiders"),
    "configurations",
)
_RENAMES = tuple(
    f"UPDATE OR IGNORE {table} SET repository = ? WHERE repository = ?"  # noqa: S608 - our tables
    for table in _TABLES
)
CONFIGURATIONS = "SELECT repository, blob, valid FROM configurations ORDER BY repository"
_SET_CONFIGURATION = """INSERT INTO configurations (repository, blob, valid) VALUES (?, ?, ?)
    ON CONFLICT (repository) DO UPDATE SET blob = excluded.blob, valid = excluded.valid"""


class RepositoryRecord(Struct, frozen=True, kw_only=True):
    """A repository that is or was configured."""

    id: int
    name: str  #: `owner/name`, as configured.
    current_name: str  #: `owner/name` at GitHub today.
    archived: bool = False


class Configuration(Struct, frozen=True, kw_only=True):
    """The configuration file in one repository."""

    repository: str
    blob: str = ""  #: Git's id of the file last read; empty if there was none.
    valid: str = ""  #: The text of the last valid file.


class FetchedFile(Struct, frozen=True, kw_only=True):
    """A configuration file as it was read from the default branch."""

    repository: str
    head: str  #: The commit it was read from.
    blob: str  #: Git's id of the file; empty if there is none.
    text: str | None  #: None if it is not text.


class RepositoriesTable(StoreTable):
    """Configured repositories, by GitHub's id."""

    def all(self) -> list[RepositoryRecord]:
        """All repositories, by configured name."""
        with self._db.read() as connection:
            return [_repository(row) for row in connection.execute(ALL)]

    def get(self, id: int) -> RepositoryRecord | None:
        """The repository with GitHub's id."""
        return self._one(BY_ID, id)

    def named(self, name: str) -> RepositoryRecord | None:
        """The repository with this configured name."""
        return self._one(BY_NAME, name)

    def record(self, repository: RepositoryRecord, now: datetime) -> None:
        """Write a repository, and wake its sessions. Repeating writes nothing.

        If its configured name changed, all rows under the old name get the new one.
        """
        if self.get(repository.id) == repository:
            return

        def work(connection: sqlite3.Connection) -> list[str]:
            before = connection.execute(BY_ID, (repository.id,)).fetchone()
            values = {
                "id": repository.id,
                "name": repository.name,
                "current_name": repository.current_name,
            }
            connection.execute(_REMOVE, values)
            connection.execute(_ADD, {**values, "archived": repository.archived})
            if before is not None and before["name"] != repository.name:
                for rename in _RENAMES:
                    connection.execute(rename, (repository.name, before["name"]))
            return wake_repository(connection, repository.name, now)

        self._db.announce(self._db.write(work))

    def _one(self, query: str, value: int | str) -> RepositoryRecord | None:
        with self._db.read() as connection:
            row = connection.execute(query, (value,)).fetchone()
            return None if row is None else _repository(row)


class ConfigurationsTable(StoreTable):
    """The configuration files of repositories."""

    def all(self) -> list[Configuration]:
        with self._db.read() as connection:
            return [
                Configuration(repository=row["repository"], blob=row["blob"], valid=row["valid"])
                for row in connection.execute(CONFIGURATIONS)
            ]

    def set(self, configuration: Configuration, actions: Sequence[Action] = ()) -> None:
        """Write a configuration, and add the actions that follow to the outbox."""
        values = (configuration.repository, configuration.blob, configuration.valid)
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SET_CONFIGURATION, values)
            add_repository_actions(connection, configuration.repository, actions, now)

        self._db.write(work)


def archived(connection: sqlite3.Connection) -> frozenset[str]:
    """The configured names of the archived repositories."""
    return frozenset(row["name"] for row in connection.execute(ALL) if row["archived"])


def _repository(row: Row) -> RepositoryRecord:
    return RepositoryRecord(
        id=row["id"],
        name=row["name"],
        current_name=row["current_name"],
        archived=bool(row["archived"]),
    )
