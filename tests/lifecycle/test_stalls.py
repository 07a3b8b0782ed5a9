"""When a session is stuck: the agent is silent, blocked or cannot be observed."""

import pytest

from lifecycle.judge.judge import read
from lifecycle.judge.signals import Attention
from lifecycle.judge.stalls import Finding
from lifecycle.model.facts import Agent, Facts, ProbeFailure, Work
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe, Reason
from lifecycle.read.session_view import SessionView
from tests.lifecycle.universe import BASE, HEAD, NOW, agent, ago, done, facts, in_key, published


def attention(session: Facts) -> tuple[Attention, Finding]:
    signals, evidence, _ = read(SessionView(session, Policy(), NOW))
    return signals.attention, evidence


UNSEEN = ProbeFailure(since=ago(300), evidence="?", rounds=3)
STALLS: dict[str, tuple[Agent, str, Reason]] = {
    "blocked for ten minutes": (
        agent(Activity.BLOCKED, 600, error="529"),
        f"stuck:agent_blocked:{in_key(ago(600))}#1",
        Reason.AGENT_BLOCKED,
    ),
    "blocked still, ten minutes after its limit was to end": (
        agent(Activity.BLOCKED, 9000, error="429", limit_until=ago(600)),
        f"stuck:agent_blocked:{in_key(ago(9000))}#1",
        Reason.AGENT_BLOCKED,
    ),
    "blocked by a key that is not accepted": (
        agent(Activity.BLOCKED, 600, error="401", unauthorised=True),
        f"stuck:auth_failed:{in_key(ago(600))}#1",
        Reason.AUTH_FAILED,
    ),
    "blocked, at an unknown time": (
        agent(Activity.BLOCKED, since=None, seen=ago(600)),
        "stuck:agent_blocked:#1",
        Reason.AGENT_BLOCKED,
    ),
    "at work, and not seen for ten minutes": (
        agent(Activity.ACTIVE, 900, seen=ago(600)),
        f"stuck:no_progress:{in_key(ago(900))}#1",
        Reason.NO_PROGRESS,
    ),
    "alive without a sign since its start": (
        agent(Activity.NONE, since=None, seen=None),
        "stuck:no_progress:#1",
        Reason.NO_PROGRESS,
    ),
    "not observed for five minutes": (
        agent(program=Probe.UNKNOWN, probe_failure=UNSEEN),
        f"stuck:probe_failure:{in_key(ago(300))}",
        Reason.PROBE_FAILURE,
    ),
    "blocked, and not observed": (
        agent(Activity.BLOCKED, 600, error="529", program=Probe.UNKNOWN, probe_failure=UNSEEN),
        f"stuck:agent_blocked:{in_key(ago(600))}#1",
        Reason.AGENT_BLOCKED,
    ),
    "silent, and not observed": (
        agent(Activity.ACTIVE, 900, program=Probe.UNKNOWN, probe_failure=UNSEEN),
        f"stuck:probe_failure:{in_key(ago(300))}",
        Reason.PROBE_FAILURE,
    ),
    "not observed, at an unknown time": (
        agent(Activity.ACTIVE, 300, program=Probe.UNKNOWN),
        f"stuck:probe_failure:{in_key(ago(300))}",
        Reason.PROBE_FAILURE,
    ),
}


SAYS = {
    Reason.NO_PROGRESS: "the agent shows no progress",
    Reason.PROBE_FAILURE: "the agent's state could not be determined",
}


@pytest.mark.parametrize(("who", "key", "reason"), STALLS.values(), ids=STALLS.keys())
def test_these_agents_are_stuck(who: Agent, key: str, reason: Reason) -> None:
    found, evidence = attention(facts(agent=who))
    assert found is Attention.STUCK
    assert (str(evidence.key), evidence.reason) == (key, reason)
    silent = "the agent is blocked and reports no error message"
    blocked = f"the agent is blocked: {who.error}" if who.error else silent
    assert evidence.because == SAYS.get(reason, blocked)


FINE: dict[str, Facts] = {
    "blocked for a moment": facts(agent=agent(Activity.BLOCKED, 599)),
    "blocked for long, by a limit that has just ended": facts(
        agent=agent(Activity.BLOCKED, 9000, limit_until=ago(599))
    ),
    "at work, seen ten minutes ago, almost": facts(
        agent=agent(Activity.ACTIVE, 900, seen=ago(599))
    ),
    "at work, seen long ago, with a message since": facts(
        agent=agent(Activity.ACTIVE, 900), done=done("address_review:abc#1", seconds_ago=500)
    ),
    "started, without a sign for a moment": facts(
        agent=agent(Activity.NONE, since=None, seen=None),
        done=done("start:first#1", seconds_ago=599),
    ),
    "not observed for a moment after a long rest": published(
        agent=agent(
            seconds_ago=9000,
            program=Probe.UNKNOWN,
            probe_failure=ProbeFailure(since=ago(299), evidence="?", rounds=3),
        )
    ),
    "not observed for a moment, at an unknown time": published(
        agent=agent(seconds_ago=299, program=Probe.UNKNOWN)
    ),
}


@pytest.mark.parametrize("session", FINE.values(), ids=FINE.keys())
def test_these_agents_are_not_stuck(session: Facts) -> None:
    word, evidence = attention(session)
    assert word is Attention.NONE
    assert (evidence.because, evidence.key) == ("", None)


def test_an_agent_whose_workspace_cannot_be_read_may_have_something_to_show() -> None:
    for unreadable, found in {"": Attention.ESCALATED, "git status failed": Attention.NONE}.items():
        work = Work(base=BASE, head=BASE, unreadable=unreadable)
        assert attention(facts(work=work, agent=agent(seconds_ago=300)))[0] is found


@pytest.mark.parametrize(
    ("who", "escalates"),
    [
        (agent(seconds_ago=600), True),
        (agent(seconds_ago=599), False),
        (agent(Activity.ACTIVE, 600, calling=True), False),
    ],
)
def test_a_workspace_that_cannot_be_read_while_its_agent_rests_needs_a_person(
    who: Agent, *, escalates: bool
) -> None:
    work = Work(base=BASE, head=HEAD, unreadable="git status failed")
    signals, found, recheck_at = read(SessionView(published(work=work, agent=who), Policy(), NOW))
    assert (signals.attention is Attention.ESCALATED) == escalates
    if escalates:
        key = f"stuck:workspace_unreadable:{in_key(ago(600))}#1"
        assert (str(found.key), found.reason) == (key, Reason.WORKSPACE_UNREADABLE)
        assert found.because == "the workspace cannot be read: git status failed"
    elif who.activity is Activity.READY:
        assert recheck_at == ago(-1)
