"""Where each value of a project's policy comes from."""

from msgspec.structs import replace

from bot.show.projects import PolicyValue, policy_values
from config.repository import narrowed
from config.settings import ProjectSettings, Settings
from lifecycle.model.policy import Mode, Policy

SERVER = Policy(mode=Mode.MERGE, ci_repairs=5, session_usd=9.0)
SETTINGS = Settings(
    projects={
        "widgets": ProjectSettings(
            repository="acme/widgets", policy=replace(SERVER, ci_repairs=4, stuck_seconds=60.0)
        ),
        "gears": ProjectSettings(repository="acme/gears"),
    },
    policy=SERVER,
)


def values(project: str, file: str = "") -> dict[str, PolicyValue]:
    policy = narrowed(file, SETTINGS.policy_of(project))
    return {one.name: one for one in policy_values(SETTINGS, project, policy)}


def changed(project: str, file: str = "") -> dict[str, tuple[object, str]]:
    found = values(project, file).values()
    return {one.name: (one.value, one.source) for one in found if one.source != "default"}


def test_every_value_names_the_last_place_that_changed_it() -> None:
    file = "[policy]\nsession-usd = 2.0\nci-repairs = 4\nmode = 'propose'\n"
    assert changed("widgets", file) == {
        "mode": ("propose", "repository"),
        "ci-repairs": (4, "project"),
        "stuck-seconds": (60.0, "project"),
        "session-usd": (2.0, "repository"),
    }
    assert changed("gears") == {
        "mode": ("merge", "server"),
        "ci-repairs": (5, "server"),
        "session-usd": (9.0, "server"),
    }


def test_every_value_says_what_the_repositorys_file_may_do() -> None:
    found = values("gears")
    assert len(found) == len(Policy.__struct_fields__)
    assert found["merge-method"].file == "choose"
    assert found["session-usd"].file == "narrow"
    assert found["protected-paths"].file == "narrow"
    assert found["stuck-seconds"].file == "none"
