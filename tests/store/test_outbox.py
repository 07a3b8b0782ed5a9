"""An action is written once, done one at a time for a session, and marked once."""

import sqlite3
from datetime import timedelta

import pytest

from bot.store import CorruptRow, Observation, RefreshRequest, Store
from lifecycle.model import keys
from lifecycle.model.actions import CloseIssue, Comment, Prompt, Start, Stop
from lifecycle.model.facts import Agent
from lifecycle.model.key import parse
from lifecycle.model.status import Activity, Reason
from tests.store.conftest import Room

FIRST = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello", values={"who": "ada"})
SECOND = CloseIssue(key=keys.close_issue(), number=12)


@pytest.fixture
def name(room: Room) -> str:
    """A session with two actions to do and no visit due."""
    name = room.session(12)
    room.decides(name, FIRST, SECOND, recheck_at=None)
    return name


def test_a_key_is_written_once_for_a_session(room: Room, store: Store, name: str) -> None:
    other = room.session(13)
    assert room.decides(name, FIRST) == []
    assert room.decides(other, FIRST) == [str(FIRST.key)]
    store.outbox.mark_done(store.outbox.due(room.now)[0].seq, "", room.now)
    assert room.decides(name, FIRST) == [], "done is done"


def test_actions_of_a_session_are_done_in_their_order(room: Room, store: Store, name: str) -> None:
    (first,) = store.outbox.due(room.now)
    assert (first.action, first.session, first.repository) == (FIRST, name, "acme/widgets")
    store.outbox.mark_done(first.seq, "", room.now)
    (second,) = store.outbox.due(room.now)
    assert second.action == SECOND
    store.outbox.mark_done(second.seq, "", room.now)
    assert store.outbox.due(room.now) == []


def test_sessions_do_not_wait_for_each_other(room: Room, store: Store, name: str) -> None:
    room.clock.passes(1)
    other = room.session(13)
    room.decides(other, SECOND)
    assert [due.session for due in store.outbox.due(room.now)] == [name, other]
    assert [due.session for due in store.outbox.due(room.now, limit=1)] == [name]


def test_what_is_held_is_no_failed_try(room: Room, store: Store, name: str) -> None:
    later = room.now + timedelta(seconds=60)
    for _ in range(2):
        (due,) = store.outbox.due(room.now)
        store.outbox.defer(due.seq, later)
    assert store.outbox.due(room.now) == []
    (due,) = store.outbox.due(later)
    assert (due.action, due.attempts) == (FIRST, 0)


def test_a_start_says_since_when_it_is_being_tried(room: Room, store: Store, name: str) -> None:
    assert store.facts.get(name).start_due is None
    start = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    room.decides(name, start)
    assert store.facts.get(name).start_due == room.now
    (seq,) = (one.seq for one in store.outbox.of(name) if one.key == start.key)
    again = room.now + timedelta(seconds=60)
    store.outbox.mark_retry(seq, "not now", again)
    assert store.facts.get(name).start_due == again
    store.outbox.mark_done(seq, "run 1", again)
    assert store.facts.get(name).start_due is None


def test_what_was_due_while_no_bot_acted_is_due_from_when_one_takes_it_up(
    room: Room, store: Store, name: str
) -> None:
    room.decides(name, Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start")))
    (first, *_) = store.outbox.due(room.now)
    later = room.now + timedelta(seconds=60)
    store.outbox.mark_retry(first.seq, "not now", later + timedelta(seconds=60))
    room.clock.passes(60)
    store.outbox.reset_due(room.now)
    assert store.facts.get(name).start_due == later
    assert first.seq not in [due.seq for due in store.outbox.due(room.now)]


def test_an_action_to_be_tried_again_holds_nothing_back(
    room: Room, store: Store, name: str
) -> None:
    again = room.now + timedelta(seconds=60)
    (first,) = store.outbox.due(room.now)
    store.outbox.mark_retry(first.seq, "GitHub did not answer", again)
    (second,) = store.outbox.due(room.now)
    assert second.action == SECOND
    (due,) = store.outbox.due(again)
    assert (due.action, due.attempts) == (FIRST, 1)


def test_what_was_done_is_a_reason_for_a_visit_with_all_that_was_learned(
    room: Room, store: Store, name: str, statements: list[str]
) -> None:
    (first,) = store.outbox.due(room.now)
    statements.clear()
    store.outbox.mark_done(
        first.seq,
        "34",
        room.now,
        observed=Observation(session=name, run=1, agent=Agent(run=1, activity=Activity.ACTIVE)),
        refreshes=[RefreshRequest(repository="acme/widgets", subject="pull:34")],
    )
    assert statements.count("COMMIT") == 1
    facts = store.facts.get(name)
    assert (facts.done[FIRST.key].result, facts.agent.activity) == ("34", Activity.ACTIVE)
    assert [t.subject for t in store.refreshes.due(room.now, ("pull:",))] == ["pull:34"]
    assert store.sessions.due(room.now) == [name]


def test_marking_twice_repeats_nothing(room: Room, store: Store, name: str) -> None:
    (first,) = store.outbox.due(room.now)
    store.outbox.mark_done(first.seq, "34", room.now)
    room.decides(name, recheck_at=None)
    later = room.clock.passes(5)
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


def test_what_was_given_up_is_shown_and_lets_the_next_go_on(
    room: Room, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(room.now)
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "403: may not comment", room.now)
    store.outbox.mark_retry(first.seq, "late", room.now)
    (_, shown) = store.outbox.of(name)
    assert (shown.action, shown.state, shown.attempts) == (FIRST, "failed", 1)
    assert (shown.reason, shown.error, shown.done_at) == (
        "action_failed",
        "403: may not comment",
        room.now,
    )
    assert store.sessions.due(room.now) == [name]
    assert [due.action for due in store.outbox.due(room.now)] == [SECOND]


def test_what_was_given_up_is_tried_again_where_it_is_asked_for_anew(
    room: Room, store: Store, name: str
) -> None:
    (first,) = store.outbox.due(room.now)
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "403", room.now)
    room.clock.passes(60)
    assert room.decides(name, FIRST) == [str(FIRST.key)]
    assert store.facts.get(name).failures == {}
    (due,) = store.outbox.due(room.now)
    assert (due.seq, due.attempts) == (first.seq, 0)


def test_an_action_nobody_can_read_stops_its_own_session_alone(
    room: Room, store: Store, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = room.session(13)
    room.decides(other, Stop(key=parse("stop:1"), run=1))
    (first, _) = store.outbox.due(room.now)

    def spoil(connection: sqlite3.Connection) -> None:
        connection.execute('UPDATE outbox SET action = \'{"type": "sing"}\' WHERE seq = 1')

    store.db.write(spoil)
    assert [due.session for due in store.outbox.due(room.now)] == [other]
    assert f"outbox, row {first.seq}, column 'action'" in caplog.text


def test_a_reason_nobody_knows_is_named(room: Room, store: Store, name: str) -> None:
    (first,) = store.outbox.due(room.now)
    store.outbox.mark_failed(first.seq, Reason.ACTION_FAILED, "403", room.now)
    store.db.write(lambda connection: connection.execute("UPDATE outbox SET reason = 'gloom'"))
    with pytest.raises(CorruptRow, match=f"outbox, row {first.seq}, column 'reason'.*gloom"):
        store.facts.get(name)


def test_an_action_taken_back_may_be_asked_for_again(room: Room, store: Store, name: str) -> None:
    (first,) = store.outbox.due(room.now)
    store.outbox.withdraw(first.seq, room.now)
    assert store.facts.get(name).pending == {SECOND.key}
    assert store.sessions.due(room.now) == [name]
    assert room.decides(name, FIRST) == [str(FIRST.key)]


def test_what_is_done_is_not_taken_back(room: Room, store: Store, name: str) -> None:
    (first,) = store.outbox.due(room.now)
    store.outbox.mark_done(first.seq, "34", room.now)
    store.outbox.withdraw(first.seq, room.now)
    assert FIRST.key in store.facts.get(name).done


def test_what_became_of_each_action_is_told_newest_first(room: Room, store: Store) -> None:
    name = room.session(12)
    other = room.session(13)
    room.decides(name, *(Stop(key=keys.stop(number), run=number) for number in (1, 2, 3)))
    room.decides(other, Stop(key=keys.stop(9), run=1))
    first, second, third = sorted(row.seq for row in store.outbox.of(name))
    store.outbox.mark_done(first, "stopped", room.now)
    later = room.now + timedelta(seconds=60)
    store.outbox.mark_retry(second, "no answer", later)
    store.outbox.mark_failed(third, Reason.ACTION_FAILED, "it will not stop", room.now)
    dead, waiting, done = store.outbox.of(name)
    assert (done.state, done.result, done.done_at) == ("done", "stopped", room.now)
    assert (waiting.state, waiting.attempts, waiting.error, waiting.next_at) == (
        "due",
        1,
        "no answer",
        later,
    )
    assert (dead.key, dead.state, dead.error) == (keys.stop(3), "failed", "it will not stop")
    assert dead.reason == "action_failed"
    assert [row.key for row in store.outbox.of(name, limit=1)] == [keys.stop(3)]
