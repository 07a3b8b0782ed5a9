"""A session is decided about by one at a time, and what is decided is written once and whole."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from bot.store import CorruptRow, Fenced, HistoryKind, HistoryRow, Observation, Store, StoreFailure
from bot.store.incidents import freezes_by_scope
from lifecycle.model import keys
from lifecycle.model.actions import Comment, Prompt, Start, Stop
from lifecycle.model.facts import Agent, Done, Ended, Failure, Frozen
from lifecycle.model.key import StartCause, parse
from lifecycle.model.status import Activity, Reason, Status
from tests.store.conftest import Room, decision

FIRST, TOLD = keys.start(StartCause.FIRST, 1), (keys.remark("a"), keys.remark("b"))
START = Start(key=FIRST, run=1, prompt=Prompt(name="issue"), covers=TOLD)
STOP = Stop(key=keys.stop(1), run=1)
HELLO = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello")


@pytest.fixture
def name(room: Room) -> str:
    return room.session(12)


def decisions(store: Store, name: str) -> list[HistoryRow]:
    return [row for row in store.history.of(name) if row.kind is HistoryKind.DECISION]


def test_a_decision_about_what_has_changed_is_refused_whole(
    room: Room, store: Store, name: str
) -> None:
    late = room.visit(name)
    store.observations.record(
        [Observation(session=name, agent=Agent(activity=Activity.READY))], room.now
    )
    with pytest.raises(Fenced, match="widgets-12"):
        room.records(late, decision(START))
    assert store.outbox.due(room.now) == []
    assert decisions(store, name) == []
    assert store.facts.get(name).run == 0
    assert store.sessions.due(room.now) == [name], "it is visited again"


def test_when_to_look_again_is_of_what_was_seen(room: Room, store: Store, name: str) -> None:
    room.decides(name)
    late = room.visit(name)
    store.observations.record(
        [Observation(session=name, agent=Agent(activity=Activity.READY))], room.now
    )
    with pytest.raises(Fenced):
        room.records(late, msgspec.structs.replace(late.before, recheck_at=None))
    assert store.sessions.due(room.now) == [name]


def test_of_two_that_decide_about_the_same_one_counts(
    room: Room, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    ready = threading.Barrier(8)
    counted: list[str] = []

    def decide(store: Store, key: str) -> None:
        (visit,) = store.facts.load([name])
        ready.wait()
        (written,) = store.decisions.record(
            [(visit, decision(Stop(key=parse(key), run=1)))], room.now
        )
        if written.exception() is None:
            counted.extend(written.result())

    stores = (store, open_store())
    threads = [
        threading.Thread(target=decide, args=(stores[number % 2], f"stop#{number + 1}"))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(one.action.key) for one in store.outbox.due(room.now)] == counted
    assert len(counted) == 1


def test_many_are_written_in_one_transaction_and_one_that_is_late_harms_no_other(
    room: Room, store: Store, statements: list[str]
) -> None:
    ids = [room.session(number) for number in range(1, 6)]
    visits = store.facts.load(ids)
    store.observations.record(
        [Observation(session=ids[2], agent=Agent(activity=Activity.READY))], room.now
    )
    statements.clear()
    written = store.decisions.record([(visit, decision(HELLO)) for visit in visits], room.now)
    assert statements.count("COMMIT") == 1
    assert [future.exception() is None for future in written] == [True, True, False, True, True]
    assert [len(decisions(store, session)) for session in ids] == [1, 1, 0, 1, 1]
    assert store.sessions.due(room.now) == [ids[2]]


def test_what_cannot_be_written_of_one_harms_no_other(room: Room, store: Store) -> None:
    ids = [room.session(number) for number in (1, 2)]
    odd, fine = store.facts.load(ids)
    because = "half a character: \ud83d"
    written = store.decisions.record(
        [(odd, decision(because=because)), (fine, decision())], room.now
    )
    assert isinstance(written[0].exception(), UnicodeEncodeError)
    assert written[1].result() == []


def test_many_are_read_as_one_by_one(room: Room, store: Store) -> None:
    ids = [room.session(number) for number in (3, 1, 2)]
    for session in ids:
        room.decides(session, Stop(key=parse(f"push:{session}"), run=1), HELLO)
        command = msgspec.structs.replace(room.command(f"comment:{session}"), number=1)
        store.commands.add(command)
        store.commands.grant(command.key, session, room.now)
    visits = store.facts.load([*ids, "nobody-1"])
    assert [visit.session for visit in visits] == ids
    assert [visit.facts for visit in visits] == [store.facts.get(session) for session in ids]
    assert [visit.facts.pending for visit in visits if not isinstance(visit.facts, CorruptRow)] == [
        {parse(f"push:{session}"), HELLO.key} for session in ids
    ]


def test_one_that_cannot_be_read_is_told_and_the_others_are_read(room: Room, store: Store) -> None:
    ids = [room.session(number) for number in (1, 2)]
    store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET pulls = '{' WHERE id = ?", (ids[0],)
        )
    )
    odd, fine = store.facts.load(ids)
    assert isinstance(odd.facts, CorruptRow)
    assert fine.facts == store.facts.get(ids[1])
    with pytest.raises(CorruptRow, match=r"widgets-1.*'pulls'"):
        store.facts.get(ids[0])


def test_one_that_was_put_off_waits_until_then_or_until_it_changes(
    room: Room, store: Store, name: str
) -> None:
    later = room.now + timedelta(seconds=30)
    store.sessions.postpone([name], later)
    assert store.sessions.due(room.now) == []
    assert store.sessions.due(later) == [name]
    store.observations.record(
        [Observation(session=name, agent=Agent(activity=Activity.READY))], room.now
    )
    assert store.sessions.due(room.now) == [name]


def test_a_decision_is_written_in_one_transaction(
    room: Room, store: Store, name: str, statements: list[str]
) -> None:
    visit = room.visit(name)
    room.session(13)  # With it the project is not finished, which would be told at once.
    statements.clear()
    ended = Ended(status=Status.DONE, reason=Reason.NOTHING_TO_SHOW, because="", at=room.now)
    recheck = room.now + timedelta(seconds=60)
    told = room.records(
        visit, decision(START, STOP, ended=ended, blockers=("draft",), recheck_at=recheck)
    )
    assert told == ["start:first#1", "stop#1"]
    assert statements.count("COMMIT") == 1
    session = store.sessions.get(name)
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
    assert name in store.sessions.due(recheck)


def test_a_decision_that_says_the_same_adds_no_history(room: Room, store: Store, name: str) -> None:
    assert room.decides(name, HELLO) == [str(HELLO.key)]
    decided = room.now
    room.clock.passes(60)
    assert room.decides(name) == []
    (row,) = decisions(store, name)
    assert row.data == {
        "status": "working",
        "reason": "agent_at_work",
        "because": "the agent works",
        "blockers": [],
        "actions": [str(HELLO.key)],
    }
    session = store.sessions.get(name)
    assert session is not None
    assert session.decided_at == decided
    assert room.decides(name, HELLO) == []
    assert len(decisions(store, name)) == 1


def test_a_new_run_alone_is_written_and_is_no_history(room: Room, store: Store, name: str) -> None:
    room.decides(name, run=1)
    room.decides(name, run=2)
    assert store.facts.get(name).run == 2
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
    session = store.sessions.get(name)
    assert session is not None
    assert session.since == first


def test_the_longest_overdue_is_visited_first(room: Room, store: Store) -> None:
    for number in (1, 2, 3):
        room.session(number)
    for number, seconds in ((1, 20), (2, 10), (3, 999)):
        recheck = room.now + timedelta(seconds=seconds)
        room.decides(f"widgets-{number}", recheck_at=recheck)
    later = room.clock.passes(60)
    assert store.sessions.due(later) == ["widgets-2", "widgets-1"]
    assert store.sessions.due(later, limit=1) == ["widgets-2"]


def test_actions_are_facts_by_their_state(room: Room, store: Store, name: str) -> None:
    room.decides(name, START, STOP, HELLO)
    facts = store.facts.get(name)
    assert facts.pending == {FIRST, *TOLD, STOP.key, HELLO.key}
    (start,) = store.outbox.due(room.now)
    store.outbox.mark_done(start.seq, "started", room.now)
    (stop,) = store.outbox.due(room.now)
    store.outbox.mark_failed(stop.seq, Reason.ACTION_FAILED, "it will not stop", room.now)
    facts = store.facts.get(name)
    done = Done(at=room.now, result="started")
    assert facts.done == dict.fromkeys((FIRST, *TOLD), done)
    assert facts.pending == {HELLO.key}
    assert facts.failures == {
        STOP.key: Failure(at=room.now, reason=Reason.ACTION_FAILED, detail="it will not stop")
    }


def test_facts_are_of_one_instant(
    room: Room, store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision written between the reading of two tables is in both or in none."""

    def decided_meanwhile(connection: sqlite3.Connection) -> dict[str, Frozen]:
        monkeypatch.undo()
        room.decides(name, START)
        store.commands.grant("comment:7", name, room.now)
        return freezes_by_scope(connection)

    store.deliveries.add([room.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [room.command()])
    monkeypatch.setattr("bot.store.facts.freezes_by_scope", decided_meanwhile)
    facts = store.facts.get(name)
    assert (facts.run, facts.commands) == (0, ())
    facts = store.facts.get(name)
    assert (facts.run, len(facts.commands)) == (1, 1)


def test_facts_of_nobody_are_an_error_that_names_them(store: Store) -> None:
    with pytest.raises(StoreFailure, match="nobody-1"):
        store.facts.get("nobody-1")


def test_notes_and_decisions_are_told_newest_first(room: Room, store: Store, name: str) -> None:
    room.decides(name)
    store.history.add(name, HistoryKind.OBSERVED, "ada", {"head": "cafe"}, room.clock.passes(1))
    newest, oldest, _ = store.history.of(name)
    assert (newest.kind, newest.actor, newest.data, newest.at) == (
        HistoryKind.OBSERVED,
        "ada",
        {"head": "cafe"},
        room.now,
    )
    assert oldest.kind == "decision"
    assert [row.kind for row in store.history.of(name, limit=1)] == [HistoryKind.OBSERVED]
