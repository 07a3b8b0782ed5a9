"""Observations are written only if they change a fact of the current run."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bot.store import Observation, Store
from lifecycle.model.facts import Agent, Issue, Pull, Work
from lifecycle.model.status import Activity
from tests.store.conftest import Scenario


@pytest.fixture
def name(scenario: Scenario) -> str:
    """A session in its first run, with nothing due."""
    name = scenario.session(12)
    scenario.decides(name, run=1, recheck_at=None)
    return name


ACTIVE = Agent(run=1, activity=Activity.ACTIVE)


def test_a_new_fact_is_written_and_wakes_its_session(
    scenario: Scenario, store: Store, name: str
) -> None:
    seen = Observation(session=name, run=1, agent=ACTIVE, issue=Issue(number=12, title="Changed"))
    assert store.observations.record([seen], scenario.now) == [name]
    assert store.sessions.due(scenario.now) == [name]
    assert store.facts.get(name).agent == ACTIVE
    assert store.facts.get(name).issue.title == "Changed"


def test_all_observations_of_a_sweep_are_one_transaction(
    scenario: Scenario, store: Store, statements: list[str]
) -> None:
    ids = [scenario.session(number) for number in range(20, 30)]
    statements.clear()
    assert (
        store.observations.record(
            [Observation(session=name, agent=ACTIVE) for name in ids], scenario.now
        )
        == ids
    )
    assert statements.count("COMMIT") == 1


def test_a_sweep_without_changes_writes_nothing(
    scenario: Scenario, store: Store, name: str, path: Path, statements: list[str]
) -> None:
    seen = Observation(session=name, run=1, agent=ACTIVE, work=Work(head="cafe"))
    store.observations.record([seen], scenario.now)
    scenario.decides(name, recheck_at=None)
    statements.clear()
    size = (path.parent / "mergewright.db-wal").stat().st_size
    assert store.observations.record([seen], scenario.clock.passes(60)) == []
    assert statements == []
    assert (path.parent / "mergewright.db-wal").stat().st_size == size
    assert store.sessions.due(scenario.now) == []


def test_observations_of_an_earlier_run_are_dropped(
    scenario: Scenario, store: Store, name: str
) -> None:
    pulls = (Pull(number=34, head="feed"),)
    late = Observation(
        session=name,
        run=0,
        agent=Agent(activity=Activity.EXITED),
        work=Work(head="old"),
        pulls=pulls,
    )
    store.observations.record([late], scenario.now)
    facts = store.facts.get(name)
    assert (facts.agent, facts.work) == (Agent(), Work())
    assert facts.pulls == pulls, "a pull request is of the session, not of a run"


def test_observations_from_before_a_stop_are_dropped(
    scenario: Scenario, store: Store, name: str
) -> None:
    stopped = Agent(run=1, activity=Activity.EXITED, stopped=True)
    store.observations.record([Observation(session=name, run=1, agent=stopped)], scenario.now)
    overtaken = Observation(session=name, run=1, agent=ACTIVE, work=Work(head="cafe"))
    assert store.observations.record([overtaken], scenario.now) == [name]
    assert (store.facts.get(name).agent, store.facts.get(name).work.head) == (stopped, "cafe")
    scenario.decides(name, run=2)
    again = Agent(run=2, activity=Activity.NONE)
    store.observations.record([Observation(session=name, run=2, agent=again)], scenario.now)
    assert store.facts.get(name).agent == again


def test_a_run_that_changes_between_the_observation_and_the_write_is_noticed(
    scenario: Scenario, store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = store.db.write

    def write_late(work: Callable[..., object]) -> object:
        monkeypatch.setattr(store.db, "write", write)
        scenario.decides(name, run=2, recheck_at=None)
        return write(work)

    monkeypatch.setattr(store.db, "write", write_late)
    assert (
        store.observations.record([Observation(session=name, run=1, agent=ACTIVE)], scenario.now)
        == []
    )
    assert store.facts.get(name).agent == Agent()


def test_a_new_read_time_alone_is_stored_but_is_no_change(
    scenario: Scenario, store: Store, name: str
) -> None:
    pull = Pull(number=34, head="feed", read_at=scenario.now)
    store.observations.record([Observation(session=name, pulls=(pull,))], scenario.now)
    scenario.decides(name, recheck_at=None)
    later = scenario.clock.passes(60)
    again = msgspec.structs.replace(pull, read_at=later)
    assert store.observations.record([Observation(session=name, pulls=(again,))], later) == []
    assert store.sessions.due(later) == []
    session = store.sessions.get(name)
    assert session is not None
    assert session.pulls == (again,)


def test_the_last_of_two_observations_in_a_sweep_counts(
    scenario: Scenario, store: Store, name: str
) -> None:
    back = [Observation(session=name, agent=ACTIVE), Observation(session=name, agent=Agent())]
    assert store.observations.record(back, scenario.now) == [name]
    assert store.facts.get(name).agent == Agent()


def test_observations_of_an_unknown_session_are_dropped(scenario: Scenario, store: Store) -> None:
    assert (
        store.observations.record([Observation(session="nobody-1", agent=ACTIVE)], scenario.now)
        == []
    )


def test_an_overdue_session_keeps_its_due_time(scenario: Scenario, store: Store, name: str) -> None:
    scenario.decides(name, recheck_at=scenario.now)
    later = scenario.clock.passes(60)
    store.observations.record([Observation(session=name, agent=ACTIVE)], later)
    session = store.sessions.get(name)
    assert session is not None
    assert session.due == later - timedelta(seconds=60)


def test_listeners_are_called_after_the_change_is_committed(
    scenario: Scenario, store: Store, name: str
) -> None:
    announced: list[tuple[str, Activity]] = []
    store.on_change.append(lambda session: 1 / 0)  # type: ignore[arg-type]
    store.on_change.append(
        lambda session: announced.append((session, store.facts.get(name).agent.activity))
    )
    store.observations.record([Observation(session=name, agent=ACTIVE)], scenario.now)
    store.observations.record([Observation(session=name, agent=ACTIVE)], scenario.now)
    assert announced == [(name, Activity.ACTIVE)]
