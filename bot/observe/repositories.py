"""Observes repositories: the bot's access to them, their names and their configuration files."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled, Refused
from bot.github.rest import RepositoryIdentity
from bot.store import (
    ACCESS,
    ConfigurationsTable,
    FetchedFile,
    IncidentsTable,
    RefreshesTable,
    RepositoriesTable,
    RepositoryRecord,
)
from bot.system.clock import Clock
from config.repository import PATH
from config.settings import ProjectSettings

log = logging.getLogger(__name__)

#: A file that was read within this time is not read again, because two workers read all files when
#: the bot begins to lead.
_JUST_READ = timedelta(seconds=10)


def _repositories(projects: Mapping[str, ProjectSettings]) -> list[str]:
    return [project.repository for project in projects.values()]


@dataclass(frozen=True)
class AccessObserver:
    """Keeps an incident open for each repository that is archived or where the bot lacks access.

    Also records the current name of each repository, and whether it is archived.
    """

    records: RepositoriesTable
    refreshes: RefreshesTable
    incidents: IncidentsTable
    github: GitHub
    projects: Mapping[str, ProjectSettings]
    clock: Clock

    def __post_init__(self) -> None:
        for known in self.records.all():
            place = RepositoryIdentity(
                id=known.id, name=known.current_name, archived=known.archived
            )
            self.github.aliases[known.name] = place

    def read_requested(self) -> int:
        """Carry out due refreshes of the bot's access to repositories; return how many were due.

        They count as done even if a read fails; `read_all` reads again.
        """
        due = self.refreshes.due(self.clock(), (ACCESS,))
        asked = {refresh.repository for refresh in due}
        for repository in _repositories(self.projects):
            if repository in asked:
                self._read(repository)
        for refresh in due:
            self.refreshes.mark_done(refresh)
        return len(due)

    def read_all(self) -> None:
        """Read the bot's access to every repository."""
        for repository in _repositories(self.projects):
            self._read(repository)

    def _read(self, repository: str) -> None:
        """Read the bot's access to one repository, and open or close the repository's incident.

        If GitHub does not answer, the incident does not change.
        """
        try:
            with self.github.caching():
                lacking = tuple(self._lacking(repository))
        except (NotInstalled, Refused) as failure:
            lacking = (str(failure),)
        except GitHubFailure as failure:
            log.warning("%s: cannot read which permissions the bot has: %s", repository, failure)
            return
        key, now = f"access:{repository}", self.clock()
        text = f"{repository}: {'; '.join(lacking)}"
        if not lacking:
            self.incidents.clear(key, now)
        elif self.incidents.report(key, text, now):
            log.error("%s", text)

    def _lacking(self, repository: str) -> Iterator[str]:
        aliases, place = self.github.aliases, self.github.read.identity(repository)
        before = aliases.get(repository)
        if before is not None and before.name != place.name:
            log.warning("%s: renamed on GitHub from %s to %s", repository, before.name, place.name)
        aliases[repository] = place
        known = RepositoryRecord(
            id=place.id, name=repository, current_name=place.name, archived=place.archived
        )
        self.records.record(known, self.clock())
        yield from self.github.read.missing_permissions(repository, place)
        if place.archived:
            yield "it is archived, so no session starts there"


@dataclass(eq=False)
class RepositoryConfig:
    """Reads each repository's configuration file. A failed read changes nothing."""

    configurations: ConfigurationsTable
    refreshes: RefreshesTable
    github: GitHub
    projects: Mapping[str, ProjectSettings]
    clock: Clock
    _branches: dict[str, str] = field(default_factory=dict, init=False)  #: The default branches.
    #: The repositories whose file was read at least once, with or without success.
    _known: set[str] = field(default_factory=set, init=False)
    _first_read: dict[str, datetime] = field(default_factory=dict, init=False)

    def read(self) -> list[FetchedFile]:
        """Read the files of all repositories; return those that differ from the stored ones.

        Leaves out new repositories whose files `read_pushed` read moments ago.
        """
        first, self._first_read = self._first_read, {}
        since = self.clock() - _JUST_READ
        just_read = {repository for repository, at in first.items() if at > since}
        return self._changed(one for one in _repositories(self.projects) if one not in just_read)

    def read_pushed(self) -> list[FetchedFile]:
        """Read the files of repositories that are new or whose default branch was pushed to.

        Returns the files that differ from the stored ones. The refreshes of branches remain due,
        because they also cause reads of pull requests.
        """
        due = self.refreshes.due(self.clock(), ("branch:",))
        pushed = {(refresh.repository, refresh.subject.removeprefix("branch:")) for refresh in due}
        repositories = _repositories(self.projects)
        new = [one for one in repositories if one not in self._known]
        self._first_read.update(dict.fromkeys(new, self.clock()))
        return self._changed(
            repository
            for repository in repositories
            if repository in new or (repository, self._branches.get(repository, "")) in pushed
        )

    def _changed(self, repositories: Iterable[str]) -> list[FetchedFile]:
        kept = {one.repository: one.blob for one in self.configurations.all()}
        read = [self._read(repository) for repository in repositories]
        return [one for one in read if one and one.blob != kept.get(one.repository, "")]

    def _read(self, repository: str) -> FetchedFile | None:
        self._known.add(repository)
        try:
            seen = self.github.read.file(repository, PATH)
        except GitHubFailure as failure:
            log.warning("%s: %s not read: %s", repository, PATH, failure)
            return None
        self._branches[repository] = seen.branch
        return FetchedFile(repository=repository, head=seen.head, blob=seen.blob, text=seen.text)
