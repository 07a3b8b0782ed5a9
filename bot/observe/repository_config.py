"""The observer of what repositories say of themselves on their default branch."""

import logging

from bot.decide.policies import Policies
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused
from bot.github.files import SeenFile
from bot.store import Configuration, Store
from bot.system.clock import Clock
from bot.text import messages
from config.repository import PATH, FileProblem, RepositoryError, narrowed

log = logging.getLogger(__name__)


class RepositoryConfig:
    """Reads every repository's file, and keeps the last good one in force."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        policies: Policies,
        clock: Clock,
    ) -> None:
        self._store = store
        self._github = github
        self._policies = policies
        self._clock = clock
        self._branches: dict[str, str] = {}  # The default branch of each, once it was read.
        self._kept = {kept.repository: kept for kept in store.configurations.all()}

    def look(self) -> bool:
        """Look at every repository; whether any policy is another one now."""
        changed = [self._look(one) for one in self._policies.repositories.values()]
        return any(changed)

    def look_where_pushed(self) -> bool:
        """Look where a default branch has moved, or was never looked at; as `look`.

        What is due is left to those who read the branch for another reason.
        """
        due = self._store.refreshes.due(self._clock(), ("branch:",))
        moved = {(refresh.repository, refresh.subject.removeprefix("branch:")) for refresh in due}
        changed = [
            self._look(repository)
            for repository in self._policies.repositories.values()
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
            now = self._applied(repository, seen, kept)
        except GitHubFailure as failure:
            log.warning("%s: %s not read: %s", repository, PATH, failure)
            self._branches.setdefault(repository, "")
            return False
        self._store.configurations.set(now)
        self._kept[repository] = now
        return self._policies.take(now)

    def _applied(self, repository: str, seen: SeenFile, kept: Configuration) -> Configuration:
        """What is in force with this file; a broken one is told of, and the last good one stays."""
        incident, now = f"configuration:{repository}", self._clock()
        try:
            if seen.text is None:
                raise RepositoryError([FileProblem(1, "it is no text")])
            narrowed(seen.text, self._policies.server)
        except RepositoryError as error:
            text = f"{repository}: {error}"
            if self._store.incidents.report(incident, text, now):
                log.error("%s", text)
            if self._policies.may_speak(repository):
                self._tell(repository, seen.head, error)
            return Configuration(repository=repository, blob=seen.blob, good=kept.good)
        self._store.incidents.clear(incident, now)
        return Configuration(repository=repository, blob=seen.blob, good=seen.text)

    def _tell(self, repository: str, head: str, error: RepositoryError) -> None:
        name = messages.CONFIGURATION_CHECK
        try:
            self._github.reports.fault(repository, head, name, PATH, error.problems)
        except Refused as refusal:
            log.warning("%s: not reported: %s", repository, refusal)
