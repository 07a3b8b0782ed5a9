"""The observer of our own rights: whether GitHub still lets us do what is needed."""

import logging
from collections.abc import Collection

from bot.clock import Clock
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled, Refused
from bot.store import Store
from config.settings import Project

log = logging.getLogger(__name__)


class WatchAccess:
    """Tells people of a permission that is missing, or an installation that is gone, while it is.

    Nothing is stopped by it: what GitHub refuses is refused where it is asked for.
    """

    def __init__(
        self, store: Store, github: GitHub, projects: Collection[Project], clock: Clock
    ) -> None:
        self._store = store
        self._github = github
        self._projects = projects
        self._clock = clock

    def look(self) -> None:
        """Look at every project's repository. An outage says nothing about rights."""
        for project in self._projects:
            try:
                lacking = self._github.read.lacking(project.repository)
            except (NotInstalled, Refused) as failure:
                lacking = (str(failure),)
            except GitHubFailure as failure:
                log.warning("%s: rights not read: %s", project.repository, failure)
                continue
            self._tell(project.repository, lacking)

    def _tell(self, repository: str, lacking: Collection[str]) -> None:
        key, now = f"access:{repository}", self._clock()
        if not lacking:
            self._store.clear_incident(key, now)
            return
        text = f"{repository}: {'; '.join(lacking)}"
        if self._store.raise_incident(key, text, now):
            log.error("%s", text)
