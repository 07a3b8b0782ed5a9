"""Sessions whose files on disk exceed a limit, as facts of the sessions."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bot.observe.disk import DiskObserver
from bot.store import Observation
from lifecycle.model.facts import DiskExcess
from lifecycle.model.status import DiskLimit, Probe
from tests.harness.edges import Edge, running


class Host:
    """A host on which sessions have as many MB as a test sets."""

    def __init__(self) -> None:
        self.disk = self
        self.mb: dict[str, int] = {}
        self.measured: list[str] = []
        self.fails: set[str] = set()

    @property
    def host(self) -> "Host":
        return self

    def folders(self) -> dict[str, list[Path]]:
        return {session: [Path(session)] for session in self.mb}

    def excess(self, folders: list[Path], most_mb: int, wait: Any) -> DiskExcess | None:
        (folder,) = folders
        self.measured.append(folder.name)
        if folder.name in self.fails:
            raise OSError(5, "Input/output error")
        if self.mb[folder.name] <= most_mb:
            return None
        return DiskExcess(limit=DiskLimit.MEGABYTES, most=most_mb)


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def observer(scenario: Any, host: Host) -> DiskObserver:
    locations: Any = host
    return DiskObserver(scenario.store, locations, 100, scenario.clock, lambda _: False)


def disk(scenario: Any, number: int = 1) -> DiskExcess | None:
    found: DiskExcess | None = scenario.store.sessions.get(f"widgets-{number}").work.disk
    return found


def test_a_session_exceeds_its_limit_until_it_is_clearly_below(
    scenario: Any, edge: Edge, host: Host, observer: DiskObserver
) -> None:
    running(scenario, edge, 1)
    host.mb["widgets-1"] = 100
    assert (observer.measure(), disk(scenario)) == (0, None)
    host.mb["widgets-1"], since = 101, scenario.clock()
    over = DiskExcess(limit=DiskLimit.MEGABYTES, most=100, since=since)
    assert (observer.measure(), disk(scenario)) == (1, over)
    scenario.clock.passes(60)
    host.mb["widgets-1"] = 95  # It would stop and go.
    assert (observer.measure(), disk(scenario)) == (0, over)
    host.mb["widgets-1"] = 90
    assert (observer.measure(), disk(scenario)) == (1, None)


def test_a_raised_or_removed_limit_ends_the_excess(
    scenario: Any, edge: Edge, host: Host, observer: DiskObserver
) -> None:
    running(scenario, edge, 1)
    for most in (200, 0):
        host.mb["widgets-1"] = 150
        observer.measure()
        assert disk(scenario)
        other: Any = host
        raised = DiskObserver(scenario.store, other, most, scenario.clock, lambda _: False)
        assert (raised.measure(), disk(scenario)) == (1, None)


def test_other_observations_keep_the_excess(
    scenario: Any, edge: Edge, host: Host, observer: DiskObserver
) -> None:
    running(scenario, edge, 1)
    host.mb["widgets-1"] = 101
    work = scenario.store.sessions.get("widgets-1").work  # Read before the measurement.
    observer.measure()
    seen = Observation(session="widgets-1", run=1, work=replace(work, head="f" * 40))
    scenario.store.observations.record([seen], scenario.clock())
    found = scenario.store.sessions.get("widgets-1").work
    assert (found.head, bool(found.disk)) == ("f" * 40, True)


def test_one_that_cannot_be_measured_changes_nothing_and_delays_nobody(
    scenario: Any, edge: Edge, host: Host, observer: DiskObserver
) -> None:
    running(scenario, edge, 1, 2)
    host.mb |= {"widgets-1": 101, "widgets-2": 101}
    host.fails.add("widgets-1")
    assert observer.measure() == 1
    assert (disk(scenario, 1), bool(disk(scenario, 2))) == (None, True)


def test_a_session_without_a_program_is_measured_once(
    scenario: Any, edge: Edge, host: Host, observer: DiskObserver
) -> None:
    running(scenario, edge, 1)
    host.mb["widgets-1"] = 50
    (live,) = scenario.store.sessions.live()
    dead = replace(live.agent, program=Probe.DEAD, runtime=Probe.DEAD, stopped=True)
    scenario.store.observations.record(
        [Observation(session="widgets-1", run=1, agent=dead)], scenario.clock()
    )
    for _ in range(3):
        observer.measure()
    assert host.measured == ["widgets-1"]


def test_a_measurement_that_was_ended_early_says_nothing(
    scenario: Any, edge: Edge, host: Host
) -> None:
    running(scenario, edge, 1)
    host.mb["widgets-1"] = 101
    locations: Any = host
    stopping = DiskObserver(scenario.store, locations, 100, scenario.clock, lambda _: True)
    assert (stopping.measure(), disk(scenario)) == (0, None)
