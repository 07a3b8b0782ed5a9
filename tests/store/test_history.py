"""The history of a session, and the records of its decisions."""

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
from tests.store.conftest import Scenario

AT = datetime(2030, 1, 1, tzinfo=UTC)
HELLO = Comment(key=keys.ready_to_merge("x"), number=12, topic="hello")


@pytest.fixture
def name(scenario: Scenario) -> str:
    return scenario.session(12)


def last(store: Store, name: str) -> HistoryRow:
    return store.history.of(name)[0]


def last_event(store: Store, name: str) -> tuple[HistoryKind, str, dict[str, object]]:
    row = last(store, name)
    return row.kind, row.actor, dict(row.data)


def test_the_history_begins_with_the_requester(store: Store, name: str) -> None:
    data = {"issue": 12, "title": "It breaks", "agent": "claude"}
    assert last_event(store, name) == (HistoryKind.CREATED, "ada", data)


def test_a_granted_command_is_in_the_history_once_with_its_actor(
    scenario: Scenario, store: Store, name: str
) -> None:
    store.commands.add(scenario.command())
    store.commands.grant("comment:7", name, scenario.now)
    store.commands.grant("comment:7", name, scenario.now)
    data = {"kind": "tell", "text": "mind the gap", "key": "comment:7"}
    assert last_event(store, name) == (HistoryKind.COMMAND, "ada", data)
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
                    comments=(
                        Remark(id="comment:9", author="eve", body="Hi", at=AT),
                        # What the bot writes is in the history as its action.
                        Remark(id="comment:10", author="the-bot", body="Hi", at=AT, own=True),
                    ),
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
def test_an_observation_is_described_line_by_line(
    scenario: Scenario, store: Store, name: str, what: str
) -> None:
    seen, lines = SEEN[what]
    store.observations.record([Observation(session=name, agent=AGENT)], scenario.now)
    store.observations.record([Observation(session=name, **seen)], scenario.now)
    actor = "agent" if {"agent", "work"} & seen.keys() else "github"
    assert last_event(store, name) == (HistoryKind.OBSERVED, actor, {"changes": lines})


def test_an_unchanged_observation_adds_no_history(
    scenario: Scenario, store: Store, name: str
) -> None:
    store.observations.record([Observation(session=name, agent=AGENT)], scenario.now)
    rows = len(store.history.of(name))
    again = Agent(
        run=1,
        activity=Activity.ACTIVE,
        runtime=Probe.ALIVE,
        program=Probe.ALIVE,
        seen=scenario.now,
    )
    store.observations.record([Observation(session=name, agent=again)], scenario.now)
    assert store.facts.get(name).agent.seen == scenario.now
    assert len(store.history.of(name)) == rows


def test_the_result_of_an_action_is_in_the_history(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.decides(name, HELLO)
    (due,) = store.outbox.due(scenario.now)
    store.outbox.mark_failed(due.seq, Reason.ACTION_FAILED, "GitHub data no", scenario.now)
    failed = {"action": str(HELLO.key), "reason": "action_failed", "error": "GitHub data no"}
    assert last_event(store, name) == (HistoryKind.FAILED, "mergewright", failed)
    assert scenario.decides(name, HELLO) == [str(HELLO.key)]
    store.outbox.mark_done(due.seq, "comment 5", scenario.now)
    store.outbox.mark_done(due.seq, "comment 5", scenario.now)
    done = {"action": str(HELLO.key), "result": "comment 5"}
    assert last_event(store, name) == (HistoryKind.DONE, "mergewright", done)
    assert len(store.history.of(name)) == 5


def test_a_withdrawn_action_is_in_the_history(scenario: Scenario, store: Store, name: str) -> None:
    scenario.decides(name, HELLO)
    (due,) = store.outbox.due(scenario.now)
    store.outbox.withdraw(due.seq, scenario.now)
    assert last_event(store, name) == (
        HistoryKind.WITHDRAWN,
        "mergewright",
        {"action": str(HELLO.key)},
    )


def test_a_freeze_and_its_end_are_in_the_history_of_every_session_in_scope(
    store: Store, name: str
) -> None:
    store.freezes.add("project:widgets", "ada")
    assert last_event(store, name) == (HistoryKind.FREEZE, "ada", {"scope": "project:widgets"})
    store.freezes.remove("project:widgets", "bob")
    assert last_event(store, name) == (HistoryKind.UNFREEZE, "bob", {"scope": "project:widgets"})


def test_a_decision_is_recorded_with_its_facts_and_policy(
    scenario: Scenario, store: Store, name: str
) -> None:
    policy = Policy(ci_repairs=7)
    facts = store.facts.get(name)
    made = decide(facts, policy, scenario.now)
    judgement = DecisionRecord(facts=facts, policy=policy, decision=made)
    scenario.decides(name, record=judgement)
    scenario.decides(name, record=judgement)
    scenario.clock.passes(1)
    scenario.decides(name, because="else", record=judgement)
    first, second = store.decisions.replayable(name)
    assert (first.facts, first.policy) == (facts, policy)
    assert decide(first.facts, first.policy, first.row.at) == made
    assert first.decision["status"] == made.status
    assert second.row.at - first.row.at == timedelta(seconds=1)
    assert store.decisions.replayable("nobody") == []


def test_a_policy_is_stored_once(scenario: Scenario, store: Store, name: str) -> None:
    facts = store.facts.get(name)
    for text in ("one", "two"):
        policy = Policy()
        made = DecisionRecord(
            facts=facts, policy=policy, decision=decide(facts, policy, scenario.now)
        )
        scenario.decides(name, because=text, record=made)

    assert store.db.write(lambda db: db.execute("SELECT count(*) FROM policies").fetchone()[0]) == 1
