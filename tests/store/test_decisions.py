"""Decisions are written once, completely, and only about the facts they were made from."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from bot.store import (
    CorruptRow,
    HistoryKind,
    HistoryRow,
    Observation,
    SessionChanged,
    Store,
    StoreFailure,
)
from bot.store.history import add_history
from bot.store.incidents import freezes_by_scope
from lifecycle.model import keys
from lifecycle.model.actions import Comment, Prompt, Start, Stop
from lifecycle.model.facts import Agent, Done, Ended, Failure, Frozen
from lifecycle.model.key import StartCause, parse
from lifecycle.model.status import Activity, Blocker, Reason, Status
from tests.store.conftest import Scenario, decision

FIRST, COVERED = keys.start(StartCause.FIRST, 1), (keys.remark("a"), keys.remark("b"))
START = Start(key=FIRST, run=1, prompt=Prompt(name="issue"), covers=COVERED)
STOP = Stop(key=keys.stop(1), run=1)
HELLO = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello")


@pytest.fixture
def name(scenario: Scenario) -> str:
    return scenario.session(12)


def decisions(store: Store, name: str) -> list[HistoryRow]:
    return [row for row in store.history.of(name) if row.kind is HistoryKind.DECISION]


def test_a_decision_about_changed_facts_is_refused_completely(
    scenario: Scenario, store: Store, name: str
) -> None:
    late = scenario.loaded(name)
    store.observations.record(
        [Observation(session=name, agent=Agent(activity=Activity.READY))], scenario.now
    )
    with pytest.raises(SessionChanged, match="widgets-12"):
        scenario.records(late, decision(START))
    assert store.outbox.due(scenario.now) == []
    assert decisions(store, name) == []
    assert store.facts.get(name).run == 0
    assert store.sessions.due(scenario.now) == [name], "it is due again"


def test_a_recheck_time_applies_only_to_the_facts_it_was_decided_from(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.decides(name)
    late = scenario.loaded(name)
    store.observations.record(
        [Observation(session=name, agent=Agent(activity=Activity.READY))], scenario.now
    )
    with pytest.raises(SessionChanged):
        scenario.records(late, msgspec.structs.replace(late.before, recheck_at=None))
    assert store.sessions.due(scenario.now) == [name]


def test_one_of_two_concurrent_decisions_is_written(
    scenario: Scenario, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    ready = threading.Barrier(8)
    counted: list[str] = []

    def decide(store: Store, key: str) -> None:
        (loaded,) = store.facts.load([name])
        ready.wait()
        (written,) = store.decisions.record(
            [(loaded, decision(Stop(key=parse(key), run=1)))], scenario.now
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
    assert [str(one.action.key) for one in store.outbox.due(scenario.now)] == counted
    assert len(counted) == 1


def test_decisions_are_one_transaction_and_a_stale_one_affects_no_other(
    scenario: Scenario, store: Store, statements: list[str]
) -> None:
    ids = [scenario.session(number) for number in range(1, 6)]
    sessions = store.facts.load(ids)
    store.observations.record(
        [Observation(session=ids[2], agent=Agent(activity=Activity.READY))], scenario.now
    )
    statements.clear()
    written = store.decisions.record(
        [(loaded, decision(HELLO)) for loaded in sessions], scenario.now
    )
    assert statements.count("COMMIT") == 1
    assert [future.exception() is None for future in written] == [True, True, False, True, True]
    assert [len(decisions(store, session)) for session in ids] == [1, 1, 0, 1, 1]
    assert store.sessions.due(scenario.now) == [ids[2]]


def test_a_decision_that_cannot_be_written_affects_no_other(
    scenario: Scenario, store: Store
) -> None:
    ids = [scenario.session(number) for number in (1, 2)]
    odd, fine = store.facts.load(ids)
    because = "half a character: \ud83d"
    written = store.decisions.record(
        [(odd, decision(because=because)), (fine, decision())], scenario.now
    )
    assert isinstance(written[0].exception(), UnicodeEncodeError)
    assert written[1].result() == []


def test_sessions_loaded_together_equal_those_loaded_one_by_one(
    scenario: Scenario, store: Store
) -> None:
    ids = [scenario.session(number) for number in (3, 1, 2)]
    for session in ids:
        scenario.decides(session, Stop(key=parse(f"push:{session}"), run=1), HELLO)
        command = msgspec.structs.replace(scenario.command(f"comment:{session}"), number=1)
        store.commands.add(command)
        store.commands.grant(command.key, session, scenario.now)
    sessions = store.facts.load([*ids, "nobody-1"])
    assert [loaded.session for loaded in sessions] == ids
    assert [loaded.facts for loaded in sessions] == [store.facts.get(session) for session in ids]
    assert [
        loaded.facts.pending for loaded in sessions if not isinstance(loaded.facts, CorruptRow)
    ] == [{parse(f"push:{session}"), HELLO.key} for session in ids]


def test_a_corrupt_session_does_not_stop_loading_the_others(
    scenario: Scenario, store: Store
) -> None:
    ids = [scenario.session(number) for number in (1, 2)]
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


def test_a_postponed_session_waits_until_its_time_or_a_change(
    scenario: Scenario, store: Store, name: str
) -> None:
    later = scenario.now + timedelta(seconds=30)
    store.sessions.postpone([name], later)
    assert store.sessions.due(scenario.now) == []
    assert store.sessions.due(later) == [name]
    store.observations.record(
        [Observation(session=name, agent=Agent(activity=Activity.READY))], scenario.now
    )
    assert store.sessions.due(scenario.now) == [name]


def test_a_decision_is_written_in_one_transaction(
    scenario: Scenario, store: Store, name: str, statements: list[str]
) -> None:
    loaded = scenario.loaded(name)
    scenario.session(13)  # An open session, so that the end counts no outcomes.
    statements.clear()
    ended = Ended(status=Status.DONE, reason=Reason.NOTHING_TO_SHOW, because="", at=scenario.now)
    recheck = scenario.now + timedelta(seconds=60)
    keys = scenario.records(
        loaded,
        decision(
            START,
            STOP,
            ended=ended,
            blockers=(Blocker("draft", "the pull request is a draft"),),
            recheck_at=recheck,
        ),
    )
    assert keys == ["start:first#1", "stop#1"]
    assert statements.count("COMMIT") == 1
    session = store.sessions.get(name)
    assert session is not None
    assert (session.status, session.because, session.reason, session.blockers) == (
        "working",
        "the agent works",
        "agent_at_work",
        (Blocker("draft", "the pull request is a draft"),),
    )
    assert (session.run, session.ended, session.due) == (1, ended, recheck)
    assert name in store.sessions.due(recheck)


def test_an_unchanged_decision_adds_no_history(scenario: Scenario, store: Store, name: str) -> None:
    assert scenario.decides(name, HELLO) == [str(HELLO.key)]
    decided = scenario.now
    scenario.clock.passes(60)
    assert scenario.decides(name) == []
    (row,) = decisions(store, name)
    assert row.data == {
        "status": "working",
        "reason": "agent_at_work",
        "because": "the agent works",
        "blockers": [],
        "actions": [str(HELLO.key)],
    }
    assert row.at == decided
    assert scenario.decides(name, HELLO) == []
    assert len(decisions(store, name)) == 1


def test_a_new_run_number_alone_is_written_without_history(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.decides(name, run=1)
    scenario.decides(name, run=2)
    assert store.facts.get(name).run == 2
    assert len(decisions(store, name)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"status": "pr_open"},
        {"because": "something else"},
        {"blockers": (Blocker("draft", "the pull request is a draft"),)},
        {"actions": (STOP,)},
    ],
)
def test_every_change_of_a_decision_is_in_the_history(
    scenario: Scenario, store: Store, name: str, change: dict[str, object]
) -> None:
    scenario.decides(name)
    scenario.decides(name, **change)
    assert len(decisions(store, name)) == 2


def test_the_time_of_a_status_is_kept_while_it_stays(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.decides(name, status="working")
    first = scenario.now
    scenario.clock.passes(60)
    scenario.decides(name, status="working", because="it still works")
    session = store.sessions.get(name)
    assert session is not None
    assert session.since == first


def test_the_longest_overdue_session_is_due_first(scenario: Scenario, store: Store) -> None:
    for number in (1, 2, 3):
        scenario.session(number)
    for number, seconds in ((1, 20), (2, 10), (3, 999)):
        recheck = scenario.now + timedelta(seconds=seconds)
        scenario.decides(f"widgets-{number}", recheck_at=recheck)
    later = scenario.clock.passes(60)
    assert store.sessions.due(later) == ["widgets-2", "widgets-1"]
    assert store.sessions.due(later, limit=1) == ["widgets-2"]


def test_actions_are_facts_by_their_state(scenario: Scenario, store: Store, name: str) -> None:
    scenario.decides(name, START, STOP, HELLO)
    facts = store.facts.get(name)
    assert facts.pending == {FIRST, *COVERED, STOP.key, HELLO.key}
    (start,) = store.outbox.due(scenario.now)
    store.outbox.mark_done(start.seq, "started", scenario.now)
    (stop,) = store.outbox.due(scenario.now)
    store.outbox.mark_failed(stop.seq, Reason.ACTION_FAILED, "it will not stop", scenario.now)
    facts = store.facts.get(name)
    done = Done(at=scenario.now, result="started")
    assert facts.done == dict.fromkeys((FIRST, *COVERED), done)
    assert facts.pending == {HELLO.key}
    assert facts.failures == {
        STOP.key: Failure(at=scenario.now, reason=Reason.ACTION_FAILED, detail="it will not stop")
    }


def test_facts_are_read_from_one_state_of_the_database(
    scenario: Scenario, store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision written between the reading of two tables is in both or in none."""

    def decided_meanwhile(connection: sqlite3.Connection) -> dict[str, Frozen]:
        monkeypatch.undo()
        scenario.decides(name, START)
        store.commands.grant("comment:7", name, scenario.now)
        return freezes_by_scope(connection)

    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [scenario.command()])
    monkeypatch.setattr("bot.store.decisions.freezes_by_scope", decided_meanwhile)
    facts = store.facts.get(name)
    assert (facts.run, facts.commands) == (0, ())
    facts = store.facts.get(name)
    assert (facts.run, len(facts.commands)) == (1, 1)


def test_facts_of_an_unknown_session_are_an_error_that_names_it(store: Store) -> None:
    with pytest.raises(StoreFailure, match="nobody-1"):
        store.facts.get("nobody-1")


def test_the_history_is_listed_newest_first(scenario: Scenario, store: Store, name: str) -> None:
    scenario.decides(name)
    now, data = scenario.clock.passes(1), {"head": "cafe"}
    store.db.write(lambda to: add_history(to, name, HistoryKind.OBSERVED, "ada", data, now))
    newest, oldest, _ = store.history.of(name)
    assert (newest.kind, newest.actor, newest.data, newest.at) == (
        HistoryKind.OBSERVED,
        "ada",
        {"head": "cafe"},
        scenario.now,
    )
    assert oldest.kind == "decision"
    assert [row.kind for row in store.history.of(name, limit=1)] == [HistoryKind.OBSERVED]
