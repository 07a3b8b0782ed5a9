"""Computes each project's policy: the configured one, narrowed by a file in the repository.

The file is `.github/mergewright.toml`. While it is invalid, its last valid version applies.
"""

import logging
from collections.abc import Iterable, Mapping

from bot.store import Configuration, FetchedFile, Store
from config.projects import project_of
from config.repository import PATH, FileProblem, RepositoryError, narrowed, still_narrowed
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.accounts import bot_name, is_bot
from lifecycle.model.actions import FaultyLine, ReportConfiguration
from lifecycle.model.policy import Mode, Policy

log = logging.getLogger(__name__)


class Policies:
    """Looks up and updates the policy of each project. Thread-safe."""

    def __init__(
        self, store: Store, projects: Mapping[str, ProjectSettings], server: Policy
    ) -> None:
        self._store = store
        self._server = server
        self._projects = projects
        self._narrowed: dict[str, Policy] = {}
        self.apply_all()

    def apply_all(self) -> None:
        """Apply each repository's last valid configuration file.

        It narrows the policy that is now configured for the project.
        """
        for kept in self._store.configurations.all():
            self.apply(kept)

    def of(self, project: str) -> Policy:
        """Return the policy of a project's sessions; for an unknown project, that of the server."""
        known = self._projects.get(project)
        return self.of_repository(known.repository) if known else self._server

    def of_repository(self, repository: str) -> Policy:
        """Return the policy of a repository, given as `owner/name` in any case."""
        return self._narrowed.get(repository.casefold(), self._configured(repository))

    def _configured(self, repository: str) -> Policy:
        """Return the policy in the server's configuration, without the repository's file."""
        project = self._project(repository)
        return (project.policy if project else None) or self._server

    def _project(self, repository: str) -> ProjectSettings | None:
        return self._projects.get(project_of(self._projects, repository))

    def is_listed(self, repository: str, login: str) -> bool:
        """Whether the configuration lets an account give commands, even without write access.

        A bot may be listed in the policy, or, with the suffix `[bot]`, among the project's people.
        """
        project = self._project(repository)
        people = project.people if project else ()
        if is_bot(login):
            listed = bot_name(login) in map(bot_name, filter(is_bot, people))
            return listed or self.of_repository(repository).lists(login)
        return login.casefold() in map(str.casefold, people)

    def is_silenced(self, repository: str) -> bool:
        """Whether the bot must not write to a repository.

        That is so in two cases: the repository's project or the whole bot is frozen, or the
        repository's mode is `observe`.
        """
        scopes = {"", f"project:{project_of(self._projects, repository)}"}
        frozen = any(one.scope in scopes for one in self._store.freezes.all())
        return frozen or self.of_repository(repository).mode is Mode.OBSERVE

    def adopt(self, files: Iterable[FetchedFile]) -> bool:
        """Apply fetched configuration files. Returns whether a policy changed.

        An invalid file opens an incident, and the repository's last valid file remains in force.
        A failed check on the file's commit lists the problems, unless the bot may not write there.
        """
        kept = {one.repository: one for one in self._store.configurations.all()}
        changed = [self._adopt(file, kept.get(file.repository)) for file in files]
        return any(changed)

    def _adopt(self, file: FetchedFile, kept: Configuration | None) -> bool:
        repository, now = file.repository, self._store.clock()
        incident = f"configuration:{repository}"
        try:
            if file.text is None:
                raise RepositoryError([FileProblem(1, "the file is not text")])
            narrowed(file.text, self._configured(repository))
        except RepositoryError as error:
            text = f"{repository}: {error}"
            if self._store.incidents.report(incident, text, now):
                log.error("%s", text)
            valid = kept.valid if kept else ""
            report = () if self.is_silenced(repository) else (_report(file, error),)
        else:
            self._store.incidents.clear(incident, now)
            valid, report = file.text, ()
        seen = Configuration(repository=repository, blob=file.blob, valid=valid)
        self._store.configurations.set(seen, report)
        return self.apply(seen)

    def apply(self, kept: Configuration) -> bool:
        """Apply a repository's last valid file, `kept.valid`. Returns whether its policy changed.

        Settings that the server's current policy no longer permits are ignored and logged.
        """
        before, server = self.of_repository(kept.repository), self._configured(kept.repository)
        try:
            now, refused = still_narrowed(kept.valid, server)
        except RepositoryError as error:
            log.error("%s: %s is ignored: %s", kept.repository, PATH, error)
            now, refused = server, []
        for one in refused:
            log.error("%s: %s: ignored: %s", kept.repository, PATH, one.says)
        self._narrowed[kept.repository.casefold()] = now
        return now != before


def _report(file: FetchedFile, error: RepositoryError) -> ReportConfiguration:
    return ReportConfiguration(
        key=keys.report_configuration(file.head, file.blob),
        head=file.head,
        path=PATH,
        problems=tuple(FaultyLine(line=one.line, says=one.says) for one in error.problems),
    )
