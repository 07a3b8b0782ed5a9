"""Notices' priorities, the attention label, and the summary of a project's ended sessions."""

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Ended, Facts, Failure, Spending
from lifecycle.model.key import parse
from lifecycle.model.status import Activity, Reason, Status
from tests.lifecycle.decisions import decision
from tests.lifecycle.life import Life, until_reviewed
from tests.lifecycle.universe import agent, ago, command, done, facts, in_key

START_FAILURE = Failure(at=ago(5), reason=Reason.SPAWN_FAILED, detail="tmux is missing")


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


def questions(life: Life) -> int:
    """How often people were notified."""
    return len([a for _, a in life.out if isinstance(a, do.Comment) and a.topic == "attention"])


def asks_often(life: Life, times: int) -> None:
    """Ask a new question every ten seconds, and withdraw each."""
    for number in range(times):
        life.agent_is(Activity.WAITING_INPUT, question=f"Question {number}?", since=life.now)
        life.waits(5).agent_works().waits(5)


def test_of_endless_questions_people_get_ten_an_hour_until_they_answer() -> None:
    life = Life().agent_works()
    asks_often(life, 100)
    assert questions(life) == 10
    assert len(labels(life)) == 60, "which GitHub counts too"
    life.agent_is(Activity.WAITING_INPUT, question="Still?", since=life.now)
    life.reads(Status.NEEDS_INPUT).waits(3600)
    assert questions(life) == 11, "the question that is still open"
    asks_often(life, 20)
    assert questions(life) == 20
    life.agent_is(Activity.WAITING_INPUT, question="And now?", since=life.now)
    life.person_commands("answer", text="Yes.").agent_works()
    asks_often(life, 3)
    assert questions(life) == 23


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


@pytest.mark.parametrize(
    ("session", "topic", "priority"),
    [
        (facts(agent=agent(Activity.WAITING_INPUT)), "attention", "action"),
        (facts(agent=agent(Activity.BLOCKED, 700)), "attention", "urgent"),
        (facts(agent=agent(Activity.ACTIVE), spent=Spending(cost_usd=9)), "paused", "action"),
        (facts(commands=(command("stop"),)), "ended", "info"),
        (
            facts(failures={"start:first#1": START_FAILURE}),
            "ended",
            "warning",
        ),
    ],
)
def test_a_notice_states_its_priority(session: Facts, topic: str, priority: str) -> None:
    notices = [
        (a.topic, a.values["priority"])
        for a in decision(session).actions
        if isinstance(a, do.Comment) and "priority" in a.values
    ]
    assert notices == [(topic, priority)]


def test_the_last_session_of_a_project_posts_the_outcomes_of_all_once() -> None:
    over = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="x", at=ago(60))
    session = facts(ended=over, done=done("stop#1"), finished={"merged": 2, "killed": 1})
    (summary,) = [a for a in decision(session).actions if "summary" in str(a.key)]
    assert summary == do.Comment(
        key=parse(f"summary:{in_key(ago(60))}"),
        number=12,
        topic="summary",
        values={"project": "widgets", "counts": "1 killed, 2 merged"},
    )
    for other in ({}, {"merged": 1}):
        actions = decision(replace(session, finished=other)).actions
        assert not [a for a in actions if "summary" in str(a.key)]
