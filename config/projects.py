"""The projects: those of the configuration, and those of the App's installations."""

import re
from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from fnmatch import fnmatchcase

from msgspec.structs import asdict

from config.settings import PROJECT_NAME, ProjectDefaults, ProjectSettings, Settings

#: How many characters of a repository's name remain in a project's name that ends in GitHub's id.
_READABLE = 24


class Projects(Mapping[str, ProjectSettings]):
    """All projects by name; those of the App's installations change while the bot runs.

    Thread-safe: `use` replaces the whole mapping at once, so the `items()` and `values()` that a
    caller already has do not change.
    """

    def __init__(self, settings: Settings, installed: Mapping[str, str] = {}) -> None:
        self._settings = settings
        self.use(installed)

    def use(self, installed: Mapping[str, str]) -> None:
        """Replace the projects of the App's installations.

        `installed` has their repositories (`owner/name`) by project name. Repositories that the
        configuration does not allow are ignored, and so are projects with the name or repository of
        a configured project.
        """
        settings, configured = self._settings, self._settings.projects
        shared = settings.installation.project or ProjectDefaults()
        self._all = {
            **configured,
            **{
                name: ProjectSettings(repository=repository, **asdict(shared))
                for name, repository in installed.items()
                if name not in configured
                and not project_of(configured, repository)
                and allows(settings, repository)
            },
        }

    def __getitem__(self, name: str) -> ProjectSettings:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def items(self) -> ItemsView[str, ProjectSettings]:
        return self._all.items()

    def values(self) -> ValuesView[ProjectSettings]:
        return self._all.values()


def allows(settings: Settings, repository: str) -> bool:
    """Whether a pattern in `installation.repositories` matches a repository (`owner/name`)."""
    patterns, name = settings.installation.repositories, repository.casefold()
    return any(fnmatchcase(name, pattern.casefold()) for pattern in patterns)


def project_name(repository: str, id: int, taken: Collection[str]) -> str:
    """Return a project name: the repository's name, with owner or id if that is taken or unfit.

    `taken` are the names in use, `id` is GitHub's id of the repository.
    """
    parts = repository.casefold().partition("/")
    owner, _, name = (re.sub(r"[^a-z0-9]+", "-", part) for part in parts)
    for wanted in (name.strip("-"), f"{owner}-{name}".strip("-")):
        if PROJECT_NAME.fullmatch(wanted) and wanted not in taken:
            return wanted
    return f"{name[:_READABLE]}-{id}".strip("-")


def project_of(projects: Mapping[str, ProjectSettings], repository: str) -> str:
    """Return the name of a repository's project, or "". Case is ignored, as at GitHub."""
    wanted = repository.casefold()
    fitting = (name for name, one in projects.items() if one.repository.casefold() == wanted)
    return next(fitting, "")
