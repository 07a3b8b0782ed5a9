"""Observes the bot's own access: permissions, installations, renamed and archived repositories."""

import logging
from collections.abc import Collection, Iterator

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled, Refused
from bot.github.rest import RepositoryIdentity
from bot.store import ACCESS, RepositoryRecord, Store
from bot.system.clock import Clock
from config.settings import ProjectSettings

log = logging.getLogger(__name__)


class AccessObserver:
    """Keeps an incident open for each repository in which the bot lacks access.

    Also records renamed repositories under their new names, and archived ones as read-only.
    """

    def __init__(
        self, store: Store, github: GitHub, projects: Collection[ProjectSettings], clock: Clock
    ) -> None:
        self._store = store
        self._github = github
        self._projects = projects
        self._clock = clock
        for known in store.repositories.all():
            place = RepositoryIdentity(
                id=known.id, name=known.current_name, archived=known.archived
            )
            github.aliases.record(known.name, place)

    def read_requested(self) -> int:
        """Read the repositories for which a refresh is due; return the number of refreshes."""
        due = self._store.refreshes.due(self._clock(), (ACCESS,))
        asked = {refresh.repository for refresh in due}
        for project in self._projects:
            if project.repository in asked:
                self._read(project.repository)
        for refresh in due:
            self._store.refreshes.mark_done(refresh)
        return len(due)

    def read_all(self) -> None:
        """Read every project's repository."""
        for project in self._projects:
            self._read(project.repository)

    def _read(self, repository: str) -> None:
        """Read one repository. An outage says nothing about access."""
        try:
            with self._github.caching():
                lacking = tuple(self._lacking(repository))
        except (NotInstalled, Refused) as failure:
            lacking = (str(failure),)
        except GitHubFailure as failure:
            log.warning("%s: access not read: %s", repository, failure)
            return
        self._report(repository, lacking)

    def _lacking(self, repository: str) -> Iterator[str]:
        before, place = self._github.aliases.get(repository), self._github.read.identity(repository)
        if before is not None and before != place:
            log.warning("%s: was %s and is %s now", repository, before, place)
        self._github.aliases.record(repository, place)
        known = RepositoryRecord(
            id=place.id, name=repository, current_name=place.name, archived=place.archived
        )
        self._store.repositories.record(known, self._clock())
        yield from self._github.read.missing_permissions(repository)
        if place.archived:
            yield "it is archived, so no session starts there"

    def _report(self, repository: str, lacking: Collection[str]) -> None:
        key, now = f"access:{repository}", self._clock()
        if not lacking:
            self._store.incidents.clear(key, now)
            return
        text = f"{repository}: {'; '.join(lacking)}"
        if self._store.incidents.report(key, text, now):
            log.error("%s", text)
