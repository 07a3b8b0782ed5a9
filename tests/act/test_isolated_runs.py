"""Starts of isolated runs, and refused ones."""

from pathlib import Path

import msgspec
import pytest

from bot.act.outages import RESOURCES
from bot.act.results import Rejected, RetryLater
from config.settings import Settings
from lifecycle.model.status import Reason
from runtimes.base import Launch
from runtimes.isolation.base import PROXY_PORT, Sandbox
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.containers import Containers
from tests.harness.site import Site


@pytest.fixture
def undecided(site: Site) -> Site:
    """A site whose configuration names no isolation."""
    settings: Settings = site.agents.settings
    runtime = msgspec.structs.replace(settings.runtime, isolation="")
    object.__setattr__(site.agents, "settings", msgspec.structs.replace(settings, runtime=runtime))
    return site


def test_no_run_is_started_where_nothing_isolates_it(
    undecided: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "no user namespaces here")
    monkeypatch.setattr(Containers, "unavailable", lambda *_: "no engine here")
    refusal = undecided.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.reason is Reason.SPAWN_FAILED
    assert "agents cannot be isolated here: no user namespaces here" in refusal.why
    assert undecided.runtime.look() == {}


def test_a_start_waits_for_an_engine_that_does_not_answer(
    undecided: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    settings = undecided.agents.settings
    runtime = msgspec.structs.replace(settings.runtime, isolation="docker")
    named = msgspec.structs.replace(settings, runtime=runtime)
    object.__setattr__(undecided.agents, "settings", named)
    later = undecided.tries_to_start()
    assert isinstance(later, RetryLater)
    assert [one.key for one in RESOURCES if one.words.search(later.why)] == ["docker"]
    assert undecided.runtime.look() == {}


def test_an_isolated_run_gets_its_own_folders_and_the_proxy_alone(
    undecided: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped: list[tuple[Launch, Sandbox]] = []

    def wrap(_: Bubblewrap, launch: Launch, sandbox: Sandbox) -> Launch:
        wrapped.append((launch, sandbox))
        return launch

    monkeypatch.setattr(Bubblewrap, "wrap", wrap)
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "")
    undecided.starts()
    ((launch, sandbox),) = wrapped
    files, paths = undecided.files, undecided.paths
    own = (files.workspace, files.repository, files.home, files.outputs)
    assert sandbox.writable == own
    assert sandbox.readable == (files.inputs, paths.mirror("widgets"))
    assert sandbox.proxy == paths.data / "proxy"
    assert sandbox.limits.memory_mb == 8192
    assert launch.env["HTTPS_PROXY"].endswith(f"@127.0.0.1:{PROXY_PORT}")
    assert launch.env["MERGEWRIGHT_MODEL_URL"] == f"http://127.0.0.1:{PROXY_PORT}"
