"""Stores repositories, the projects of the App's installations, and configuration files."""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import wake_scope
from bot.store.outbox import add_repository_actions
from bot.store.rows import RowDecoder, columns
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
    *("configurations", "inherited", "ledger", "delivery_outcomes"),
)
_RENAME = "UPDATE OR IGNORE {table} SET repository = ? WHERE repository = ?"
INSTALLED = "SELECT id, name, project, removed FROM installed_projects ORDER BY project"
_CLEAR_INSTALLED = "DELETE FROM installed_projects"
_ADD_INSTALLED = """INSERT INTO installed_projects (id, name, project, removed)
    VALUES (:id, :name, :project, :removed)"""
CONFIGURATIONS = "SELECT repository, blob, valid FROM configurations ORDER BY repository"
_SET_CONFIGURATION = """INSERT INTO configurations (repository, blob, valid)
    VALUES (:repository, :blob, :valid)
    ON CONFLICT (repository) DO UPDATE SET blob = excluded.blob, valid = excluded.valid"""


class RepositoryRecord(Struct, frozen=True, kw_only=True):
    """A repository that is or was configured."""

    id: int  #: GitHub's id, which a rename does not change.
    name: str  #: `owner/name`, as configured.
    current_name: str  #: `owner/name` at GitHub today.
    archived: bool = False


class InstalledProject(Struct, frozen=True, kw_only=True):
    """A repository of one of the App's installations that is or was a project."""

    id: int  #: GitHub's id of the repository.
    name: str  #: `owner/name` when it became a project.
    project: str  #: The project's name.
    removed: bool = False  #: Whether it is no longer a project.


class Configuration(Struct, frozen=True, kw_only=True):
    """The state of the configuration file in one repository."""

    repository: str
    blob: str = ""  #: Git's id of the file last read; empty if there was none.
    valid: str = ""  #: The text of the last valid file; empty if there was none.


class FetchedFile(Struct, frozen=True, kw_only=True):
    """The configuration file as read from the default branch, which may have none."""

    repository: str
    head: str  #: The commit it was read from.
    blob: str  #: Git's id of the file; empty if there is none.
    text: str | None  #: Empty if there is no file; None if the file is not text.


_installed = RowDecoder(InstalledProject, "installed_projects")
_repository = RowDecoder(RepositoryRecord, "repositories")
_configuration = RowDecoder(Configuration, "configurations", "repository")


class RepositoriesTable(StoreTable):
    """Repositories that are or were configured, by GitHub's id."""

    def all(self) -> list[RepositoryRecord]:
        """Return all repositories, sorted by configured name."""
        return list(map(_repository, self._all(ALL)))

    def get(self, id: int) -> RepositoryRecord | None:
        """Return the repository with this id at GitHub; None if it is unknown."""
        row = self._first(BY_ID, (id,))
        return None if row is None else _repository(row)

    def named(self, name: str) -> RepositoryRecord | None:
        """Return the repository with this configured name; None if it is unknown."""
        row = self._first(BY_NAME, (name,))
        return None if row is None else _repository(row)

    def record(self, repository: RepositoryRecord, now: datetime) -> None:
        """Write a repository and wake its live sessions.

        Does nothing if the repository has not changed. If its configured name changed, the rows
        of other tables get the new name, except those that would then duplicate an existing row.
        """
        if self.get(repository.id) == repository:
            return

        def work(connection: sqlite3.Connection) -> list[str]:
            before = connection.execute(BY_ID, (repository.id,)).fetchone()
            connection.execute(_REMOVE, columns(repository))
            connection.execute(_ADD, columns(repository))
            if before is not None and before["name"] != repository.name:
                for table in _TABLES:
                    rename = _RENAME.format(table=table)
                    connection.execute(rename, (repository.name, before["name"]))
            return wake_scope(connection, f"repository:{repository.name}", now)

        self._change(work)


class InstalledTable(StoreTable):
    """The projects of the App's installations."""

    def all(self) -> list[InstalledProject]:
        """Return all projects of installations, including removed ones, sorted by project name."""
        return list(map(_installed, self._all(INSTALLED)))

    def projects(self) -> dict[str, str]:
        """Return the repository (`owner/name`) of each project that is not removed, by project."""
        return {one.project: one.name for one in self.all() if not one.removed}

    def replace(self, all_of_them: Iterable[InstalledProject]) -> None:
        """Replace all rows, in one transaction."""
        rows = list(map(columns, all_of_them))

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_CLEAR_INSTALLED)
            connection.executemany(_ADD_INSTALLED, rows)

        self._db.write(work)


class ConfigurationsTable(StoreTable):
    """The configuration files of repositories."""

    def all(self) -> list[Configuration]:
        return list(map(_configuration, self._all(CONFIGURATIONS)))

    def set(self, configuration: Configuration, actions: Sequence[Action] = ()) -> None:
        """Write a configuration and add `actions` to the outbox, in one transaction."""
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SET_CONFIGURATION, columns(configuration))
            add_repository_actions(connection, configuration.repository, actions, now)

        self._db.write(work)


def archived(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the configured names of the archived repositories."""
    return frozenset(row["name"] for row in connection.execute(ALL) if row["archived"])
