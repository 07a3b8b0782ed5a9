"""A session is decided about by one at a time, and what is decided is written once and whole."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from bot.store import Fenced, HistoryRow, Kind, Observed, Store, StoreFailure
from bot.store.freezes import standing
from lifecycle.actions import Comment, Prompt, Start, Stop
from lifecycle.facts import Agent, Done, Ended, Failure, Frozen
from lifecycle.status import Activity, Reason, Status
from tests.store.conftest import Room, decision

START = Start(key="start:1", run=1, prompt=Prompt(name="issue"), covers=("tell:a", "tell:b"))
STOP = Stop(key="stop:1", run=1)
HELLO = Comment(key="hello", number=12, topic="hello")


@pytest.fixture
def name(room: Room) -> str:
    return room.session(12)


def decisions(store: Store, name: str) -> list[HistoryRow]:
    return [row for row in store.history(name) if row.kind is Kind.DECISION]


def test_nobody_claims_what_another_holds(room: Room, store: Store, name: str) -> None:
    assert store.claim(name, "one", room.now, 30) is not None
    assert store.claim(name, "two", room.now, 30) is None
    assert store.due_visits(room.now) == []


def test_a_claim_runs_out(room: Room, store: Store, name: str) -> None:
    first = room.claim(name, "one")
    room.clock.passes(30)
    assert store.due_visits(room.now) == [name]
    second = room.claim(name, "two")
    assert second.epoch > first.epoch


def test_renewing_ones_own_claim_keeps_its_epoch(room: Room, store: Store, name: str) -> None:
    first = room.claim(name)
    room.clock.passes(20)
    assert room.claim(name).epoch == first.epoch
    room.clock.passes(20)
    assert store.claim(name, "two", room.now, 30) is None
    room.clock.passes(20)
    assert room.claim(name).epoch > first.epoch, "it had run out"


def test_a_claim_on_nothing_is_none(room: Room, store: Store) -> None:
    assert store.claim("nobody-1", "one", room.now, 30) is None


def test_two_threads_never_hold_one_session(room: Room, store: Store, name: str) -> None:
    ready = threading.Barrier(8)
    held: list[str] = []

    def try_it(owner: str) -> None:
        ready.wait()
        if store.claim(name, owner, room.now, 30) is not None:
            held.append(owner)

    threads = [threading.Thread(target=try_it, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 1


def test_a_late_decision_is_refused_whole(room: Room, store: Store, name: str) -> None:
    late = room.claim(name, "frozen")
    room.clock.passes(31)
    room.claim(name, "other")
    with pytest.raises(Fenced, match="widgets-12"):
        store.record(late, decision(START), room.now)
    assert store.due_actions(room.now) == []
    assert decisions(store, name) == []
    assert store.facts(name).run == 0


def test_a_released_session_stays_due(room: Room, store: Store, name: str) -> None:
    store.release(room.claim(name))
    assert store.due_visits(room.now) == [name]


def test_releasing_what_another_holds_by_now_does_nothing(
    room: Room, store: Store, name: str
) -> None:
    late = room.claim(name, "frozen")
    room.clock.passes(31)
    room.claim(name, "other")
    store.release(late)
    assert store.claim(name, "third", room.now, 30) is None


def test_a_decision_is_written_in_one_transaction(
    room: Room, store: Store, name: str, statements: list[str]
) -> None:
    claim = room.claim(name)
    statements.clear()
    ended = Ended(status=Status.DONE, reason=Reason.NOTHING_TO_SHOW, because="", at=room.now)
    recheck = room.now + timedelta(seconds=60)
    told = store.record(
        claim,
        decision(START, STOP, ended=ended, blockers=("draft",), recheck_at=recheck),
        room.now,
    )
    assert told == ["start:1", "stop:1"]
    assert statements.count("COMMIT") == 1
    session = store.session(name)
    assert session is not None
    assert (session.status, session.because, session.reason, session.blockers) == (
        "working",
        "the agent works",
        "agent_at_work",
        ("draft",),
    )
    assert (session.run, session.ended, session.due, session.decided_at) == (
        1,
        ended,
        recheck,
        room.now,
    )
    assert store.due_visits(recheck) == [name], "the claim was given back"


def test_a_decision_that_says_the_same_adds_no_history(room: Room, store: Store, name: str) -> None:
    assert room.decides(name, HELLO) == ["hello"]
    decided = room.now
    room.clock.passes(60)
    assert room.decides(name, HELLO) == []
    assert room.decides(name) == []
    (row,) = decisions(store, name)
    assert row.data == {
        "status": "working",
        "reason": "agent_at_work",
        "because": "the agent works",
        "blockers": [],
        "actions": ["hello"],
    }
    session = store.session(name)
    assert session is not None
    assert session.decided_at == decided


def test_a_new_run_alone_is_written_and_is_no_history(room: Room, store: Store, name: str) -> None:
    room.decides(name, run=1)
    room.decides(name, run=2)
    assert store.facts(name).run == 2
    assert len(decisions(store, name)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"status": "pr_open"},
        {"because": "something else"},
        {"blockers": ("draft",)},
        {"actions": (STOP,)},
    ],
)
def test_every_change_of_a_decision_is_history(
    room: Room, store: Store, name: str, change: dict[str, object]
) -> None:
    room.decides(name)
    room.decides(name, **change)
    assert len(decisions(store, name)) == 2


def test_the_time_of_a_status_is_kept_while_it_stays(room: Room, store: Store, name: str) -> None:
    room.decides(name, status="working")
    first = room.now
    room.clock.passes(60)
    room.decides(name, status="working", because="it still works")
    session = store.session(name)
    assert session is not None
    assert session.since == first


def test_what_happens_during_a_visit_is_visited_again(room: Room, store: Store, name: str) -> None:
    claim = room.claim(name)
    store.facts(claim)
    store.observe([Observed(session=name, agent=Agent(activity=Activity.READY))], room.now)
    store.record(claim, decision(recheck_at=None), room.now)
    assert store.due_visits(room.now) == [name]
    room.decides(name, recheck_at=None)
    assert store.due_visits(room.now) == []


def test_the_longest_overdue_is_visited_first(room: Room, store: Store) -> None:
    for number in (1, 2, 3):
        room.session(number)
    for number, seconds in ((1, 20), (2, 10), (3, 999)):
        recheck = room.now + timedelta(seconds=seconds)
        room.decides(f"widgets-{number}", recheck_at=recheck)
    later = room.clock.passes(60)
    assert store.due_visits(later) == ["widgets-2", "widgets-1"]
    assert store.due_visits(later, limit=1) == ["widgets-2"]


def test_actions_are_facts_by_their_state(room: Room, store: Store, name: str) -> None:
    room.decides(name, START, STOP, HELLO)
    facts = store.facts(name)
    assert facts.pending == {"start:1", "tell:a", "tell:b", "stop:1", "hello"}
    (start,) = store.due_actions(room.now)
    store.mark_done(start.seq, "started", room.now)
    (stop,) = store.due_actions(room.now)
    store.mark_dead(stop.seq, Reason.ACTION_FAILED, "it will not stop", room.now)
    facts = store.facts(room.claim(name))
    done = Done(at=room.now, result="started")
    assert facts.done == {"start:1": done, "tell:a": done, "tell:b": done}
    assert facts.pending == {"hello"}
    assert facts.failures == {
        "stop:1": Failure(at=room.now, reason=Reason.ACTION_FAILED, detail="it will not stop")
    }


def test_facts_are_of_one_instant(
    room: Room, store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision written between the reading of two tables is in both or in none."""

    def decided_meanwhile(connection: sqlite3.Connection) -> dict[str, Frozen]:
        monkeypatch.undo()
        room.decides(name, START)
        store.grant_wish("comment:7", name, room.now)
        return standing(connection)

    store.deliver([room.delivery("a")]).result()
    store.settle_delivery("a", [], [room.wish()])
    monkeypatch.setattr("bot.store.loading.standing", decided_meanwhile)
    facts = store.facts(name)
    assert (facts.run, facts.wishes) == (0, ())
    facts = store.facts(name)
    assert (facts.run, len(facts.wishes)) == (1, 1)


def test_facts_of_nobody_are_an_error_that_names_them(store: Store) -> None:
    with pytest.raises(StoreFailure, match="nobody-1"):
        store.facts("nobody-1")


def test_notes_and_decisions_are_told_newest_first(room: Room, store: Store, name: str) -> None:
    room.decides(name)
    store.note(name, Kind.OBSERVED, "ada", {"head": "cafe"}, room.clock.passes(1))
    newest, oldest, _ = store.history(name)
    assert (newest.kind, newest.actor, newest.data, newest.at) == (
        Kind.OBSERVED,
        "ada",
        {"head": "cafe"},
        room.now,
    )
    assert oldest.kind == "decision"
    assert [row.kind for row in store.history(name, limit=1)] == [Kind.OBSERVED]


def test_a_claim_of_a_second_store_holds_against_the_first(
    room: Room, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    other = open_store()
    assert other.claim(name, "other", room.now, 30) is not None
    assert store.claim(name, "one", room.now, 30) is None
