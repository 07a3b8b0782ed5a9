"""Which policy a session has: the server's, narrowed by its repository's last good file."""

import logging
from collections.abc import Mapping

from bot.store import Configuration, Store
from config.repository import PATH, RepositoryError, still_narrowed
from config.settings import ProjectSettings
from lifecycle.model.policy import Mode, Policy

log = logging.getLogger(__name__)


class Policies:
    """The policy of each project, as far as its repository's file was read. Any thread may ask."""

    def __init__(
        self, store: Store, projects: Mapping[str, ProjectSettings], server: Policy
    ) -> None:
        self._store = store
        self.server = server
        self.repositories = {name: project.repository for name, project in projects.items()}
        self._people = {
            project.repository.casefold(): frozenset(login.casefold() for login in project.people)
            for project in projects.values()
        }
        self._narrowed: dict[str, Policy] = {}
        for kept in store.configurations.all():
            self.take(kept)

    def of(self, project: str) -> Policy:
        """The policy a project's sessions are judged by."""
        return self.of_repository(self.repositories.get(project, ""))

    def of_repository(self, repository: str) -> Policy:
        """The same by `owner/name`, in any case."""
        return self._narrowed.get(repository.casefold(), self.server)

    def lists_bot(self, repository: str, login: str) -> bool:
        """Whether this bot's word counts in a repository."""
        return self.of_repository(repository).lists(login)

    def lists(self, repository: str, login: str) -> bool:
        """Whether somebody may steer there whatever GitHub says: listed people and bots."""
        if login.casefold() in self._people.get(repository.casefold(), ()):
            return True
        return login.endswith("[bot]") and self.lists_bot(repository, login)

    def may_speak(self, repository: str) -> bool:
        """Whether something may be said there that no session says."""
        ours = self.repositories.items()
        scopes = {f"project:{project}" for project, one in ours if one == repository}
        frozen = any(one.scope in {"", *scopes} for one in self._store.freezes.all())
        return self.of_repository(repository).mode is not Mode.OBSERVE and not frozen

    def take(self, kept: Configuration) -> bool:
        """Have a repository's file in force; whether its policy is another one now.

        A text that was good once is not under every server's policy: what is not counts for
        nothing, and all else of it holds.
        """
        before = self.of_repository(kept.repository)
        try:
            now, refused = still_narrowed(kept.good, self.server)
        except RepositoryError as error:
            log.error("%s: %s: not in force any more: %s", kept.repository, PATH, error)
            now, refused = self.server, []
        for one in refused:
            log.error("%s: %s: not in force any more: %s", kept.repository, PATH, one.says)
        self._narrowed[kept.repository.casefold()] = now
        return now != before
