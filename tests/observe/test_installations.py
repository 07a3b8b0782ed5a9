"""Which repositories of the App's installations become projects, and which are removed again."""

from itertools import combinations

import pytest

from bot.github.rest import InstalledRepository
from bot.observe.installations import Installations, followed
from bot.store import InstalledProject
from config.settings import InstallationSettings, ProjectSettings, Settings

SETTINGS = Settings(
    projects={"widgets": ProjectSettings(repository="acme/widgets")},
    installation=InstallationSettings(repositories=("acme/*",)),
)
GEARS = InstalledProject(id=1, name="acme/gears", project="gears")
GONE = InstalledProject(id=1, name="acme/gears", project="gears", removed=True)


def listed(id: int, name: str, **fields: bool) -> InstalledRepository:
    return InstalledRepository(id=id, full_name=name, **fields)


#: What was a project, what GitHub lists, and what is a project then.
LOOKS: dict[str, tuple[list[InstalledProject], Installations, list[InstalledProject]]] = {
    "a new one": ([], {"acme": [listed(1, "acme/gears")]}, [GEARS]),
    "outside the patterns": ([], {"evil": [listed(1, "evil/gears")]}, []),
    "a fork": ([], {"acme": [listed(1, "acme/gears", fork=True)]}, []),
    "archived": ([], {"acme": [listed(1, "acme/gears", archived=True)]}, []),
    "disabled": ([], {"acme": [listed(1, "acme/gears", disabled=True)]}, []),
    "configured by its name": ([], {"acme": [listed(9, "Acme/Widgets")]}, []),
    "configured under a former name": ([], {"acme": [listed(7, "acme/renamed")]}, []),
    "archived later": ([GEARS], {"acme": [listed(1, "acme/gears", archived=True)]}, [GONE]),
    "removed": ([GEARS], {"acme": []}, [GONE]),
    "uninstalled": ([GEARS], {}, [GONE]),
    "suspended": ([GEARS], {"acme": None}, [GEARS]),
    "back again": ([GONE], {"acme": [listed(1, "acme/gears")]}, [GEARS]),
    "renamed": ([GEARS], {"acme": [listed(1, "acme/wheels")]}, [GEARS]),
    "renamed out of the patterns": ([GEARS], {"evil": [listed(1, "evil/gears")]}, [GONE]),
    "another under the name of a renamed one": (
        [GEARS],
        {"acme": [listed(1, "acme/wheels"), listed(2, "Acme/Gears")]},
        [GEARS],
    ),
    "deleted and made again": (
        [GONE],
        {"acme": [listed(2, "acme/gears")]},
        [InstalledProject(id=2, name="acme/gears", project="gears")],
    ),
    "a name that is configured now": (
        [InstalledProject(id=1, name="acme/gears", project="widgets")],
        {"acme": [listed(1, "acme/gears")]},
        [GEARS],
    ),
    "a name that another one has": (
        [GEARS],
        {"acme": [listed(1, "acme/gears"), listed(2, "acme/Gears.")]},
        [InstalledProject(id=2, name="acme/Gears.", project="acme-gears"), GEARS],
    ),
}


@pytest.mark.parametrize(("before", "found", "after"), LOOKS.values(), ids=LOOKS)
def test_projects_follow_the_installations(
    before: list[InstalledProject], found: Installations, after: list[InstalledProject]
) -> None:
    now = followed(before, found, SETTINGS, {7})
    assert now == after
    assert followed(now, found, SETTINGS, {7}) == after, "a second look changes nothing"


def test_names_never_collide_and_are_kept() -> None:
    names = ("acme/a-b", "acme/a_b", "acme/A.B", "acme/widgets", "acme/acme-a-b")
    for known in (0, 1, 2, 3, 4, 5):
        for few in combinations(list(enumerate(names, 1)), known):
            first = followed([], {"acme": [listed(*one) for one in few]}, SETTINGS, ())
            every = [listed(number, name) for number, name in enumerate(names, 1)]
            then = followed(first, {"acme": every}, SETTINGS, ())
            assert {one.project for one in then}.isdisjoint(SETTINGS.projects)
            assert len({one.project for one in then}) == len(then) == len(names) - 1
            assert {one.id: one.project for one in first}.items() <= {
                one.id: one.project for one in then
            }.items()
