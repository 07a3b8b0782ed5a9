"""Chats: a person gives the agent its work, and says when it becomes a pull request."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifecycle.judge.reasons import needs_person
from lifecycle.model import actions as do
from lifecycle.model.facts import Issue
from lifecycle.model.key import KeyKind, parse
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.policy import Mode, NothingToShow
from lifecycle.model.status import Activity, Origin, Probe, Reason, Status
from tests.lifecycle.decisions import decision
from tests.lifecycle.life import Life
from tests.lifecycle.test_any_life import AGENT
from tests.lifecycle.universe import agent, command, done, facts

_HOUR = 3600.0


def chat(**fields: Any) -> Life:
    """A chat whose program has just started."""
    return Life(issue=0, origin=Origin.CHAT, **fields)


def starts(life: Life) -> list[do.Start]:
    return [action for _, action in life.out if isinstance(action, do.Start)]


def asked_for_pull(**policy: Any) -> Life:
    """A chat in which the agent commits and a person then asks for a pull request."""
    life = chat(**policy).agent_commits().agent_rests()
    return life.person_commands(MAKES_PULL)


@pytest.mark.parametrize(("body", "prompt"), [("", ""), ("Look at the parser.", "chat")])
def test_it_starts_with_the_first_message_or_none(body: str, prompt: str) -> None:
    life = chat(body=body).reads(Status.WORKING)
    assert life.received() == [prompt]
    assert life.decision.reason is Reason.IN_CHAT
    assert life.decision.because == "the agent waits for a message in this chat"


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([*AGENT, "an hour passes"]), max_size=14),
    st.sampled_from([Mode.PROPOSE, Mode.MERGE]),
    st.sampled_from(NothingToShow),
)
def test_nothing_is_pushed_posted_or_sent_to_the_agent_of_a_chat(
    steps: list[str], mode: Mode, empty: NothingToShow
) -> None:
    life = chat(mode=mode, nothing_to_show=empty, self_review=True, restarts=99, stuck_seconds=9e6)
    for step in steps:
        if step == "an hour passes":
            life.waits(_HOUR)
        elif life.decision.holds_slot:
            AGENT[step](life)
    assert life.received() == [""]
    assert {parse(key).kind for key in life.sent()} <= {KeyKind.START, KeyKind.PARK}
    assert not life.over


def test_an_agent_at_rest_is_neither_idle_for_too_long_nor_finished() -> None:
    life = chat(chat_idle_seconds=0.0, wait_seconds=60.0, nothing_to_show=NothingToShow.DONE)
    life.waits(_HOUR).reads(Status.WORKING)
    life.agent_rests().waits(48 * _HOUR).reads(Status.WORKING)
    assert life.received() == [""]
    life.agent_rests(dirty=True).waits(_HOUR).reads(Status.WORKING)
    assert life.received() == [""]


def test_a_question_is_shown_and_nobody_is_notified() -> None:
    life = chat(park_seconds=60.0).agent_works().agent_asks("Run make?").waits(600)
    life.reads(Status.NEEDS_INPUT)
    assert life.decision.because == "the agent asks: Run make?"
    assert life.decision.cause is None
    assert life.comments() == []
    life.person_commands("answer", "yes")
    assert life.received() == ["", "answer"]


def test_a_message_that_did_not_arrive_is_reported() -> None:
    life = chat().agent_rests()
    life.failing.add("forward:")
    life.person_commands("tell", "Look at the parser.").reads(Status.NEEDS_INPUT)
    assert life.decision.cause is not None


@pytest.mark.parametrize("activity", [Activity.NONE, Activity.READY, Activity.WAITING_INPUT])
def test_it_pauses_when_nobody_writes(activity: Activity) -> None:
    life = chat().agent_is(activity)
    life.waits(_HOUR - 120)
    assert life.decision.status is not Status.PAUSED
    life.waits(240).reads(Status.PAUSED)
    assert life.decision.reason is Reason.CHAT_PAUSED
    assert life.decision.because.startswith("nobody has written")
    assert not needs_person(life.decision.status, life.decision.reason)
    assert life.sent("park") == ["park:rest#1"]
    assert not life.facts.slot
    life.waits(100 * _HOUR).reads(Status.PAUSED)
    assert len(starts(life)) == 1


def test_it_pauses_while_the_agent_is_blocked_and_not_while_it_works() -> None:
    life = chat(stuck_seconds=9e6).agent_is(Activity.BLOCKED, error="529").waits(2 * _HOUR)
    life.reads(Status.PAUSED)
    assert life.sent("park") == ["park:rest#1"]
    life = chat().agent_is(Activity.ACTIVE, calling=True).waits(2 * _HOUR)
    assert life.decision.status is Status.WORKING
    life = chat().agent_is(Activity.READY, program=Probe.UNKNOWN).waits(2 * _HOUR)
    assert life.sent("park") == []


@pytest.mark.parametrize("asks", [False, True])
def test_a_paused_chat_resumes_the_conversation_without_a_message(asks: bool) -> None:
    life = chat(body="Look.")
    (life.agent_asks() if asks else life.agent_rests()).waits(2 * _HOUR).reads(Status.PAUSED)
    life.person_commands("resume").reads(Status.WORKING)
    assert [(one.prompt.name, one.resume) for one in starts(life)] == [("chat", ""), ("", "talk")]
    life.waits(2 * _HOUR).reads(Status.PAUSED)


def test_a_message_resumes_a_paused_chat() -> None:
    life = chat().agent_rests().waits(2 * _HOUR).person_commands("tell", "And now?")
    life.reads(Status.WORKING)
    assert life.received() == ["", "chat_message"]
    assert starts(life)[-1].resume == "talk"


@pytest.mark.parametrize("code", [0, 1, None])
def test_it_pauses_when_its_program_ends(code: int | None) -> None:
    life = chat(restarts=0).agent_works() if code == 0 else chat().agent_works()
    life.agent_exits(code).waits(600).reads(Status.PAUSED)
    assert life.decision.reason is Reason.CHAT_PAUSED
    assert len(starts(life)) == 1
    assert life.sent("park") == ["park:rest#1"]
    life.person_commands("resume").reads(Status.WORKING)
    assert [one.prompt.name for one in starts(life)] == ["", ""]


def test_a_pause_during_a_turn_ends_with_resume() -> None:
    life = chat().agent_works().person_commands("pause").reads(Status.PAUSED)
    assert life.decision.reason is Reason.PAUSED_BY_PERSON
    life.person_commands("resume").reads(Status.WORKING)
    assert life.received() == ["", ""]


def test_it_becomes_a_pull_request_that_is_merged() -> None:
    life = asked_for_pull(mode=Mode.MERGE)
    assert life.received() == ["", "pull_request"]
    assert life.sent("push") == []
    life.agent_commits().agent_rests().ci_passes().reads(Status.REVIEW_PENDING)
    assert life.sent("push") == [f"push:{life.facts.work.head}"]
    life.reviewer_approves().reads(Status.MERGED)


def test_it_is_a_chat_until_the_agent_was_asked() -> None:
    life = chat().agent_commits().agent_asks()
    life.person_commands(MAKES_PULL).waits(60).reads(Status.NEEDS_INPUT)
    assert life.sent("push") == []
    assert life.decision.cause is None
    life.agent_rests().agent_works().agent_rests()
    assert life.received() == ["", "pull_request"]
    assert life.sent("push")


def test_the_work_is_pushed_if_the_agent_cannot_be_asked() -> None:
    life = chat().agent_commits().agent_rests()
    life.failing.add("forward:")
    life.person_commands(MAKES_PULL).reads(Status.NEEDS_INPUT)
    assert life.sent("push")


def test_a_paused_chat_becomes_a_pull_request_in_a_new_run() -> None:
    life = chat().agent_commits().agent_rests().waits(2 * _HOUR).reads(Status.PAUSED)
    life.person_commands(MAKES_PULL)
    assert [(one.prompt.name, one.resume) for one in starts(life)][1:] == [("pull_request", "talk")]
    life.agent_works().agent_rests().waits(60)
    assert life.facts.pulls


def test_from_then_on_it_is_an_ordinary_session() -> None:
    life = asked_for_pull().agent_works().agent_rests(dirty=True)
    assert life.received() == ["", "pull_request", "uncommitted"]
    life.agent_exits(1).waits(60)
    assert life.received()[-1] == "resume"


@pytest.mark.parametrize("made", [False, True])
def test_a_restored_chat_stays_what_it_was(made: bool) -> None:
    life = asked_for_pull() if made else chat().agent_commits().agent_rests()
    life.person_commands("stop").waits(60).person_commands("start").waits(1)
    life.reads(Status.WORKING)
    assert starts(life)[-1].resume == "talk"
    assert starts(life)[-1].prompt.name == ("resume" if made else "")
    life.agent_works().agent_rests().waits(60)
    assert bool(life.facts.pulls) is made


def test_only_a_chat_is_made_a_pull_request_and_only_once() -> None:
    (refused,) = Life().agent_works().person_commands(MAKES_PULL).answers()
    assert refused.startswith("This session is not a chat")
    made, again = asked_for_pull().person_commands(MAKES_PULL).answers()
    assert made == (
        "When its turn ends, the agent is asked to commit its work; then the commits are pushed "
        "and the pull request is opened."
    )
    assert again == "The pull request of this chat was already requested."
    stopped = chat().agent_commits().agent_rests().person_commands("stop").waits(60)
    assert stopped.person_commands(MAKES_PULL).answers()[-1].startswith("The session has ended: ")


def test_a_new_program_shows_nothing_until_somebody_writes() -> None:
    life = chat(chat_idle_seconds=0.0).waits(2 * _HOUR).reads(Status.WORKING)
    assert life.decision.recheck_at is None or life.decision.recheck_at > life.now
    life = chat().agent_works().waits(_HOUR / 2)
    life.agent_is(Activity.ACTIVE, seen=life.now, since=life.now).waits(_HOUR)
    assert life.decision.status is Status.STUCK


@pytest.mark.parametrize("kind", ["resume", "tell", MAKES_PULL])
def test_a_command_that_comes_while_the_program_is_being_stopped_counts(kind: str) -> None:
    gone = agent(
        Activity.EXITED,
        7200,
        runtime=Probe.DEAD,
        program=Probe.DEAD,
        stopped=True,
        native_id="talk",
    )
    session = facts(
        origin=Origin.CHAT,
        issue=Issue(number=0, title="Chat"),
        agent=gone,
        commands=(command(kind, text="Hello"),),
        done={**done("start:first#1", seconds_ago=7200), **done("park:rest#1", seconds_ago=10)},
    )
    found = decision(session)
    assert found.status is Status.WORKING
    assert [type(action) for action in found.actions if isinstance(action, do.Start)] == [do.Start]
    late = replace(session, commands=())
    assert decision(late).status is Status.PAUSED
