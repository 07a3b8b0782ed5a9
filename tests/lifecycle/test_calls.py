"""How people are notified: the priority of a notice, the attention label, the summary."""

import pytest
from msgspec.structs import replace

from lifecycle.judge.reasons import ADVICE, Priority
from lifecycle.model import actions as do
from lifecycle.model.facts import Ended, Spending
from lifecycle.model.key import parse
from lifecycle.model.status import Activity, Reason, Status
from lifecycle.react.reactions import CALLING
from tests.lifecycle.asking import decision
from tests.lifecycle.life import Life, until_reviewed
from tests.lifecycle.universe import agent, ago, done, facts, in_key


def labels(life: Life) -> list[tuple[str, bool]]:
    return [(str(a.key), a.on) for _, a in life.out if isinstance(a, do.Label)]


def test_the_attention_label_is_set_while_people_have_to_act() -> None:
    life = Life().agent_works()
    assert labels(life) == []
    life.agent_is(Activity.WAITING_INPUT, question="May I?").reads(Status.NEEDS_INPUT)
    assert labels(life) == [("attention_label:0", True)]
    life.waits(3600).agent_works().waits(60)
    assert labels(life) == [("attention_label:0", True), ("attention_label:1", False)]
    life.agent_is(Activity.WAITING_INPUT, question="And now?")
    assert labels(life)[2:] == [("attention_label:2", True)]
    (label, *_) = [a for _, a in life.out if isinstance(a, do.Label)]
    assert (label.name, label.number) == ("mergewright:needs-input", 12)


def test_the_attention_label_stays_when_one_cause_follows_another() -> None:
    life = until_reviewed().agent_is(Activity.WAITING_INPUT, question="May I?")
    life.agent_is(Activity.BLOCKED, error="529", since=life.now).waits(700).reads(Status.STUCK)
    assert labels(life)[0] == ("attention_label:0", True)
    assert len(labels(life)) % 2 == 1


def test_a_session_that_ends_or_pauses_loses_the_attention_label() -> None:
    for kind in ("stop", "pause"):
        life = Life().agent_works().agent_is(Activity.WAITING_INPUT, question="May I?")
        life.person_commands(kind)
        assert labels(life) == [("attention_label:0", True), ("attention_label:1", False)]


def test_the_attention_label_is_set_exactly_in_needs_input_and_stuck() -> None:
    assert {Status.NEEDS_INPUT, Status.STUCK} == CALLING


def test_reasons_have_the_documented_priority() -> None:
    by: dict[Priority, set[str]] = {priority: set() for priority in Priority}
    for reason, advice in ADVICE.items():
        by[advice.priority].add(reason)
    assert by[Priority.URGENT] == {
        *(Reason.PROBE_FAILURE, Reason.AGENT_BLOCKED, Reason.NO_PROGRESS)
    }
    assert {Reason.AGENT_QUESTION, Reason.REPAIRS_EXHAUSTED, Reason.BUDGET_EXHAUSTED} <= by[
        Priority.ACTION
    ]
    assert {Reason.PROVIDER_EXIT, Reason.SPAWN_FAILED, Reason.TIMEOUT} <= by[Priority.WARNING]
    assert {Reason.USAGE_LIMIT, Reason.PAUSED_BY_PERSON, Reason.MANUALLY_KILLED} <= by[
        Priority.INFO
    ]


@pytest.mark.parametrize(
    ("given", "topic", "priority"),
    [
        (facts(agent=agent(Activity.WAITING_INPUT)), "attention", "action"),
        (facts(agent=agent(Activity.BLOCKED, 700)), "attention", "urgent"),
        (facts(agent=agent(Activity.ACTIVE), spent=Spending(cost_usd=9)), "paused", "action"),
        (facts(failures={}, issue=facts().issue, done=done("push:x")), "", ""),
    ],
)
def test_a_notice_states_its_priority(given: object, topic: str, priority: str) -> None:
    notices = [
        (a.topic, a.values["priority"])
        for a in decision(given).actions  # type: ignore[arg-type]
        if isinstance(a, do.Comment) and "priority" in a.values
    ]
    assert notices == ([(topic, priority)] if topic else [])


def test_the_last_session_of_a_project_posts_the_outcomes_of_all_once() -> None:
    over = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="x", at=ago(60))
    given = facts(ended=over, done=done("stop#1"), finished={"merged": 2, "killed": 1})
    (summary,) = [a for a in decision(given).actions if "summary" in str(a.key)]
    assert summary == do.Comment(
        key=parse(f"summary:{in_key(ago(60))}"),
        number=12,
        topic="summary",
        values={"project": "widgets", "counts": "1 killed, 2 merged"},
    )
    for other in ({}, {"merged": 1}):
        actions = decision(replace(given, finished=other)).actions
        assert not [a for a in actions if "summary" in str(a.key)]
