"""What happened to a session is written down by kind and actor, and with what it was decided by."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.store import DecisionRecord, HistoryKind, HistoryRow, Observation, Store
from lifecycle.decide import decide
from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Agent, Exit, Issue, Pull, Remark, Verdict, Work
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Mover, Probe, PullState, Reason
from tests.store.conftest import Room

AT = datetime(2030, 1, 1, tzinfo=UTC)
HELLO = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello")


@pytest.fixture
def name(room: Room) -> str:
    return room.session(12)


def last(store: Store, name: str) -> HistoryRow:
    return store.history.of(name)[0]


def told(store: Store, name: str) -> tuple[HistoryKind, str, dict[str, object]]:
    row = last(store, name)
    return row.kind, row.actor, dict(row.data)


def test_a_session_begins_with_who_asked_for_it(store: Store, name: str) -> None:
    data = {"issue": 12, "title": "It breaks", "agent": "claude"}
    assert told(store, name) == (HistoryKind.CREATED, "ada", data)


def test_a_command_that_was_granted_is_told_once_with_who_commanded(
    room: Room, store: Store, name: str
) -> None:
    store.commands.add(room.command())
    store.commands.grant("comment:7", name, room.now)
    store.commands.grant("comment:7", name, room.now)
    said = {"kind": "tell", "text": "mind the gap", "key": "comment:7"}
    assert told(store, name) == (HistoryKind.COMMAND, "ada", said)
    assert len(store.history.of(name)) == 2


AGENT = Agent(run=1, activity=Activity.ACTIVE, runtime=Probe.ALIVE, program=Probe.ALIVE)
SEEN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "its activity": (
        {"agent": Agent(run=1, activity=Activity.WAITING_INPUT, question="May I?")},
        ["agent waiting input: May I?", "runtime/program alive/alive -> unknown/unknown"],
    ),
    "its end": (
        {
            "agent": Agent(
                run=1,
                activity=Activity.EXITED,
                evidence="pid 7 is gone",
                runtime=Probe.ALIVE,
                program=Probe.ALIVE,
                exit=Exit(at=AT, code=3),
            )
        },
        ["agent exited: pid 7 is gone", "program exited with 3"],
    ),
    "its work": (
        {"work": Work(head="c" * 40, dirty=True)},
        ["workspace at ccccccc", "workspace has uncommitted changes"],
    ),
    "the issue": (
        {
            "issue": Issue(
                number=12,
                title="It breaks",
                open=False,
                state_reason="not_planned",
                labelled=False,
            )
        },
        ["issue closed: not_planned", "label removed"],
    ),
    "a pull request": (
        {
            "pulls": (
                Pull(
                    number=34,
                    state=PullState.MERGED,
                    head="d" * 40,
                    head_by=Mover.PERSON,
                    verdicts=(Verdict(author="rob", approved=True, sha="d" * 40),),
                    comments=(Remark(id="comment:9", author="eve", body="Hi", at=AT),),
                ),
            )
        },
        [
            "#34 is merged",
            "#34 at ddddddd, pushed by person",
            "#34 @rob approved ddddddd",
            "#34 @eve commented",
        ],
    ),
}


@pytest.mark.parametrize("what", SEEN)
def test_what_was_observed_is_told_in_lines(room: Room, store: Store, name: str, what: str) -> None:
    seen, lines = SEEN[what]
    store.observations.record([Observation(session=name, agent=AGENT)], room.now)
    store.observations.record([Observation(session=name, **seen)], room.now)
    actor = "agent" if {"agent", "work"} & seen.keys() else "github"
    assert told(store, name) == (HistoryKind.OBSERVED, actor, {"changes": lines})


def test_being_seen_once_more_is_no_history(room: Room, store: Store, name: str) -> None:
    store.observations.record([Observation(session=name, agent=AGENT)], room.now)
    rows = len(store.history.of(name))
    again = Agent(
        run=1,
        activity=Activity.ACTIVE,
        runtime=Probe.ALIVE,
        program=Probe.ALIVE,
        seen=room.now,
    )
    store.observations.record([Observation(session=name, agent=again)], room.now)
    assert store.facts.get(name).agent.seen == room.now
    assert len(store.history.of(name)) == rows


def test_what_became_of_an_action_is_told(room: Room, store: Store, name: str) -> None:
    room.decides(name, HELLO)
    (due,) = store.outbox.due(room.now)
    store.outbox.mark_failed(due.seq, Reason.ACTION_FAILED, "GitHub said no", room.now)
    failed = {"action": str(HELLO.key), "reason": "action_failed", "error": "GitHub said no"}
    assert told(store, name) == (HistoryKind.FAILED, "mergewright", failed)
    assert room.decides(name, HELLO) == [str(HELLO.key)]
    store.outbox.mark_done(due.seq, "comment 5", room.now)
    store.outbox.mark_done(due.seq, "comment 5", room.now)
    done = {"action": str(HELLO.key), "result": "comment 5"}
    assert told(store, name) == (HistoryKind.DONE, "mergewright", done)
    assert len(store.history.of(name)) == 5


def test_an_action_that_was_taken_back_is_told(room: Room, store: Store, name: str) -> None:
    room.decides(name, HELLO)
    (due,) = store.outbox.due(room.now)
    store.outbox.withdraw(due.seq, room.now)
    assert told(store, name) == (HistoryKind.WITHDRAWN, "mergewright", {"action": str(HELLO.key)})


def test_a_freeze_and_its_end_are_told_to_every_session_they_hold(store: Store, name: str) -> None:
    store.freezes.add("project:widgets", "ada")
    assert told(store, name) == (HistoryKind.FREEZE, "ada", {"scope": "project:widgets"})
    store.freezes.remove("project:widgets", "bob")
    assert told(store, name) == (HistoryKind.UNFREEZE, "bob", {"scope": "project:widgets"})


def test_a_decision_is_kept_with_all_that_it_was_made_from(
    room: Room, store: Store, name: str
) -> None:
    policy = Policy(ci_repairs=7)
    facts = store.facts.get(name)
    made = decide(facts, policy, room.now)
    judgement = DecisionRecord(facts=facts, policy=policy, decision=made)
    room.decides(name, record=judgement)
    room.decides(name, record=judgement)
    room.clock.passes(1)
    room.decides(name, because="else", record=judgement)
    first, second = store.decisions.replayable(name)
    assert (first.facts, first.policy) == (facts, policy)
    assert decide(first.facts, first.policy, first.row.at) == made
    assert first.decision["status"] == made.status
    assert second.row.at - first.row.at == timedelta(seconds=1)
    assert store.decisions.replayable("nobody") == []


def test_one_policy_is_kept_once(room: Room, store: Store, name: str) -> None:
    facts = store.facts.get(name)
    for text in ("one", "two"):
        policy = Policy()
        made = DecisionRecord(facts=facts, policy=policy, decision=decide(facts, policy, room.now))
        room.decides(name, because=text, record=made)

    assert store.db.write(lambda db: db.execute("SELECT count(*) FROM policies").fetchone()[0]) == 1
