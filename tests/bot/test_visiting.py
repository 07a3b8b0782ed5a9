"""A visit reads, judges and writes down, many sessions at a time; one harms no other."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bot.decide import reconciler as module
from bot.decide.reconciler import Reconciler
from bot.store import HistoryKind, Observation
from bot.system.crash_points import CrashPoint
from lifecycle.decide import Decision, decide
from lifecycle.judge.capacity import Caps
from lifecycle.model.facts import Agent, Command, Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity


class Visiting:
    """An engine over a real store, and what it told."""

    def __init__(self, room: Any) -> None:
        self.room = room
        self.told: list[tuple[CrashPoint, str]] = []
        self.wakes = 0
        self.engine = Reconciler(
            room.store,
            lambda _: Policy(),
            room.clock,
            self._crash_point,
            self._woken,
            {"eve", "ada"},
        )

    def sessions(self, *numbers: int) -> list[str]:
        """New ones, of such an age that people are told of them."""
        made = [self.room.session(number) for number in numbers]
        self.room.clock.passes(5)
        return made

    def decisions(self, sessions: Sequence[str]) -> list[int]:
        rows = [self.room.store.history.of(session) for session in sessions]
        return [sum(row.kind is HistoryKind.DECISION for row in history) for history in rows]

    def _crash_point(self, step: CrashPoint, about: str) -> None:
        self.told.append((step, about))

    def _woken(self) -> None:
        self.wakes += 1


@pytest.fixture
def visiting(room: Any) -> Visiting:
    return Visiting(room)


def statements(room: Any) -> list[str]:
    seen: list[str] = []
    room.store.db.write(lambda connection: connection.set_trace_callback(seen.append))
    seen.clear()
    return seen


def test_many_are_visited_with_one_commit(visiting: Visiting) -> None:
    ids = visiting.sessions(*range(1, 21))
    seen = statements(visiting.room)
    assert visiting.engine.reconcile_due() == 20
    assert seen.count("COMMIT") == 1
    assert visiting.decisions(ids) == [1] * 20


def test_who_may_be_asked_for_is_known_to_a_visit(visiting: Visiting) -> None:
    (name,) = visiting.sessions(1)
    now = visiting.room.clock()
    command = Command(key="comment:1", kind="agent", text="eva", actor="ada", at=now)
    assert visiting.room.store.commands.add_granted(name, command)
    visiting.engine.reconcile_due()
    (due,) = visiting.room.store.outbox.due(now)
    said = "There is no agent `eva` here; there are: ada, eve."
    assert due.action.values["text"] == said


def test_a_visit_with_nothing_new_writes_nothing(visiting: Visiting, tmp_path: Path) -> None:
    ids = visiting.sessions(1, 2, 3)
    visiting.engine.reconcile_due()
    wal = tmp_path / "mergewright.db-wal"
    size = wal.stat().st_size
    seen = statements(visiting.room)
    assert visiting.engine.reconcile(ids) == 3
    assert visiting.engine.reconcile_due() == 0
    assert seen == []
    assert wal.stat().st_size == size


def test_all_that_is_due_is_visited_the_longest_overdue_first(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, in groups."""
    monkeypatch.setattr(module, "_BATCH", 2)
    judged: list[str] = []

    def noted(facts: Facts, policy: Policy, now: datetime) -> Decision:
        judged.append(facts.session)
        return decide(facts, policy, now)

    monkeypatch.setattr(module, "decide", noted)
    for number in (5, 3, 1, 2, 4):
        visiting.sessions(number)
        visiting.room.clock.passes(1)
    assert visiting.engine.reconcile_due() == 5
    assert judged == [f"widgets-{number}" for number in (5, 3, 1, 2, 4)]


def test_sessions_that_cannot_be_judged_hold_up_nobody_and_are_tried_again(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    ids = visiting.sessions(1, 2, 3, 4, 5)
    visiting.room.store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET issue = '{' WHERE id = 'widgets-2'"
        )
    )

    def picky(facts: Facts, policy: Policy, now: datetime) -> Decision:
        if facts.session == "widgets-1":
            raise LookupError("as it happens")
        return decide(facts, policy, now)

    with monkeypatch.context() as patch:
        patch.setattr(module, "decide", picky)
        assert visiting.engine.reconcile_due() == 5
    assert visiting.decisions(ids) == [0, 0, 1, 1, 1]
    assert visiting.engine.reconcile_due() == 0
    visiting.room.clock.passes(30)
    assert visiting.engine.reconcile_due() == 2
    assert visiting.decisions(ids) == [1, 0, 1, 1, 1]


def test_what_cannot_be_written_down_holds_up_nobody(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = visiting.sessions(1, 2)
    session_decision = module.session_decision

    def odd(facts: Facts, policy: Policy, decision: Decision) -> Any:
        said = session_decision(facts, policy, decision)
        if facts.session == "widgets-1":
            return replace(said, because="half a character: \ud83d")
        return said

    with monkeypatch.context() as patch:
        patch.setattr(module, "session_decision", odd)
        visiting.engine.reconcile_due()
    assert visiting.decisions(ids) == [0, 1]
    visiting.room.clock.passes(30)
    visiting.engine.reconcile_due()
    assert visiting.decisions(ids) == [1, 1]


def test_one_that_changes_while_it_is_judged_is_judged_again(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = visiting.sessions(1, 2)
    seen: list[Activity] = []

    def interrupted(facts: Facts, policy: Policy, now: datetime) -> Decision:
        if facts.session == ids[0]:
            seen.append(facts.agent.activity)
            if len(seen) == 1:
                news = Observation(session=ids[0], agent=Agent(activity=Activity.READY))
                visiting.room.store.observations.record([news], now)
        return decide(facts, policy, now)

    monkeypatch.setattr(module, "decide", interrupted)
    assert visiting.engine.reconcile_due() == 2
    assert seen == [Activity.NONE, Activity.READY]
    assert visiting.decisions(ids) == [1, 1]


def test_actions_that_are_new_are_told(visiting: Visiting) -> None:
    visiting.sessions(1)
    visiting.engine.reconcile_due()
    taken = visiting.room.store.slots.assign(Caps(sessions=1))
    assert taken == ["widgets-1"]
    visiting.engine.reconcile_due()
    (waits, starts) = visiting.told
    assert {waits[0], starts[0]} == {CrashPoint.RECORDED}
    assert waits[1].startswith("widgets-1 report:1:0:")
    assert starts[1].startswith("widgets-1 start:first#1")
    assert visiting.wakes == 2


def test_after_a_restart_everything_that_is_not_over_is_visited(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration may be another one by now; where it says the same, nothing is written."""
    monkeypatch.setattr(module, "_BATCH", 2)
    ids = visiting.sessions(1, 2, 3, 4, 5)
    visiting.engine.reconcile_due()
    assert visiting.engine.reconcile_due() == 0
    seen = statements(visiting.room)
    assert visiting.engine.reconcile_live() == 5
    assert seen == []
    session_decision = module.session_decision

    def otherwise(facts: Facts, policy: Policy, decision: Decision) -> Any:
        return replace(session_decision(facts, policy, decision), because="it is judged otherwise")

    monkeypatch.setattr(module, "session_decision", otherwise)
    assert visiting.engine.reconcile_live() == 5
    assert visiting.decisions(ids) == [2] * 5
