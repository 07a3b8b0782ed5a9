"""The outbox: each key once, one action of a session at a time."""

import sqlite3
from datetime import timedelta

import pytest

from bot.store import CorruptRow, Observation, RefreshRequest, Store
from lifecycle.model import keys
from lifecycle.model.actions import CloseIssue, Comment, Prompt, Start, Stop
from lifecycle.model.facts import Agent
from lifecycle.model.key import parse
from lifecycle.model.status import Activity, Reason
from tests.store.conftest import Scenario

FIRST = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello", values={"who": "ada"})
SECOND = CloseIssue(key=keys.close_issue(), number=12)


@pytest.fixture
def name(scenario: Scenario) -> str:
    """A session with two due actions that is not due itself."""
    name = scenario.session(12)
    scenario.decides(name, FIRST, SECOND, recheck_at=None)
    return name


def test_an_action_key_is_stored_once_for_a_session(
    scenario: Scenario, store: Store, name: str
) -> None:
    other = scenario.session(13)
    assert scenario.decides(name, FIRST) == []
    assert scenario.decides(other, FIRST) == [str(FIRST.key)]
    store.outbox.mark_done(store.outbox.due(scenario.now)[0].seq, "", scenario.now)
    assert scenario.decides(name, FIRST) == [], "done is done"


def test_actions_of_a_session_are_due_in_their_order(
    scenario: Scenario, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(scenario.now)
    assert (first.action, first.session, first.repository) == (FIRST, name, "acme/widgets")
    store.outbox.mark_done(first.seq, "", scenario.now)
    (second,) = store.outbox.due(scenario.now)
    assert second.action == SECOND
    store.outbox.mark_done(second.seq, "", scenario.now)
    assert store.outbox.due(scenario.now) == []


def test_sessions_do_not_wait_for_each_other(scenario: Scenario, store: Store, name: str) -> None:
    scenario.clock.passes(1)
    other = scenario.session(13)
    scenario.decides(other, SECOND)
    assert [due.session for due in store.outbox.due(scenario.now)] == [name, other]
    assert [due.session for due in store.outbox.due(scenario.now, limit=1)] == [name]


def test_the_next_action_of_an_older_session_comes_before_those_of_younger_ones(
    scenario: Scenario, store: Store, name: str
) -> None:
    for number in (13, 14):
        scenario.clock.passes(1)
        scenario.decides(scenario.session(number), SECOND)
    (first, *_) = store.outbox.due(scenario.now)
    assert first.session == name
    store.outbox.mark_done(first.seq, "", scenario.now)
    (late, *rest) = store.outbox.due(scenario.now)
    assert (late.session, late.action) == (name, SECOND)
    assert [due.session for due in rest] == ["widgets-13", "widgets-14"]


def test_a_deferred_action_does_not_count_as_an_attempt(
    scenario: Scenario, store: Store, name: str
) -> None:
    later = scenario.now + timedelta(seconds=60)
    for _ in range(2):
        (due,) = store.outbox.due(scenario.now)
        store.outbox.defer(due.seq, later)
    assert store.outbox.due(scenario.now) == []
    (due,) = store.outbox.due(later)
    assert (due.action, due.attempts) == (FIRST, 0)


def test_the_facts_say_when_a_start_is_attempted_next(
    scenario: Scenario, store: Store, name: str
) -> None:
    assert store.facts.get(name).start_due is None
    start = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    scenario.decides(name, start)
    assert store.facts.get(name).start_due == scenario.now
    (seq,) = (one.seq for one in store.outbox.of(name) if one.key == start.key)
    again = scenario.now + timedelta(seconds=60)
    store.outbox.mark_retry(seq, "not now", again)
    assert store.facts.get(name).start_due == again
    store.outbox.mark_done(seq, "run 1", again)
    assert store.facts.get(name).start_due is None


def test_overdue_actions_are_due_from_the_start_of_the_bot(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.decides(name, Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start")))
    (first, *_) = store.outbox.due(scenario.now)
    later = scenario.now + timedelta(seconds=60)
    store.outbox.mark_retry(first.seq, "not now", later + timedelta(seconds=60))
    scenario.clock.passes(60)
    store.outbox.reset_due(scenario.now)
    assert store.facts.get(name).start_due == later
    assert first.seq not in [due.seq for due in store.outbox.due(scenario.now)]


def test_an_action_that_waits_for_a_retry_does_not_delay_others(
    scenario: Scenario, store: Store, name: str
) -> None:
    again = scenario.now + timedelta(seconds=60)
    (first,) = store.outbox.due(scenario.now)
    store.outbox.mark_retry(first.seq, "GitHub did not answer", again)
    (second,) = store.outbox.due(scenario.now)
    assert second.action == SECOND
    (due,) = store.outbox.due(again)
    assert (due.action, due.attempts) == (FIRST, 1)


def test_a_done_action_wakes_its_session_with_what_was_observed(
    scenario: Scenario, store: Store, name: str, statements: list[str]
) -> None:
    (first,) = store.outbox.due(scenario.now)
    statements.clear()
    store.outbox.mark_done(
        first.seq,
        "34",
        scenario.now,
        observed=Observation(session=name, run=1, agent=Agent(run=1, activity=Activity.ACTIVE)),
        refreshes=[RefreshRequest(repository="acme/widgets", subject="pull:34")],
    )
    assert statements.count("COMMIT") == 1
    facts = store.facts.get(name)
    assert (facts.done[FIRST.key].result, facts.agent.activity) == ("34", Activity.ACTIVE)
    assert [t.subject for t in store.refreshes.due(scenario.now, ("pull:",))] == ["pull:34"]
    assert store.sessions.due(scenario.now) == [name]


def test_marking_an_action_done_twice_writes_nothing(
    scenario: Scenario, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(scenario.now)
    store.outbox.mark_done(first.seq, "34", scenario.now)
    scenario.decides(name, recheck_at=None)
    later = scenario.clock.passes(5)
    store.outbox.mark_done(
        first.seq,
        "35",
        later,
        refreshes=[RefreshRequest(repository="acme/widgets", subject="pull:35")],
    )
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "no", later)
    store.outbox.mark_retry(first.seq, "no", later)
    assert store.facts.get(name).done[FIRST.key].result == "34"
    assert store.refreshes.due(later, ("pull:",)) == []
    assert store.sessions.due(later) == []


def test_a_failed_action_is_listed_and_does_not_block_the_next(
    scenario: Scenario, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(scenario.now)
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "403: may not comment", scenario.now)
    store.outbox.mark_retry(first.seq, "late", scenario.now)
    (_, shown) = store.outbox.of(name)
    assert (shown.action, shown.state, shown.attempts) == (FIRST, "failed", 1)
    assert (shown.reason, shown.error, shown.done_at) == (
        "action_failed",
        "403: may not comment",
        scenario.now,
    )
    assert store.sessions.due(scenario.now) == [name]
    assert [due.action for due in store.outbox.due(scenario.now)] == [SECOND]


def test_a_failed_action_is_due_again_when_a_decision_repeats_it(
    scenario: Scenario, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(scenario.now)
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "403", scenario.now)
    scenario.clock.passes(60)
    assert scenario.decides(name, FIRST) == [str(FIRST.key)]
    assert store.facts.get(name).failures == {}
    (due,) = store.outbox.due(scenario.now)
    assert (due.seq, due.attempts) == (first.seq, 0)


def test_an_unreadable_action_stops_only_its_own_session(
    scenario: Scenario, store: Store, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = scenario.session(13)
    scenario.decides(other, Stop(key=parse("stop:1"), run=1))
    (first, _) = store.outbox.due(scenario.now)

    def spoil(connection: sqlite3.Connection) -> None:
        connection.execute('UPDATE outbox SET action = \'{"type": "sing"}\' WHERE seq = 1')

    store.db.write(spoil)
    assert [due.session for due in store.outbox.due(scenario.now)] == [other]
    assert f"outbox, row {first.seq}, column 'action'" in caplog.text


def test_an_unknown_reason_is_reported_with_its_row(
    scenario: Scenario, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(scenario.now)
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "403", scenario.now)
    store.db.write(lambda connection: connection.execute("UPDATE outbox SET reason = 'gloom'"))
    with pytest.raises(CorruptRow, match=f"outbox, row {first.seq}, column 'reason'.*gloom"):
        store.facts.get(name)


def test_a_withdrawn_action_can_be_decided_again(
    scenario: Scenario, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(scenario.now)
    store.outbox.withdraw(first.seq, scenario.now)
    assert store.facts.get(name).pending == {SECOND.key}
    assert store.sessions.due(scenario.now) == [name]
    assert scenario.decides(name, FIRST) == [str(FIRST.key)]


def test_a_done_action_is_not_withdrawn(scenario: Scenario, store: Store, name: str) -> None:
    (first,) = store.outbox.due(scenario.now)
    store.outbox.mark_done(first.seq, "34", scenario.now)
    store.outbox.withdraw(first.seq, scenario.now)
    assert FIRST.key in store.facts.get(name).done


def test_actions_are_listed_newest_first_with_their_results(
    scenario: Scenario, store: Store
) -> None:
    name = scenario.session(12)
    other = scenario.session(13)
    scenario.decides(name, *(Stop(key=keys.stop(number), run=number) for number in (1, 2, 3)))
    scenario.decides(other, Stop(key=keys.stop(9), run=1))
    first, second, third = sorted(row.seq for row in store.outbox.of(name))
    store.outbox.mark_done(first, "stopped", scenario.now)
    later = scenario.now + timedelta(seconds=60)
    store.outbox.mark_retry(second, "no answer", later)
    store.outbox.mark_failed(third, Reason.ACTION_FAILED, "it will not stop", scenario.now)
    dead, waiting, done = store.outbox.of(name)
    assert (done.state, done.result, done.done_at) == ("done", "stopped", scenario.now)
    assert (waiting.state, waiting.attempts, waiting.error, waiting.next_at) == (
        "due",
        1,
        "no answer",
        later,
    )
    assert (dead.key, dead.state, dead.error) == (keys.stop(3), "failed", "it will not stop")
    assert dead.reason == "action_failed"
    assert [row.key for row in store.outbox.of(name, limit=1)] == [keys.stop(3)]
