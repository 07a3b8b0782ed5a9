"""Projects of the App's installations beside those of the configuration."""

import pytest

from config.projects import Projects, allows, project_name, project_of
from config.settings import InstallationSettings, ProjectDefaults, ProjectSettings, Settings
from lifecycle.model.policy import Mode, Policy

SHARED = ProjectDefaults(agent="shell", policy=Policy(mode=Mode.OBSERVE))
SETTINGS = Settings(
    projects={"widgets": ProjectSettings(repository="acme/widgets")},
    installation=InstallationSettings(repositories=("acme/*", "Umbra/tool-?"), project=SHARED),
)


@pytest.mark.parametrize(
    ("repository", "allowed"),
    [
        ("acme/gears", True),
        ("ACME/Gears", True),
        ("umbra/tool-a", True),
        ("umbra/tool-ab", False),
        ("acme-corp/gears", False),
        ("evil/acme", False),
        ("evil/acme/gears", False),
    ],
)
def test_only_matching_repositories_are_allowed(repository: str, allowed: bool) -> None:
    assert allows(SETTINGS, repository) is allowed
    assert ("x" in Projects(SETTINGS, {"x": repository})) is allowed


def test_none_is_allowed_by_default() -> None:
    assert Projects(Settings(), {"gears": "acme/gears"}) == {}


def test_they_share_their_settings_and_follow_each_change() -> None:
    projects = Projects(SETTINGS, {"gears": "acme/gears"})
    assert projects["gears"].repository == "acme/gears"
    assert (projects["gears"].agent, projects["gears"].policy) == ("shell", SHARED.policy)
    assert project_of(projects, "Acme/Gears") == "gears"
    before = projects.items()
    projects.use({"wheels": "acme/wheels"})
    assert (set(projects), {name for name, _ in before}) == (
        {"widgets", "wheels"},
        {"widgets", "gears"},
    )


def test_a_configured_project_takes_precedence() -> None:
    projects = Projects(SETTINGS, {"widgets": "acme/other", "again": "Acme/Widgets"})
    assert projects == SETTINGS.projects


@pytest.mark.parametrize(
    ("repository", "taken", "name"),
    [
        ("acme/widgets", (), "widgets"),
        ("acme/My_Tool.js", (), "my-tool-js"),
        ("acme/widgets", ("widgets",), "acme-widgets"),
        ("acme/widgets", ("widgets", "acme-widgets"), "widgets-7"),
        ("acme/...", (), "acme"),
        ("acme/...", ("acme",), "7"),
        ("acme/" + "w" * 39, (), "w" * 39),
        ("acme/" + "w" * 40, (), "w" * 24 + "-7"),
    ],
)
def test_each_gets_a_name_of_its_own(repository: str, taken: tuple[str, ...], name: str) -> None:
    assert project_name(repository, 7, taken) == name
