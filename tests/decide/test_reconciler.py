"""The reconciler: decides many sessions at a time and records what changed."""

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


class Reconciling:
    """A reconciler over a real store, and the crash points it passed."""

    def __init__(self, scenario: Any) -> None:
        self.scenario = scenario
        self.announced: list[tuple[CrashPoint, str]] = []
        self.wakes = 0
        self.reconciler = Reconciler(
            scenario.store,
            lambda _: Policy(),
            scenario.clock,
            self._crash_point,
            self._woken,
            ("ada", "eve"),
        )

    def sessions(self, *numbers: int) -> list[str]:
        """Create sessions, and let 5 seconds pass, so that decisions about them are announced."""
        made = [self.scenario.session(number) for number in numbers]
        self.scenario.clock.passes(5)
        return made

    def decisions(self, sessions: Sequence[str]) -> list[int]:
        rows = [self.scenario.store.history.of(session) for session in sessions]
        return [sum(row.kind is HistoryKind.DECISION for row in history) for history in rows]

    def _crash_point(self, step: CrashPoint, about: str) -> None:
        self.announced.append((step, about))

    def _woken(self) -> None:
        self.wakes += 1


@pytest.fixture
def reconciling(scenario: Any) -> Reconciling:
    return Reconciling(scenario)


def statements(scenario: Any) -> list[str]:
    seen: list[str] = []
    scenario.store.db.write(lambda connection: connection.set_trace_callback(seen.append))
    seen.clear()
    return seen


def test_many_sessions_are_recorded_in_one_commit(reconciling: Reconciling) -> None:
    ids = reconciling.sessions(*range(1, 21))
    seen = statements(reconciling.scenario)
    assert reconciling.reconciler.reconcile_due() == 20
    assert seen.count("COMMIT") == 1
    assert reconciling.decisions(ids) == [1] * 20


def test_a_decision_knows_the_configured_agents(reconciling: Reconciling) -> None:
    (name,) = reconciling.sessions(1)
    now = reconciling.scenario.clock()
    command = Command(key="comment:1", kind="agent", text="eva", actor="ada", at=now)
    assert reconciling.scenario.store.commands.add_granted(name, command)
    reconciling.reconciler.reconcile_due()
    (due,) = reconciling.scenario.store.outbox.due(now)
    points = "There is no agent `eva`; known agents: ada, eve."
    assert due.action.values["text"] == points


def test_an_unchanged_decision_writes_nothing(reconciling: Reconciling, tmp_path: Path) -> None:
    ids = reconciling.sessions(1, 2, 3)
    reconciling.reconciler.reconcile_due()
    wal = tmp_path / "mergewright.db-wal"
    size = wal.stat().st_size
    seen = statements(reconciling.scenario)
    assert reconciling.reconciler.reconcile(ids) == 3
    assert reconciling.reconciler.reconcile_due() == 0
    assert seen == []
    assert wal.stat().st_size == size


def test_due_sessions_are_reconciled_longest_overdue_first(
    reconciling: Reconciling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions are decided in batches."""
    monkeypatch.setattr(module, "_BATCH", 2)
    judged: list[str] = []

    def noted(facts: Facts, policy: Policy, now: datetime) -> Decision:
        judged.append(facts.session)
        return decide(facts, policy, now)

    monkeypatch.setattr(module, "decide", noted)
    for number in (5, 3, 1, 2, 4):
        reconciling.sessions(number)
        reconciling.scenario.clock.passes(1)
    assert reconciling.reconciler.reconcile_due() == 5
    assert judged == [f"widgets-{number}" for number in (5, 3, 1, 2, 4)]


def test_a_session_that_cannot_be_decided_delays_no_other_and_is_retried(
    reconciling: Reconciling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH", 2)
    ids = reconciling.sessions(1, 2, 3, 4, 5)
    reconciling.scenario.store.db.write(
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
        assert reconciling.reconciler.reconcile_due() == 5
    assert reconciling.decisions(ids) == [0, 0, 1, 1, 1]
    store = reconciling.scenario.store
    incidents = {one.key: one.text for one in store.incidents.current()}
    assert incidents.keys() == {"session widgets-1", "session widgets-2"}
    assert "decision about it failed (LookupError: as it happens)" in incidents["session widgets-1"]
    due = store.outbox.due(reconciling.scenario.clock())
    notices = [one.action for one in due if not one.session]
    assert [(one.number, one.topic) for one in notices] == [(1, "attention")]
    assert reconciling.reconciler.reconcile_due() == 0
    reconciling.scenario.clock.passes(30)
    assert reconciling.reconciler.reconcile_due() == 2
    assert reconciling.decisions(ids) == [1, 0, 1, 1, 1]
    assert [one.key for one in store.incidents.current()] == ["session widgets-2"]


def test_a_decision_that_cannot_be_recorded_delays_no_other(
    reconciling: Reconciling, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = reconciling.sessions(1, 2)
    session_decision = module.session_decision

    def odd(facts: Facts, policy: Policy, decision: Decision) -> Any:
        points = session_decision(facts, policy, decision)
        if facts.session == "widgets-1":
            return replace(points, because="half a character: \ud83d")
        return points

    with monkeypatch.context() as patch:
        patch.setattr(module, "session_decision", odd)
        reconciling.reconciler.reconcile_due()
    assert reconciling.decisions(ids) == [0, 1]
    reconciling.scenario.clock.passes(30)
    reconciling.reconciler.reconcile_due()
    assert reconciling.decisions(ids) == [1, 1]


def test_a_session_that_changes_meanwhile_is_decided_again(
    reconciling: Reconciling, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = reconciling.sessions(1, 2)
    seen: list[Activity] = []

    def interrupted(facts: Facts, policy: Policy, now: datetime) -> Decision:
        if facts.session == ids[0]:
            seen.append(facts.agent.activity)
            if len(seen) == 1:
                news = Observation(session=ids[0], agent=Agent(activity=Activity.READY))
                reconciling.scenario.store.observations.record([news], now)
        return decide(facts, policy, now)

    monkeypatch.setattr(module, "decide", interrupted)
    assert reconciling.reconciler.reconcile_due() == 2
    assert seen == [Activity.NONE, Activity.READY]
    assert reconciling.decisions(ids) == [1, 1]


def test_new_actions_are_announced(reconciling: Reconciling) -> None:
    reconciling.sessions(1)
    reconciling.reconciler.reconcile_due()
    taken = reconciling.scenario.store.slots.assign(Caps(sessions=1))
    assert taken == ["widgets-1"]
    reconciling.reconciler.reconcile_due()
    (waits, starts) = reconciling.announced
    assert {waits[0], starts[0]} == {CrashPoint.RECORDED}
    assert waits[1].startswith("widgets-1 report:1:0:")
    assert starts[1].startswith("widgets-1 start:first#1")
    assert reconciling.wakes == 2


def test_every_live_session_is_reconciled_after_a_restart(
    reconciling: Reconciling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration may have changed; an unchanged decision writes nothing."""
    monkeypatch.setattr(module, "_BATCH", 2)
    ids = reconciling.sessions(1, 2, 3, 4, 5)
    reconciling.reconciler.reconcile_due()
    assert reconciling.reconciler.reconcile_due() == 0
    seen = statements(reconciling.scenario)
    assert reconciling.reconciler.reconcile_live() == 5
    assert seen == []
    session_decision = module.session_decision

    def otherwise(facts: Facts, policy: Policy, decision: Decision) -> Any:
        return replace(session_decision(facts, policy, decision), because="it is judged otherwise")

    monkeypatch.setattr(module, "session_decision", otherwise)
    assert reconciling.reconciler.reconcile_live() == 5
    assert reconciling.decisions(ids) == [2] * 5
