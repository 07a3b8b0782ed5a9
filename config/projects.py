"""The projects: those of the configuration, and those of the App's installations."""

import re
from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from fnmatch import fnmatchcase

from msgspec.structs import asdict

from config.settings import PROJECT_NAME, ProjectDefaults, ProjectSettings, Settings

#: So long may the readable part of a name be before GitHub's id of the repository.
_READABLE = 24


class Projects(Mapping[str, ProjectSettings]):
    """All projects by name. Those of the App's installations change while the bot runs.

    Thread-safe: a change replaces all of them at once, and items and values stay those of one
    moment.
    """

    def __init__(self, settings: Settings, installed: Mapping[str, str] = {}) -> None:
        self._settings = settings
        self.use(installed)

    def use(self, installed: Mapping[str, str]) -> None:
        """Replace those of the App's installations: repositories (`owner/name`) by project.

        Only those that the configuration allows become projects, and a project of the
        configuration takes precedence over one of the same name or repository.
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
    """Whether a repository of an installation may become a project by itself."""
    patterns, name = settings.installation.repositories, repository.casefold()
    return any(fnmatchcase(name, pattern.casefold()) for pattern in patterns)


def project_name(repository: str, id: int, taken: Collection[str]) -> str:
    """Return a free name for a repository of an installation; `id` is GitHub's."""
    parts = repository.casefold().partition("/")
    owner, _, name = (re.sub(r"[^a-z0-9]+", "-", part) for part in parts)
    for wanted in (name.strip("-"), f"{owner}-{name}".strip("-")):
        if PROJECT_NAME.fullmatch(wanted) and wanted not in taken:
            return wanted
    return f"{name[:_READABLE]}-{id}".strip("-")


def project_of(projects: Mapping[str, ProjectSettings], repository: str) -> str:
    """Return the name of a repository's project; empty if it has none. GitHub ignores case."""
    wanted = repository.casefold()
    fitting = (name for name, one in projects.items() if one.repository.casefold() == wanted)
    return next(fitting, "")
