"""Adds a project for each of the App's repositories that `installation.repositories` allows."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.rest import InstalledRepository
from bot.store import InstalledProject, Store
from config.projects import Projects, allows, project_name, project_of
from config.settings import ProjectSettings, Settings

log = logging.getLogger(__name__)

#: The repositories of each installation, by the owner in lower case. None if the installation is
#: suspended, or its owner is not in `github.allowed-owners`.
Installations = Mapping[str, Sequence[InstalledRepository] | None]


@dataclass(frozen=True)
class InstallationObserver:
    """Adds and removes projects when the App's installations change.

    A failed read changes nothing.
    """

    store: Store
    github: GitHub
    settings: Settings  #: With the configured projects only.
    projects: Projects
    on_change: Callable[[], None]

    def read(self) -> None:
        """Read all installations and update the projects, if `installation.repositories` is set."""
        if not self.settings.installation.repositories:
            return
        try:
            with self.github.caching():
                found = self.github.installations.repositories()
        except GitHubFailure as failure:
            log.warning("the App's installations were not read: %s", failure)
            return
        before = self.store.installed.all()
        known, projects = self.store.repositories.all(), self.settings.projects
        configured = {one.id for one in known if project_of(projects, one.name)}
        after = followed(before, found, self.settings, configured)
        if after != before:
            self.store.installed.replace(after)
        were = dict(self.projects)
        self.projects.use(self.store.installed.projects())
        if were != dict(self.projects):
            self._report(were)
            self.on_change()

    def _report(self, were: Mapping[str, ProjectSettings]) -> None:
        """Log what changed, and close the incidents of repositories that are no longer projects."""
        for name in self.projects.keys() - were.keys():
            log.info("%s: is a project now: %s", name, self.projects[name].repository)
        for name in were.keys() - self.projects.keys():
            place = were[name].repository
            why = "was archived, disabled or renamed, or is in no installation any more"
            log.info("%s: is no longer a project: %s %s", name, place, why)
            for about in ("access", "configuration"):
                self.store.incidents.clear(f"{about}:{place}", self.store.clock())


def followed(
    before: Sequence[InstalledProject],
    found: Installations,
    settings: Settings,
    configured: Collection[int],
) -> list[InstalledProject]:
    """Return the projects `before`, updated to the repositories in `found`, sorted by name.

    `configured` has the ids of repositories whose projects are configured. These are ignored in
    `found`, as are forks and repositories that are archived, disabled or not allowed. A project
    whose repository is missing or ignored is marked as removed. Its name stays reserved for it, or
    for a new repository of the same name. The projects of an installation do not change while its
    repositories are None, as during a suspension.
    """
    listed = {
        one.id: one
        for of_owner in found.values()
        for one in of_owner or ()
        if one.id not in configured and _fits(one, settings)
    }
    after = {
        one.id: one
        if _owner(one.name) in found and found[_owner(one.name)] is None
        else replace(one, removed=one.id not in listed)
        for one in before
        if one.project not in settings.projects
    }
    for one in listed.values():
        if one.id in after:
            continue
        same = [old for old in after.values() if old.name.casefold() == one.full_name.casefold()]
        if same and not same[0].removed:
            log.warning(
                "%s: this new repository does not become a project, because the project %s belongs"
                " to another repository, which had this name before it was renamed",
                one.full_name,
                same[0].project,
            )
            continue
        taken = {*settings.projects, *(old.project for old in after.values())}
        name = same[0].project if same else project_name(one.full_name, one.id, taken)
        for old in same:
            del after[old.id]
        after[one.id] = InstalledProject(id=one.id, name=one.full_name, project=name)
    return sorted(after.values(), key=lambda one: one.project)


def _fits(one: InstalledRepository, settings: Settings) -> bool:
    if one.fork or one.archived or one.disabled or not allows(settings, one.full_name):
        return False
    return not project_of(settings.projects, one.full_name)


def _owner(repository: str) -> str:
    return repository.partition("/")[0].casefold()
