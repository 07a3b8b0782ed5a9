"""Tests of the choice of a run's isolation."""

import msgspec
import pytest

from bot.system.isolation import (
    NotIsolated,
    container_of,
    is_isolated,
    isolation_of,
    problems,
    unisolated,
)
from config.settings import AgentTypeSettings, ProjectSettings, RuntimeSettings, Settings
from runtimes.isolation import ISOLATIONS, strongest
from runtimes.isolation.base import OF_THIS_MACHINE, Container
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.containers import Containers


def written(runtime: str = "", project: str = "", kind: str = "") -> Settings:
    """Settings with these isolations."""
    value = {
        "runtime": {"isolation": runtime},
        "projects": {"widgets": {"repository": "acme/widgets", "isolation": project}},
        "agent-types": {"claude": {"program": "claude", "isolation": kind}},
    }
    return msgspec.convert(value, Settings)


def chosen(settings: Settings) -> str:
    return isolation_of(settings, "widgets", "claude")


@pytest.fixture(autouse=True)
def works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which bubblewrap works, unless a test uses `broken`."""
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, broken: None) -> None:
    """A machine on which containers of Podman alone work."""
    monkeypatch.setattr(
        Containers, "unavailable", lambda self, *_: "" if self is ISOLATIONS["podman"] else "none"
    )


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no isolation works."""
    monkeypatch.setattr(Containers, "unavailable", lambda *_: "no engine here")
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "no user namespaces here")


def test_every_isolation_is_a_word_of_the_configuration() -> None:
    words = msgspec.json.schema(RuntimeSettings)["$defs"]["RuntimeSettings"]["properties"]
    assert set(words["isolation"]["enum"]) == {"", *ISOLATIONS}


@pytest.mark.parametrize(
    ("runtime", "project", "kind", "expected"),
    [
        ("", "", "", "bubblewrap"),
        ("none", "", "", "none"),
        ("none", "bubblewrap", "", "bubblewrap"),
        ("none", "", "bubblewrap", "bubblewrap"),
        ("bubblewrap", "none", "", "none"),
        ("bubblewrap", "", "none", "none"),
        ("none", "bubblewrap", "none", "bubblewrap"),
        ("none", "none", "bubblewrap", "bubblewrap"),
    ],
)
def test_the_stronger_of_project_and_agent_type_goes_before_the_installation(
    runtime: str, project: str, kind: str, expected: str
) -> None:
    assert chosen(written(runtime, project, kind)) == expected


@pytest.mark.usefixtures("broken")
def test_no_agent_is_started_without_isolation_that_nobody_waived() -> None:
    with pytest.raises(NotIsolated, match=r'no user namespaces here. .* write isolation = "none"'):
        chosen(written())
    with pytest.raises(NotIsolated, match="claude needs isolation = 'bubblewrap': no user"):
        chosen(written("none", "bubblewrap"))
    assert chosen(written("none")) == "none"
    assert len(problems(written())) == 1
    assert problems(written("none")) == []


@pytest.mark.usefixtures("engine")
def test_containers_are_chosen_where_bubblewrap_does_not_work() -> None:
    assert chosen(written()) == "podman"
    with pytest.raises(NotIsolated, match="claude needs isolation = 'docker': none"):
        chosen(written("docker"))


def test_containers_are_made_from_what_the_configuration_names() -> None:
    named = {"sandbox": {"image": "agents:1", "oci-runtime": "runsc"}}
    settings = msgspec.convert(named, Settings)
    assert container_of(settings) == Container(image="agents:1", oci_runtime="runsc")
    assert container_of(written()) == OF_THIS_MACHINE


def test_runs_are_isolated_unless_a_person_wrote_none(broken: None) -> None:
    assert not is_isolated(written("none"), "widgets", "claude")
    assert is_isolated(written(), "widgets", "claude")  # None can be started.


def test_agents_without_isolation_are_named() -> None:
    assert unisolated(written()) == ""
    assert unisolated(written("none")).startswith("Agents run with all rights of the bot's user")
    both = written("none")
    types = {**both.agent_types, "safe": AgentTypeSettings(program="x", isolation="bubblewrap")}
    assert unisolated(msgspec.structs.replace(both, agent_types=types)).startswith(
        "Agents of claude run with all rights"
    )


def test_the_repositories_of_an_app_have_the_installations_isolation() -> None:
    settings = msgspec.structs.replace(written("none"), projects={})
    assert isolation_of(settings, "unknown", "claude") == "none"
    assert ProjectSettings(repository="a/b").isolation == ""


def test_demonstrations_run_in_the_strongest_that_works() -> None:
    assert strongest() == "bubblewrap"


@pytest.mark.usefixtures("engine")
def test_demonstrations_run_in_containers_without_bubblewrap() -> None:
    assert strongest() == "podman"


@pytest.mark.usefixtures("broken")
def test_demonstrations_run_without_isolation_where_none_works() -> None:
    assert strongest() == "none"
