"""Set-up and teardown of workspaces: the project's own commands, around the runs of agents."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.act.results import ActionResult, Completed, Rejected, RetryLater
from bot.model_proxy.endpoints import ModelUnavailable
from bot.system.isolation import NotIsolated
from lifecycle.model.status import Reason
from runtimes.agents.base import AgentType
from runtimes.agents.shell import Shell
from runtimes.base import Launch, RuntimeFailure
from runtimes.isolation.bubblewrap import Bubblewrap
from tests.harness.site import Site


@pytest.fixture
def prepared(site: Site) -> Site:
    """A site whose project has both kinds of commands."""
    configure(site, setup=("make deps", "make db"), teardown=("make clean",))
    return site


def configure(site: Site, **changes: Any) -> None:
    projects: Any = site.locations.projects
    projects["widgets"] = replace(projects["widgets"], **changes)


def running(site: Site) -> set[str]:
    return set(site.runtime.look())


def deferred(result: ActionResult) -> str:
    """Return why an action was deferred to a known time, without an attempt being counted."""
    assert isinstance(result, RetryLater), result
    assert result.at is not None
    return result.why


def test_the_workspace_is_set_up_once_before_the_first_run(prepared: Site) -> None:
    for _ in range(2):
        assert deferred(prepared.tries_to_start()) == "the set-up of the workspace is running"
        assert running(prepared) == {"widgets-12_setup1"}
    prepared.runtime.exits("widgets-12_setup1")
    prepared.starts()
    prepared.starts(run=2)
    assert running(prepared) == {"widgets-12_r2"}


def test_a_workspace_that_is_made_again_is_set_up_again(prepared: Site) -> None:
    prepared.tries_to_start()
    prepared.runtime.exits("widgets-12_setup1")
    prepared.starts()
    prepared.workspace.remove()
    prepared.tries_to_start(run=2)
    assert running(prepared) == {"widgets-12_setup2"}


def test_a_failed_setup_starts_no_agent_and_is_repeated_by_the_next_start(prepared: Site) -> None:
    prepared.tries_to_start()
    prepared.runtime.exits("widgets-12_setup1", code=3)
    refusal = prepared.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.reason is Reason.SETUP_FAILED
    assert "the set-up of the workspace failed with exit code 3 after " in refusal.why
    assert running(prepared) == set()
    prepared.tries_to_start()
    assert running(prepared) == {"widgets-12_setup2"}


def test_a_setup_that_was_lost_counts_as_a_failed_attempt(prepared: Site) -> None:
    prepared.tries_to_start()
    prepared.runtime.exits("widgets-12_setup1", signal=9, code=None, lost="its terminal was closed")
    assert prepared.tries_to_start() == RetryLater(
        "the set-up of the workspace was interrupted after 0 s"
    )
    prepared.tries_to_start()
    assert running(prepared) == {"widgets-12_setup2"}


def test_a_setup_is_ended_at_its_time_limit(prepared: Site) -> None:
    configure(prepared, setup_seconds=60.0)
    prepared.tries_to_start()
    prepared.scenario.clock.now += timedelta(seconds=61)
    refusal = prepared.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.why == "the set-up of the workspace reached its time limit after 61 s"
    assert running(prepared) == set()


def test_a_stop_ends_the_setup(prepared: Site) -> None:
    prepared.tries_to_start()
    prepared.agents.stop(prepared.session, 1)
    assert running(prepared) == set()
    prepared.tries_to_start()
    assert running(prepared) == {"widgets-12_setup2"}


def test_a_stop_does_not_undo_the_setup(prepared: Site) -> None:
    prepared.tries_to_start()
    prepared.runtime.exits("widgets-12_setup1")
    prepared.starts()
    prepared.agents.stop(prepared.session, 1)
    prepared.starts(run=2)


def released(site: Site) -> None:
    """Start and stop a run, and begin to release its workspace."""
    site.tries_to_start()
    site.runtime.exits("widgets-12_setup1")
    site.starts()
    words = "the teardown of the workspace is running"
    assert deferred(site.agents.release(site.session, 1)) == words
    assert running(site) == {"widgets-12_teardown1"}
    assert site.workspace.made


def test_the_workspace_is_torn_down_before_it_is_removed(prepared: Site) -> None:
    released(prepared)
    prepared.runtime.exits("widgets-12_teardown1")
    assert isinstance(prepared.agents.release(prepared.session, 1), Completed)
    assert not prepared.workspace.exists


def test_a_failed_teardown_is_reported_and_the_workspace_is_removed(prepared: Site) -> None:
    released(prepared)
    prepared.runtime.exits("widgets-12_teardown1", code=2)
    result = prepared.agents.release(prepared.session, 1)
    assert isinstance(result, Completed)
    assert "the teardown of the workspace failed with exit code 2" in result.result
    assert not prepared.workspace.exists


def test_an_interrupted_teardown_is_repeated_three_times_at_most(prepared: Site) -> None:
    released(prepared)
    for attempt in (1, 2):
        prepared.runtime.exits(f"widgets-12_teardown{attempt}", code=None, lost="its terminal")
        deferred(prepared.agents.release(prepared.session, 1))
        deferred(prepared.agents.release(prepared.session, 1))
    prepared.runtime.exits("widgets-12_teardown3", code=None, lost="its terminal")
    prepared.agents.release(prepared.session, 1)
    assert not prepared.workspace.exists


def test_a_session_that_is_restored_during_the_teardown_is_set_up_again(prepared: Site) -> None:
    released(prepared)
    prepared.tries_to_start(run=2)
    assert running(prepared) == {"widgets-12_setup2"}
    prepared.runtime.exits("widgets-12_setup2")
    prepared.starts(run=2)
    prepared.agents.release(prepared.session, 2)
    assert running(prepared) == {"widgets-12_teardown2"}


def test_the_commands_have_the_agents_sandbox_but_no_model(
    prepared: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[Launch] = []

    def wrap(_: Bubblewrap, launch: Launch, sandbox: object) -> Launch:
        launched.append(launch)
        return launch

    settings: Any = prepared.agents.settings
    isolated = replace(settings, runtime=replace(settings.runtime, isolation="bubblewrap"))
    object.__setattr__(prepared.agents, "settings", isolated)
    monkeypatch.setattr(Bubblewrap, "wrap", wrap)
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "")
    prepared.tries_to_start()
    env = dict(launched[0].env)
    user, _, password = env["HTTPS_PROXY"].removeprefix("http://").partition("@")[0].partition(":")
    token = f"{user}.{password}"
    assert prepared.models.network_of(token).session == prepared.id
    with pytest.raises(ModelUnavailable, match="have no access to a model"):
        prepared.models.of_token(token)
    assert "MERGEWRIGHT_MODEL_KEY" not in env
    prepared.runtime.exits("widgets-12_setup1")
    prepared.starts()
    with pytest.raises(ModelUnavailable, match="invalid run token"):
        prepared.models.network_of(token)
    assert launched[0].argv == ("/bin/sh", "-ec", "exec </dev/null\nmake deps\nmake db", "setup")


def test_no_commands_run_where_nothing_isolates_them(
    prepared: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise NotIsolated("no user namespaces here")

    monkeypatch.setattr("bot.act.run_isolation.isolation_of", refuse)
    refusal = prepared.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.reason is Reason.SPAWN_FAILED
    assert running(prepared) == set()


def test_the_environment_of_the_commands_has_no_model_key(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SOME_API_KEY", "REGISTRY_TOKEN"):
        monkeypatch.setenv(name, "value")
    kind = AgentType(
        program="shell", pass_env=("SOME_API_KEY", "REGISTRY_TOKEN"), env={"OTHER_API_KEY": "x"}
    )
    env = Shell(kind).environment(site.files)
    assert env["REGISTRY_TOKEN"] == "value"
    assert not {"SOME_API_KEY", "OTHER_API_KEY"} & env.keys()


def test_runs_and_commands_of_a_session_get_its_ports_until_its_release(
    prepared: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: dict[str, Launch] = {}
    start = prepared.runtime.start

    def record(launch: Launch) -> None:
        launched[launch.name] = launch
        start(launch)

    monkeypatch.setattr(prepared.runtime, "start", record)
    configure(prepared, ports=2, port_range="28200-28299")
    released(prepared)
    prepared.runtime.exits("widgets-12_teardown1")
    allotted = [
        {name: value for name, value in launch.env.items() if "PORT" in name}
        for launch in launched.values()
    ]
    assert launched.keys() == {"widgets-12_setup1", "widgets-12_r1", "widgets-12_teardown1"}
    assert allotted[0].keys() == {"MERGEWRIGHT_PORT_1", "MERGEWRIGHT_PORT_2"}
    assert allotted[1:] == allotted[:1] * 2
    ports = prepared.locations.host.ports
    mine = sorted(map(int, allotted[0].values()))
    assert set(ports.allot("widgets-13", 5, 28_200, 28_299)).isdisjoint(mine)
    prepared.agents.release(prepared.session, 1)
    assert ports.allot("widgets-14", 2, 28_200, 28_299) == mine


def test_a_run_does_not_start_without_its_ports(site: Site) -> None:
    configure(site, ports=1, port_range="28200-28200")
    site.locations.host.ports.allot("widgets-13", 1, 28_200, 28_200)
    with pytest.raises(RuntimeFailure, match="fewer than 1 ports are free in 28200-28200"):
        site.tries_to_start()
    assert running(site) == set()
