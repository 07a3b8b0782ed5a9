"""How facts reduce to signals."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.judge.judge import read
from lifecycle.judge.signals import Hold, Output, Signals, Stage
from lifecycle.model.facts import Agent, Ended, Exit, Facts, Failure, Issue, Work
from lifecycle.model.policy import NothingToShow, Policy
from lifecycle.model.status import Activity, CheckState, Probe, PullState, Reason, Status
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView
from tests.lifecycle.universe import (
    BASE,
    HEAD,
    NEXT,
    NOW,
    agent,
    ago,
    command,
    done,
    ended,
    facts,
    published,
    pull,
)

C = CheckState
FAILURE = Failure(at=ago(60), reason=Reason.ACTION_FAILED, detail="no space left")


def signals(session: Facts, **policy: Any) -> Signals:
    return read(SessionView(session, Policy(**policy), NOW))[0]


def over(status: Status) -> Ended:
    return Ended(status=status, reason=Reason.PR_CLOSED, because="it was so", at=ago(60))


def both_pulls(first: PullState, second: PullState) -> Facts:
    return published(pulls=(pull(state=first), replace(pull(state=second), number=35)))


def crashed(times: int, code: int | None = 1, **fields: Any) -> Facts:
    """The last run ended with this code, after `times` restarts because of crashes."""
    starts = [f"start:crash#{run}" for run in range(2, times + 2)]
    who = replace(ended(code), run=times + 1)
    return facts(run=times + 1, agent=who, done=done(*starts, seconds_ago=200), **fields)


def stopped(**fields: Any) -> Agent:
    """The program of run 1, ended by us."""
    dead: dict[str, Any] = {"runtime": Probe.DEAD, "program": Probe.DEAD, "stopped": True}
    return agent(Activity.EXITED, **dead, **fields)


def lost_too_often() -> Facts:
    """The last run was lost with its machine, after all ten restarts that the policy allows."""
    starts = [f"start:lost#{run}" for run in range(2, 12)]
    record = Exit(at=ago(60), lost="the machine was restarted")
    who = replace(ended(None), run=11, exit=record)
    return facts(run=11, agent=who, done=done(*starts, seconds_ago=200))


UNLABELLED = Issue(number=12, title="x", labelled=False)
COMPLETED = Issue(number=12, title="x", open=False, state_reason="completed")
STAGES: dict[str, tuple[Facts, Stage]] = {
    "no slot": (facts(run=0, slot=False, agent=Agent()), Stage.QUEUED),
    "a slot and no run": (facts(run=0, agent=Agent()), Stage.SPAWNING),
    "a run that was ordered and not started": (facts(run=2), Stage.SPAWNING),
    "a run that was started by a message": (
        facts(run=2, done=done("start:message#2")),
        Stage.RUNNING,
    ),
    "a run that was started after a crash": (
        facts(run=2, done=done("start:crash#2")),
        Stage.RUNNING,
    ),
    "the eleventh run is not the first": (facts(run=11, done=done("start:x#111")), Stage.SPAWNING),
    "a merged pull request": (both_pulls(PullState.CLOSED, PullState.MERGED), Stage.MERGED),
    "a closed one after a merged one": (
        both_pulls(PullState.MERGED, PullState.CLOSED),
        Stage.MERGED,
    ),
    "a merged one and an open one": (both_pulls(PullState.OPEN, PullState.MERGED), Stage.RUNNING),
    "a closed one and an open one": (both_pulls(PullState.OPEN, PullState.CLOSED), Stage.RUNNING),
    "all closed": (both_pulls(PullState.CLOSED, PullState.CLOSED), Stage.TERMINATED),
    "a merge after it was stopped": (
        published(pulls=(pull(state=PullState.MERGED),), ended=over(Status.KILLED)),
        Stage.MERGED,
    ),
    "remembered as killed": (facts(ended=over(Status.KILLED)), Stage.KILLED),
    "remembered as merged": (facts(ended=over(Status.MERGED)), Stage.MERGED),
    "remembered as terminated": (facts(ended=over(Status.TERMINATED)), Stage.TERMINATED),
    "remembered as errored": (facts(ended=over(Status.ERRORED)), Stage.ERRORED),
    "remembered as done": (facts(ended=over(Status.DONE)), Stage.DONE),
    "remembered, and stopped afterwards": (
        facts(ended=over(Status.DONE), commands=(command("stop"),)),
        Stage.DONE,
    ),
    "a person's stop": (facts(commands=(command("help"), command("stop"))), Stage.KILLED),
    "a stop comes before a close": (
        published(pulls=(pull(state=PullState.CLOSED),), commands=(command("stop"),)),
        Stage.KILLED,
    ),
    "a run lost too often comes before a close": (
        replace(lost_too_often(), pulls=(pull(state=PullState.CLOSED),)),
        Stage.KILLED,
    ),
    "a label removed comes before a start given up": (
        facts(failures={"start:first#1": FAILURE}, issue=UNLABELLED),
        Stage.TERMINATED,
    ),
    "a label removed comes before an issue completed": (
        facts(issue=replace(COMPLETED, labelled=False)),
        Stage.TERMINATED,
    ),
    "a start given up comes before an issue completed": (
        facts(failures={"start:first#1": FAILURE}, issue=COMPLETED),
        Stage.ERRORED,
    ),
    "the last restart comes before an issue completed": (
        crashed(3, issue=COMPLETED),
        Stage.ERRORED,
    ),
    "the issue completed": (
        facts(issue=Issue(number=12, title="x", open=False, state_reason="completed")),
        Stage.DONE,
    ),
    "the issue not planned": (
        facts(issue=Issue(number=12, title="x", open=False, state_reason="not_planned")),
        Stage.TERMINATED,
    ),
    "the issue closed for no reason": (
        facts(issue=Issue(number=12, title="x", open=False)),
        Stage.TERMINATED,
    ),
    "the label removed": (
        facts(issue=Issue(number=12, title="x", labelled=False)),
        Stage.TERMINATED,
    ),
    "queued, and the label removed": (
        facts(run=0, slot=False, issue=Issue(number=12, title="x", labelled=False)),
        Stage.TERMINATED,
    ),
    "a start given up": (facts(failures={"start:first#1": FAILURE}), Stage.ERRORED),
    "another action given up": (facts(failures={"notice:x": FAILURE}), Stage.RUNNING),
    "a start that takes too long": (facts(run=2, start_due=ago(600)), Stage.ERRORED),
    "a start that has time": (facts(run=2, start_due=ago(599)), Stage.SPAWNING),
    "a start that is tried again later": (facts(run=2, start_due=ago(-60)), Stage.SPAWNING),
    "paused": (facts(commands=(command("pause"),)), Stage.PAUSED),
    "a run without a slot whose program was ended": (
        facts(slot=False, agent=stopped(), done=done("park:rest#1")),
        Stage.RUNNING,
    ),
    "two restarts": (crashed(2), Stage.RUNNING),
    "three restarts": (crashed(3), Stage.ERRORED),
    "three restarts, and at work again": (
        facts(
            run=4,
            agent=replace(agent(Activity.ACTIVE, 5), run=4),
            done=done("start:crash#2", "start:crash#3", "start:crash#4"),
        ),
        Stage.RUNNING,
    ),
}


@pytest.mark.parametrize(("session", "expected"), STAGES.values(), ids=STAGES.keys())
def test_these_facts_are_in_this_stage(session: Facts, expected: Stage) -> None:
    assert signals(session).stage is expected


BECAUSE: dict[str, tuple[Facts, Reason, str]] = {
    "merged": (
        published(pulls=(pull(state=PullState.MERGED),)),
        Reason.PR_MERGED,
        "pull request #34 was merged",
    ),
    "the merged one of two": (
        both_pulls(PullState.MERGED, PullState.CLOSED),
        Reason.PR_MERGED,
        "pull request #34 was merged",
    ),
    "remembered": (facts(ended=over(Status.DONE)), Reason.PR_CLOSED, "it was so"),
    "stopped": (facts(commands=(command("stop"),)), Reason.MANUALLY_KILLED, "stopped by @alice"),
    "closed": (
        published(pulls=(pull(state=PullState.CLOSED),)),
        Reason.PR_CLOSED,
        "the pull request was closed without a merge",
    ),
    "issue": (
        facts(issue=Issue(number=12, title="x", open=False, state_reason="not_planned")),
        Reason.ISSUE_CLOSED,
        "the issue was closed as not planned",
    ),
    "issue, no reason": (
        facts(issue=Issue(number=12, title="x", open=False)),
        Reason.ISSUE_CLOSED,
        "the issue was closed",
    ),
    "label": (
        facts(issue=Issue(number=12, title="x", labelled=False)),
        Reason.LABEL_REMOVED,
        "the label or assignment that requested the agent was removed",
    ),
    "start": (
        facts(failures={"start:first#1": replace(FAILURE, reason=Reason.SPAWN_FAILED)}),
        Reason.SPAWN_FAILED,
        "no space left",
    ),
    "branch gone": (
        facts(failures={"start:first#2": replace(FAILURE, reason=Reason.BRANCH_GONE)}),
        Reason.BRANCH_GONE,
        "no space left",
    ),
    "exit code": (
        crashed(3, 7),
        Reason.PROVIDER_EXIT,
        "the agent exited with code 7 after 3 restarts",
    ),
    "signal": (
        crashed(3, None),
        Reason.PROVIDER_EXIT,
        "the agent was ended by signal 9 after 3 restarts",
    ),
    "start takes too long": (
        facts(run=2, start_due=ago(600)),
        Reason.TIMEOUT,
        "the agent could not be started within 600 seconds",
    ),
    "vanished": (
        replace(
            crashed(3),
            agent=replace(ended(), run=4, exit=replace(ended().exit, code=None, signal=None)),  # type: ignore[type-var]
        ),
        Reason.RUNTIME_LOST,
        "the agent's program vanished after 3 restarts",
    ),
    "lost with its runtime": (
        replace(crashed(3), agent=replace(ended(), run=4, exit=None)),
        Reason.RUNTIME_LOST,
        "the agent's program vanished after 3 restarts",
    ),
}


@pytest.mark.parametrize(("session", "reason", "why"), BECAUSE.values(), ids=BECAUSE.keys())
def test_an_end_says_why(session: Facts, reason: Reason, why: str) -> None:
    _, evidence, _ = read(SessionView(session, Policy(), NOW))
    assert (evidence.reason, evidence.because) == (reason, why)


STOP = (command("stop"),)
MERGED = (pull(state=PullState.MERGED),)
HOLDS: dict[str, tuple[Facts, Hold]] = {
    "stopped and running": (facts(commands=STOP), Hold.HELD),
    "being stopped": (facts(commands=STOP, pending=frozenset({"stop#1"})), Hold.RELEASING),
    "stopped": (facts(commands=STOP, done=done("stop#1")), Hold.RELEASED),
    "stopped, and given back after a while": (
        facts(commands=STOP, done=done("stop#1"), pending=frozenset({"release#1"})),
        Hold.RELEASING,
    ),
    "a stop given up": (facts(commands=STOP, failures={"stop#1": FAILURE}), Hold.RELEASED),
    "another action given up": (facts(commands=STOP, failures={"push:x": FAILURE}), Hold.HELD),
    "another action under way": (facts(commands=STOP, pending=frozenset({"push:x"})), Hold.HELD),
    "never ran": (facts(commands=STOP, run=0), Hold.RELEASED),
    "merged": (published(pulls=MERGED), Hold.HELD),
    "merged, being released": (
        published(pulls=MERGED, pending=frozenset({"release#1"})),
        Hold.RELEASING,
    ),
    "merged and released": (published(pulls=MERGED, done=done("release#1")), Hold.RELEASED),
    "merged after a stop": (published(pulls=MERGED, done=done("stop#1")), Hold.HELD),
    "merged, a release given up": (
        published(pulls=MERGED, failures={"release#1": FAILURE}),
        Hold.RELEASED,
    ),
}


@pytest.mark.parametrize(("session", "expected"), HOLDS.values(), ids=HOLDS.keys())
def test_these_facts_have_this_hold(session: Facts, expected: Hold) -> None:
    assert signals(session).hold is expected


AVAILABILITIES: dict[str, tuple[Agent, Availability]] = {
    "of an earlier run": (replace(agent(), run=0), Availability.NONE),
    "started and not seen": (agent(Activity.NONE), Availability.NONE),
    "ready": (agent(), Availability.IDLE),
    "idle": (agent(Activity.IDLE), Availability.IDLE),
    "ready before it was started": (agent(seconds_ago=2000), Availability.IDLE),
    "at work": (agent(Activity.ACTIVE, 200), Availability.ACTIVE),
    "at work, long ago": (agent(Activity.ACTIVE, 301), Availability.UNKNOWN),
    "at work for long, seen lately": (
        agent(Activity.ACTIVE, 3000, seen=ago(9)),
        Availability.ACTIVE,
    ),
    "at work, and not seen yet": (agent(Activity.ACTIVE, 200, seen=None), Availability.ACTIVE),
    "at work since, and never seen": (agent(Activity.ACTIVE, 301, seen=None), Availability.UNKNOWN),
    "at work, at an unknown time": (
        agent(Activity.ACTIVE, since=None, seen=None),
        Availability.UNKNOWN,
    ),
    "a question": (agent(Activity.WAITING_INPUT, 9000), Availability.WAITING),
    "blocked": (agent(Activity.BLOCKED, 9000), Availability.BLOCKED),
    "exit code 0": (ended(0), Availability.EXITED),
    "exit code 1": (ended(1), Availability.CRASHED),
    "a signal": (ended(None), Availability.CRASHED),
    "dead without a record": (replace(ended(), exit=None), Availability.CRASHED),
    "a dead program in a runtime that lives": (agent(program=Probe.DEAD), Availability.UNKNOWN),
    "a program that lives in a dead runtime": (agent(runtime=Probe.DEAD), Availability.UNKNOWN),
    "an unknown program": (agent(program=Probe.UNKNOWN), Availability.UNKNOWN),
    "an unknown runtime": (agent(runtime=Probe.UNKNOWN), Availability.UNKNOWN),
    "exited, says its log, and alive": (agent(Activity.EXITED), Availability.UNKNOWN),
}


@pytest.mark.parametrize(("who", "expected"), AVAILABILITIES.values(), ids=AVAILABILITIES.keys())
def test_these_facts_have_this_availability(who: Agent, expected: Availability) -> None:
    assert signals(facts(agent=who)).availability is expected


@pytest.mark.parametrize(
    ("idle_since", "sent_ago", "expected"),
    [
        (10, 20, Availability.IDLE),  # It became idle after the message.
        (20, 10, Availability.ACTIVE),  # It has not reacted yet.
        (10, 10, Availability.ACTIVE),
        (20, 15, Availability.IDLE),  # The grace period is over.
        (None, 10, Availability.ACTIVE),
        (None, 20, Availability.IDLE),
    ],
)
def test_an_idle_agent_counts_as_active_right_after_a_message(
    idle_since: float | None, sent_ago: float, expected: Availability
) -> None:
    who = agent(since=ago(idle_since) if idle_since else None)
    session = published(agent=who, done=done("address_review:x#1", seconds_ago=sent_ago))
    assert signals(session).availability is expected


def test_a_message_to_another_run_does_not_count_as_activity() -> None:
    session = facts(agent=agent(seconds_ago=20), done=done("address_review:x#11", seconds_ago=5))
    assert signals(session).availability is Availability.IDLE


OUTPUTS: dict[str, tuple[Facts, Output]] = {
    "nothing known": (facts(work=Work()), Output.NOTHING),
    "no commit known yet": (facts(work=Work(base=BASE)), Output.NOTHING),
    "at the base": (facts(), Output.NOTHING),
    "uncommitted alone": (facts(work=Work(base=BASE, head=BASE, dirty=True)), Output.DIRTY),
    "a commit": (facts(work=Work(base=BASE, head=HEAD)), Output.UNPUSHED),
    "a commit and more": (facts(work=Work(base=BASE, head=HEAD, dirty=True)), Output.UNPUSHED),
    "pushed": (published(), Output.PUSHED),
    "pushed and more": (published(work=Work(base=BASE, head=HEAD, dirty=True)), Output.DIRTY),
    "a commit after a push": (published(work=Work(base=BASE, head=NEXT)), Output.UNPUSHED),
}


@pytest.mark.parametrize(("session", "expected"), OUTPUTS.values(), ids=OUTPUTS.keys())
def test_these_facts_have_this_output(session: Facts, expected: Output) -> None:
    assert signals(session).output is expected


@pytest.mark.parametrize(
    ("key", "question", "expected"),
    [
        ("park:rest#1", "", Availability.EXITED),
        ("park:rest#1", "May I?", Availability.WAITING),
        ("park:work#1", "", Availability.INTERRUPTED),
        ("park:work#1", "May I?", Availability.INTERRUPTED),
        ("stop#1", "", Availability.EXITED),
    ],
)
def test_the_key_of_a_stop_says_what_the_agent_was_doing(
    key: str, question: str, expected: Availability
) -> None:
    session = facts(agent=stopped(question=question), done=done(key))
    assert signals(session).availability is expected


def test_a_session_without_a_commit_ends_as_done_by_configuration() -> None:
    for who in (ended(0), agent(seconds_ago=301)):
        session = facts(agent=who)
        assert signals(session).stage is Stage.RUNNING
        assert signals(session, nothing_to_show=NothingToShow.DONE).stage is Stage.DONE
        _, evidence, _ = read(SessionView(session, Policy(nothing_to_show=NothingToShow.DONE), NOW))
        assert (evidence.reason, evidence.because) == (
            Reason.COMPLETED,
            "the agent finished without a commit",
        )
    for other in (published(agent=ended(0)), facts(agent=stopped(), done=done("park:work#1"))):
        assert signals(other, nothing_to_show=NothingToShow.DONE).stage is Stage.RUNNING
