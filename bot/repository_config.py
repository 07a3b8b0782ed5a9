"""What repositories say of themselves on their default branch, within the server's limits."""

import logging
from collections.abc import Callable, Mapping

from bot import words
from bot.clock import Clock
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused
from bot.github.files import SeenFile
from bot.store import Configuration, Store
from config.repository import PATH, RepositoryError, narrowed
from config.settings import Project
from lifecycle.policy import Policy

log = logging.getLogger(__name__)


class RepositoryConfig:
    """The policy of each project: the server's, narrowed by its repository's last good file."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        projects: Mapping[str, Project],
        server: Policy,
        clock: Clock,
        may_speak: Callable[[str], bool],
    ) -> None:
        """`may_speak`: whether anything may be written to this repository."""
        self._store = store
        self._github = github
        self._repositories = {name: project.repository for name, project in projects.items()}
        self._server = server
        self._clock = clock
        self._may_speak = may_speak
        self._branches: dict[str, str] = {}  # The default branch of each, once it was read.
        self._kept = {kept.repository: kept for kept in store.configurations()}
        self._policies = {name: self._policy(kept.good) for name, kept in self._kept.items()}

    def policy_of(self, project: str) -> Policy:
        """The policy a project's sessions are judged by."""
        return self._policies.get(self._repositories.get(project, ""), self._server)

    def look(self) -> bool:
        """Look at every repository; whether any policy is another one now."""
        changed = [self._look(repository) for repository in self._repositories.values()]
        return any(changed)

    def look_where_pushed(self) -> bool:
        """Look where a default branch has moved, or was never looked at; as `look`.

        What is due is left to those who read the branch for another reason.
        """
        due = self._store.due_touches(self._clock(), ("branch:",))
        moved = {(touch.repository, touch.subject.removeprefix("branch:")) for touch in due}
        changed = [
            self._look(repository)
            for repository in self._repositories.values()
            if repository not in self._branches or (repository, self._branches[repository]) in moved
        ]
        return any(changed)

    def _look(self, repository: str) -> bool:
        """Whether the policy of a repository is another one now. An outage changes nothing."""
        kept = self._kept.get(repository, Configuration(repository=repository))
        try:
            seen = self._github.files.one(repository, PATH)
            self._branches[repository] = seen.branch
            if seen.blob == kept.blob:
                return False
            now = self._heeded(repository, seen, kept)
        except GitHubFailure as failure:
            log.warning("%s: %s not read: %s", repository, PATH, failure)
            self._branches.setdefault(repository, "")
            return False
        self._store.keep_configuration(now)
        self._kept[repository] = now
        before, self._policies[repository] = (
            self._policies.get(repository, self._server),
            self._policy(now.good),
        )
        return self._policies[repository] != before

    def _heeded(self, repository: str, seen: SeenFile, kept: Configuration) -> Configuration:
        """What is in force with this file; a broken one is told of, and the last good one stays."""
        incident, now = f"configuration:{repository}", self._clock()
        try:
            narrowed(seen.text, self._server)
        except RepositoryError as error:
            text = f"{repository}: {error}"
            if self._store.raise_incident(incident, text, now):
                log.error("%s", text)
            if self._may_speak(repository):
                self._tell(repository, seen.head, error)
            return Configuration(repository=repository, blob=seen.blob, good=kept.good)
        self._store.clear_incident(incident, now)
        return Configuration(repository=repository, blob=seen.blob, good=seen.text)

    def _tell(self, repository: str, head: str, error: RepositoryError) -> None:
        name = words.CONFIGURATION_CHECK
        try:
            self._github.reports.fault(repository, head, name, PATH, error.problems)
        except Refused as refusal:
            log.warning("%s: not reported: %s", repository, refusal)

    def _policy(self, good: str) -> Policy:
        """The policy with a text that was good once, if it is so under the server's of today."""
        try:
            return narrowed(good, self._server)
        except RepositoryError as error:
            log.error("%s: not in force any more: %s", PATH, error)
            return self._server
