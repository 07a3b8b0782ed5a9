"""The observer of our own rights: whether GitHub still lets us do what is needed, and where."""

import logging
from collections.abc import Collection, Iterator

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled, Refused
from bot.github.repository_aliases import Place
from bot.store import RIGHTS, RepositoryRecord, Store
from bot.system.clock import Clock
from config.settings import ProjectSettings

log = logging.getLogger(__name__)


class AccessObserver:
    """Tells people of what is missing while it is: a permission, an installation, a repository.

    What GitHub refuses is refused where it is asked for. A repository that is called otherwise is
    the same one; to one that is archived nothing is written.
    """

    def __init__(
        self, store: Store, github: GitHub, projects: Collection[ProjectSettings], clock: Clock
    ) -> None:
        self._store = store
        self._github = github
        self._projects = projects
        self._clock = clock
        for known in store.repositories.all():
            place = Place(id=known.id, now=known.current_name, archived=known.archived)
            github.places.learn(known.name, place)

    def read_requested(self) -> int:
        """Look at once where GitHub said that something changed. Returns how often it did."""
        due = self._store.refreshes.due(self._clock(), (RIGHTS,))
        asked = {refresh.repository for refresh in due}
        for project in self._projects:
            if project.repository in asked:
                self._look(project.repository)
        for refresh in due:
            self._store.refreshes.mark_done(refresh)
        return len(due)

    def look(self) -> None:
        """Look at every project's repository."""
        for project in self._projects:
            self._look(project.repository)

    def _look(self, repository: str) -> None:
        """Look at one. An outage says nothing about rights."""
        try:
            with self._github.remembering():
                lacking = tuple(self._lacking(repository))
        except (NotInstalled, Refused) as failure:
            lacking = (str(failure),)
        except GitHubFailure as failure:
            log.warning("%s: rights not read: %s", repository, failure)
            return
        self._tell(repository, lacking)

    def _lacking(self, repository: str) -> Iterator[str]:
        before, place = self._github.places.of(repository), self._github.read.place(repository)
        if before is not None and before != place:
            log.warning("%s: it was %s and is %s now", repository, before, place)
        self._github.places.learn(repository, place)
        known = RepositoryRecord(
            id=place.id, name=repository, current_name=place.now, archived=place.archived
        )
        self._store.repositories.record(known, self._clock())
        yield from self._github.read.lacking(repository)
        if place.archived:
            yield "it is archived, so that nothing starts there"

    def _tell(self, repository: str, lacking: Collection[str]) -> None:
        key, now = f"access:{repository}", self._clock()
        if not lacking:
            self._store.incidents.clear(key, now)
            return
        text = f"{repository}: {'; '.join(lacking)}"
        if self._store.incidents.report(key, text, now):
            log.error("%s", text)
