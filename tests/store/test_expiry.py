"""What is deleted with a session, and what is kept of it."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bot.store import (
    USAGE_GROUPS,
    Destination,
    NewNotification,
    NotificationEvent,
    Observation,
    SessionDecision,
    Store,
)
from lifecycle.judge.capacity import Caps
from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Command, Ended, Pull, Usage
from lifecycle.model.status import PullState, Reason, Status
from tests.store.conftest import Scenario

HELLO = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello")


@pytest.fixture
def ended(scenario: Scenario, store: Store) -> str:
    """A session with something in every table that belongs to sessions, which has ended."""
    name = scenario.session(12)
    store.slots.assign(Caps(sessions=1))
    scenario.decides(name, HELLO, recheck_at=None)
    (due,) = store.outbox.due(scenario.now)
    for leader in ("former", "second"):
        store.lease.acquire(leader, scenario.now, 0)
    store.outbox.mark_done(due.seq, "comment 5", scenario.now)
    store.commands.add_granted(
        name, Command(key="cli:1", kind="tell", actor="cli:ada", at=scenario.now)
    )
    store.agents.assign(name, "bob", "claude", 2)
    store.agents.add_paths(name, ["README.md"])
    store.metadata.set(name, {"team": "core"}, "ada")
    store.freezes.add(f"session:{name}", "ada")
    pull = Pull(number=34, state=PullState.CLOSED, head="d" * 40)
    store.observations.record([Observation(session=name, pulls=(pull,))], scenario.now)
    store.refused.record({Destination(session=name, host="example.com", port=443): 1})
    store.usage.record_response(name, 1, "a-model", Usage(input=7), priced)
    asked = NewNotification(
        notifier="team",
        session=name,
        cause="question:1#1",
        event=NotificationEvent.RAISED,
        priority="action",
        message="{}",
    )
    store.notifications.record(scenario.now, new=[asked])
    ends(scenario, name)
    return name


def priced(used: Usage) -> Usage:
    return replace(used, cost_usd=1.25)


def ends(scenario: Scenario, name: str) -> None:
    """End a session, and have it reconciled for the last time."""
    status, reason = Status.KILLED, Reason.MANUALLY_KILLED
    end = Ended(status=status, reason=reason, because="stopped by @ada", at=scenario.now)
    over = SessionDecision(
        status=status, reason=reason, because=end.because, run=1, ended=end, frees_slot=True
    )
    for _ in range(2):
        (loaded,) = scenario.store.facts.load([name])
        scenario.store.decisions.record([(loaded, over)], scenario.now)[0].result()


def rows(store: Store) -> dict[str, int]:
    """Return the number of rows of `sessions` and of each table with a column `session`."""
    with store.db.read() as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            if name == "sessions"
            or "session"
            in {row["name"] for row in connection.execute(f"PRAGMA table_info({name})")}
        ]
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in tables
        }


def test_nothing_of_a_deleted_session_remains_but_its_cost(store: Store, ended: str) -> None:
    before = rows(store)
    assert {name for name, count in before.items() if not count} == {"ledger"}
    totals = {by: store.usage.totals(by) for by in USAGE_GROUPS if by != "run"}
    cost = sum(record.cost_usd for record in store.agents.records())
    assert store.expiry.delete_session(ended, store.clock())
    assert rows(store) == {**dict.fromkeys(before, 0), "ledger": 1}
    assert {by: store.usage.totals(by) for by in totals} == totals
    assert [total.name for total in store.usage.totals("run")] == [ended]
    assert sum(record.cost_usd for record in store.agents.records()) == cost
    assert store.freezes.all() == []


def test_a_later_session_of_the_same_issue_begins_without_cost(
    scenario: Scenario, store: Store, ended: str
) -> None:
    store.expiry.delete_session(ended, scenario.now)
    assert scenario.session(12) == ended
    assert store.facts.get(ended).spent_ever.cost_usd == 0
    store.usage.record_response(ended, 1, "a-model", Usage(input=3), priced)
    assert [total.cost_usd for total in store.usage.totals("issue")] == [2.5]
    ends(scenario, ended)
    assert store.expiry.delete_session(ended, scenario.now)
    assert [total.cost_usd for total in store.usage.totals("issue")] == [2.5]


def test_a_session_that_is_asked_for_again_is_not_deleted(
    scenario: Scenario, store: Store, ended: str
) -> None:
    store.sessions.wake(ended)
    assert not store.expiry.delete_session(ended, scenario.now)
    assert store.sessions.get(ended) is not None


def test_a_session_that_waits_to_release_its_workspace_can_be_deleted(
    scenario: Scenario, store: Store, ended: str
) -> None:
    store.sessions.postpone([ended], scenario.now + timedelta(days=1))
    assert store.expiry.delete_session(ended, scenario.now)


def test_a_session_that_is_not_over_is_not_deleted(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    scenario.decides(name, recheck_at=None)
    assert not store.expiry.delete_session(name, scenario.now)
    assert not store.expiry.delete_session("nobody-1", scenario.now)


def test_a_long_history_is_deleted_in_small_transactions(
    scenario: Scenario, store: Store, ended: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.expiry.STEP", 2)
    assert store.expiry.history(ended).rows > 4
    store.expiry.delete_history(ended)
    assert store.expiry.history(ended).rows == 0
