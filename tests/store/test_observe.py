"""What was seen is written only where it is news, and only of the run it speaks of."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from bot.store import Observation, Store
from lifecycle.model.facts import Agent, Issue, Pull, Work
from lifecycle.model.status import Activity
from tests.store.conftest import Room


@pytest.fixture
def name(room: Room) -> str:
    """A session in its first run, with nothing due."""
    name = room.session(12)
    room.decides(name, run=1, recheck_at=None)
    return name


ACTIVE = Agent(run=1, activity=Activity.ACTIVE)


def test_news_is_written_and_a_reason_for_a_visit(room: Room, store: Store, name: str) -> None:
    seen = Observation(session=name, run=1, agent=ACTIVE, issue=Issue(number=12, title="Changed"))
    assert store.observations.record([seen], room.now) == [name]
    assert store.sessions.due(room.now) == [name]
    assert store.facts.get(name).agent == ACTIVE
    assert store.facts.get(name).issue.title == "Changed"


def test_a_whole_sweep_is_one_transaction(room: Room, store: Store, statements: list[str]) -> None:
    ids = [room.session(number) for number in range(20, 30)]
    statements.clear()
    assert (
        store.observations.record(
            [Observation(session=name, agent=ACTIVE) for name in ids], room.now
        )
        == ids
    )
    assert statements.count("COMMIT") == 1


def test_a_sweep_without_news_writes_nothing(
    room: Room, store: Store, name: str, path: Path, statements: list[str]
) -> None:
    seen = Observation(session=name, run=1, agent=ACTIVE, work=Work(head="cafe"))
    store.observations.record([seen], room.now)
    room.decides(name, recheck_at=None)
    statements.clear()
    size = (path.parent / "mergewright.db-wal").stat().st_size
    assert store.observations.record([seen], room.clock.passes(60)) == []
    assert statements == []
    assert (path.parent / "mergewright.db-wal").stat().st_size == size
    assert store.sessions.due(room.now) == []


def test_what_was_seen_of_an_earlier_run_is_dropped(room: Room, store: Store, name: str) -> None:
    pulls = (Pull(number=34, head="feed"),)
    late = Observation(
        session=name,
        run=0,
        agent=Agent(activity=Activity.EXITED),
        work=Work(head="old"),
        pulls=pulls,
    )
    store.observations.record([late], room.now)
    facts = store.facts.get(name)
    assert (facts.agent, facts.work) == (Agent(), Work())
    assert facts.pulls == pulls, "a pull request is of the session, not of a run"


def test_what_was_seen_before_a_run_was_stopped_is_dropped(
    room: Room, store: Store, name: str
) -> None:
    stopped = Agent(run=1, activity=Activity.EXITED, stopped=True)
    store.observations.record([Observation(session=name, run=1, agent=stopped)], room.now)
    overtaken = Observation(session=name, run=1, agent=ACTIVE, work=Work(head="cafe"))
    assert store.observations.record([overtaken], room.now) == [name]
    assert (store.facts.get(name).agent, store.facts.get(name).work.head) == (stopped, "cafe")
    room.decides(name, run=2)
    again = Agent(run=2, activity=Activity.NONE)
    store.observations.record([Observation(session=name, run=2, agent=again)], room.now)
    assert store.facts.get(name).agent == again


def test_a_change_of_run_between_looking_and_writing_is_seen(
    room: Room, store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = store.db.write

    def write_late(work: Callable[..., object]) -> object:
        monkeypatch.setattr(store.db, "write", write)
        room.decides(name, run=2, recheck_at=None)
        return write(work)

    monkeypatch.setattr(store.db, "write", write_late)
    assert (
        store.observations.record([Observation(session=name, run=1, agent=ACTIVE)], room.now) == []
    )
    assert store.facts.get(name).agent == Agent()


def test_the_time_of_reading_alone_is_kept_but_changes_nothing(
    room: Room, store: Store, name: str
) -> None:
    pull = Pull(number=34, head="feed", read_at=room.now)
    store.observations.record([Observation(session=name, pulls=(pull,))], room.now)
    room.decides(name, recheck_at=None)
    later = room.clock.passes(60)
    again = msgspec.structs.replace(pull, read_at=later)
    assert store.observations.record([Observation(session=name, pulls=(again,))], later) == []
    assert store.sessions.due(later) == []
    session = store.sessions.get(name)
    assert session is not None
    assert session.pulls == (again,)


def test_a_session_seen_twice_in_one_sweep_ends_as_seen_last(
    room: Room, store: Store, name: str
) -> None:
    back = [Observation(session=name, agent=ACTIVE), Observation(session=name, agent=Agent())]
    assert store.observations.record(back, room.now) == [name]
    assert store.facts.get(name).agent == Agent()


def test_what_is_seen_of_an_unknown_session_is_dropped(room: Room, store: Store) -> None:
    assert (
        store.observations.record([Observation(session="nobody-1", agent=ACTIVE)], room.now) == []
    )


def test_a_visit_that_is_overdue_keeps_its_place(room: Room, store: Store, name: str) -> None:
    room.decides(name, recheck_at=room.now)
    later = room.clock.passes(60)
    store.observations.record([Observation(session=name, agent=ACTIVE)], later)
    session = store.sessions.get(name)
    assert session is not None
    assert session.due == later - timedelta(seconds=60)


def test_listeners_hear_of_what_changed_after_it_is_written(
    room: Room, store: Store, name: str
) -> None:
    heard: list[tuple[str, Activity]] = []
    store.on_change.append(lambda session: 1 / 0)  # type: ignore[arg-type]
    store.on_change.append(
        lambda session: heard.append((session, store.facts.get(name).agent.activity))
    )
    store.observations.record([Observation(session=name, agent=ACTIVE)], room.now)
    store.observations.record([Observation(session=name, agent=ACTIVE)], room.now)
    assert heard == [(name, Activity.ACTIVE)]
