"""Runs in containers whose engine is killed, started again, or gone for good.

Each test starts its own Docker engine. Without root, or if the machine's Docker does not answer,
the test is skipped.
"""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lifecycle.model.status import Probe
from runtimes.containers.engine import Engine
from runtimes.isolation import ISOLATIONS
from tests.runtimes import engines
from tests.runtimes.stages import IsolatedStage, needs
from tests.world.waiting import eventually

NAME = "app-1_r1"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[engines.Daemon]:
    needs("docker")
    if why := engines.missing("docker"):
        pytest.skip(why)
    with (
        tempfile.TemporaryDirectory(prefix="mw-") as folder,
        engines.docker(Path(folder) / "d") as daemon,
    ):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{daemon.socket}")
        yield daemon


@pytest.fixture
def stage(engine: engines.Daemon) -> Iterator[IsolatedStage]:
    """A container of that engine, whose program has received one message."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        made = IsolatedStage(Path(folder), "docker")
        assert made.unavailable() == ""
        made.start(NAME)
        made.runtime.send(NAME, "before", key="a")
        eventually(lambda: "before" in made.received(NAME), "the first message")
        yield made
        made.close()


def containers(engine: engines.Daemon) -> Any:
    return Engine(str(engine.socket)).call("GET", "/containers/json", all="1")


def is_removed(stage: IsolatedStage, engine: engines.Daemon) -> bool:
    """Remove containers of ended runs, as `LocalRuns.look` does; return whether none is left."""
    ISOLATIONS[stage.isolation].remove_orphans(stage.dir(NAME).parent)
    return bool(containers(engine) == [])


def test_a_run_goes_on_while_its_engine_is_killed_and_started_again(
    stage: IsolatedStage, engine: engines.Daemon
) -> None:
    engine.end(signal.SIGKILL)
    stage.runtime.send(NAME, "without", key="b")
    eventually(lambda: "without" in stage.received(NAME), "a message without an engine")
    engine.start()
    assert len(containers(engine)) == 1  # It answers once it has found the containers again.
    stage.prints(NAME, "still here")
    eventually(lambda: "still here" in stage.runtime.screens([NAME])[NAME], "its terminal")
    stage.exits(NAME, 4)
    end = eventually(lambda: stage.seen(NAME).exit, "its end")
    assert (end.code, end.signal) == (4, None)
    eventually(lambda: is_removed(stage, engine), "the removal of its container")


@pytest.mark.parametrize("part", ["dockerd", "containerd"])
def test_a_run_that_starts_without_its_engine_waits_for_it(
    stage: IsolatedStage, engine: engines.Daemon, part: str
) -> None:
    launch = stage.launch("app-2_r1", "true")
    killed = engine if part == "dockerd" else engine.below
    assert killed
    killed.end(signal.SIGKILL)
    stage.runtime.start(launch)
    assert stage.seen("app-2_r1").program is Probe.ALIVE
    killed.start()
    end = eventually(lambda: stage.seen("app-2_r1").exit, "its end")
    assert (end.code, end.signal) == (0, None), end.tail


def test_the_end_of_a_run_without_its_engine_is_recorded_as_it_was(
    stage: IsolatedStage, engine: engines.Daemon
) -> None:
    engine.end(signal.SIGKILL)
    stage.exits(NAME, 5)
    end = eventually(lambda: stage.seen(NAME).exit, "its end")
    assert (end.code, end.signal) == (5, None)
    assert stage.processes(NAME) == []
    assert "docker does not work here: no answer at" in stage.unavailable()
    assert not ISOLATIONS["docker"].answers()
    engine.start()
    assert ISOLATIONS["docker"].answers()
    eventually(lambda: is_removed(stage, engine), "the removal of its container")


def test_a_run_is_stopped_without_its_engine(stage: IsolatedStage, engine: engines.Daemon) -> None:
    engine.end(signal.SIGKILL)
    stage.runtime.stop(NAME, grace_seconds=0.5)
    eventually(lambda: not stage.processes(NAME), "the end of everything")


def test_a_container_that_is_killed_is_a_program_that_was_killed(
    stage: IsolatedStage, engine: engines.Daemon
) -> None:
    (one,) = containers(engine)
    Engine(str(engine.socket)).call("POST", f"/containers/{one['Id']}/kill")
    end = eventually(lambda: stage.seen(NAME).exit, "its end")
    assert (end.code, end.signal) == (None, signal.SIGKILL)
    assert "the container was killed" in end.tail
    assert stage.seen(NAME).program is Probe.DEAD
