"""Observes repositories' own configuration files on their default branches."""

import logging
from collections.abc import Iterable

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.store import FetchedFile, Store
from bot.system.clock import Clock
from config.repository import PATH

log = logging.getLogger(__name__)


class RepositoryConfig:
    """Reads every repository's file. A failed read changes nothing."""

    def __init__(
        self, store: Store, github: GitHub, repositories: Iterable[str], clock: Clock
    ) -> None:
        self._store = store
        self._github = github
        self._repositories = tuple(repositories)
        self._clock = clock
        self._branches: dict[str, str] = {}  # The default branch of each, once it was read.

    def read(self) -> list[FetchedFile]:
        """Read every repository's file; those that differ from the ones kept in the store."""
        return self._changed(self._repositories)

    def read_pushed(self) -> list[FetchedFile]:
        """Like `read`, of repositories whose default branch was pushed to or is not known yet.

        The refreshes of branches stay due: pull requests are read for them too.
        """
        due = self._store.refreshes.due(self._clock(), ("branch:",))
        pushed = {(refresh.repository, refresh.subject.removeprefix("branch:")) for refresh in due}
        return self._changed(
            repository
            for repository in self._repositories
            if repository not in self._branches
            or (repository, self._branches[repository]) in pushed
        )

    def _changed(self, repositories: Iterable[str]) -> list[FetchedFile]:
        kept = {one.repository: one.blob for one in self._store.configurations.all()}
        read = [self._read(repository) for repository in repositories]
        return [one for one in read if one and one.blob != kept.get(one.repository, "")]

    def _read(self, repository: str) -> FetchedFile | None:
        try:
            seen = self._github.files.get(repository, PATH)
        except GitHubFailure as failure:
            log.warning("%s: %s not read: %s", repository, PATH, failure)
            self._branches.setdefault(repository, "")
            return None
        self._branches[repository] = seen.branch
        return FetchedFile(repository=repository, head=seen.head, blob=seen.blob, text=seen.text)
