"""Laws that compare two decisions about a session, such as before and after a failed probe."""

import random
from functools import cache
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Done, Ended, Facts, Failure, ProbeFailure, Pull, Work
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, CheckState, Probe, PullState, Reason, Status
from lifecycle.read.availability import Availability
from lifecycle.read.restores import RESTORABLE
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    NEXT,
    NOW,
    agent,
    ago,
    check,
    command,
    done,
    every_fact,
    facts,
    published,
    pull,
    remark,
)

POLICY = Policy()


@cache
def judged() -> list[tuple[Facts, Decision]]:
    """A third of all combinations; test_laws covers all."""
    return [(session, decide(session, POLICY, NOW)) for session in [*every_fact()][::3]]


_FACTS = msgspec.msgpack.Decoder(Facts)


def keys(decision: Decision) -> set[str]:
    return {str(action.key) for action in decision.actions}


def merged(session: Facts) -> bool:
    """None of its pull requests is open, and one is merged."""
    states = {pull.state for pull in session.pulls}
    return PullState.MERGED in states and PullState.OPEN not in states


def test_a_restart_changes_no_decision() -> None:
    for session, decision in judged():
        assert decide(_FACTS.decode(msgspec.msgpack.encode(session)), POLICY, NOW) == decision


def test_done_and_failed_actions_are_not_ordered_again() -> None:
    for session, decision in judged():
        if not (asked := keys(decision)):
            continue
        known = [action.key for action in decision.actions]
        after = replace(session, done={**session.done, **dict.fromkeys(known, Done(at=NOW))})
        assert not asked & keys(decide(after, POLICY, NOW))
        failed = Failure(at=NOW, reason=Reason.ACTION_FAILED, detail="no")
        after = replace(session, failures={**session.failures, **dict.fromkeys(known, failed)})
        assert not asked & keys(decide(after, POLICY, NOW))


def test_the_order_of_observations_does_not_matter() -> None:
    chance = random.Random(7)
    for session, decision in judged():
        other = decide(shuffled(session, chance), POLICY, NOW)
        assert (other.status, other.reason) == (decision.status, decision.reason)
        assert keys(other) == keys(decision)
        assert other.recheck_at == decision.recheck_at


def shuffled(session: Facts, chance: random.Random) -> Facts:
    def mixed(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(chance.sample(values, len(values)))

    def mixed_pull(pull: Pull) -> Pull:
        return replace(
            pull,
            checks=mixed(pull.checks),
            verdicts=mixed(pull.verdicts),
            threads=mixed(pull.threads),
            comments=mixed(pull.comments),
        )

    return replace(
        session,
        pulls=mixed(tuple(mixed_pull(pull) for pull in session.pulls)),
        commands=mixed(session.commands),
        done=dict(mixed(tuple(session.done.items()))),
    )


@pytest.mark.parametrize("outcome", sorted(RESTORABLE))
def test_an_outcome_changes_only_through_a_merge(outcome: Status) -> None:
    end = Ended(status=outcome, reason=Reason.COMPLETED, because="it is over", at=ago(10))
    for session, _ in judged():
        decision = decide(replace(session, ended=end), POLICY, NOW)
        settled = Status.MERGED if merged(session) else outcome
        assert decision.status in (settled, Status.CLEANUP)
        if not merged(session):
            assert decision.ended == end


@pytest.mark.parametrize("outcome", sorted(RESTORABLE))
def test_a_restore_leaves_an_outcome_and_ignores_keys_of_earlier_runs(
    outcome: Status,
) -> None:
    end = Ended(status=outcome, reason=Reason.COMPLETED, because="it is over", at=ago(100))
    session = published(ended=end, done=done("stop#1", "fix_ci:x:y#1", seconds_ago=90))
    restored = decide(replace(session, commands=(command("start"),)), POLICY, NOW)
    assert restored.status is Status.SPAWNING
    assert restored.ended is None
    assert "start:first#2" in keys(restored)


def test_a_merged_session_cannot_be_restored() -> None:
    end = Ended(status=Status.MERGED, reason=Reason.PR_MERGED, because="merged", at=ago(10))
    for session, _ in judged():
        for commands in ((), (command("start"),)):
            decision = decide(replace(session, ended=end, commands=commands), POLICY, NOW)
            assert decision.status in (Status.MERGED, Status.CLEANUP)


_FAILED_PROBES = (
    (Probe.UNKNOWN, Probe.UNKNOWN),
    (Probe.ALIVE, Probe.UNKNOWN),
    (Probe.UNKNOWN, Probe.ALIVE),
    (Probe.ALIVE, Probe.DEAD),
    (Probe.DEAD, Probe.ALIVE),
)


def test_a_failed_probe_changes_no_status_and_sends_and_orders_nothing_new() -> None:
    probe_failure = ProbeFailure(since=NOW, evidence="tmux does not answer")
    for session, decision in judged():
        if session.agent.runtime is Probe.ALIVE and session.agent.program is Probe.ALIVE:
            for runtime, program in _FAILED_PROBES:
                probed = {"runtime": runtime, "program": program, "probe_failure": probe_failure}
                other = replace(session, agent=replace(session.agent, **probed))
                after = decide(other, POLICY, NOW)
                assert (after.status, after.reason) == (decision.status, decision.reason), session
                assert keys(after) <= keys(decision)
                sent = do.SendMessage | do.Start
                assert not any(isinstance(action, sent) for action in after.actions), session


def test_a_stopped_run_is_not_stopped_again_after_a_failed_probe() -> None:
    gone = agent(Activity.EXITED, runtime=Probe.DEAD, program=Probe.DEAD)
    paused = facts(commands=(command("pause"),), agent=gone, done=done("park:rest#1"))
    unknown = replace(paused, agent=replace(gone, runtime=Probe.UNKNOWN, program=Probe.UNKNOWN))
    for session in (paused, unknown):
        decision = decide(session, POLICY, NOW)
        assert decision.signals.availability is Availability.EXITED
        assert not any(isinstance(action, do.Stop) for action in decision.actions)


RED = (check(CheckState.FAILED),)
CAUSES = {
    "checks that failed on another head": (
        published(pulls=(pull(checks=RED),)),
        published(
            pulls=(pull(checks=RED, head=NEXT),),
            work=Work(base=BASE, head=NEXT, branch=BRANCH, dirty=False),
            done=done(f"push:{NEXT}"),
        ),
        "fix_ci:",
    ),
    "another check that failed on the same head": (
        published(pulls=(pull(checks=RED),)),
        published(pulls=(pull(checks=(*RED, check(CheckState.FAILED, "lint"))),)),
        "fix_ci:",
    ),
    "another comment": (
        published(pulls=(pull(comments=(remark(),)),)),
        published(pulls=(pull(comments=(remark(), remark("comment-2"))),)),
        "address_review:",
    ),
    "another commit": (
        replace(facts(), work=replace(facts().work, head=HEAD)),
        replace(facts(), work=replace(facts().work, head=NEXT)),
        "push:",
    ),
    "another question": (
        facts(agent=agent(Activity.WAITING_INPUT, 60, question="May I?")),
        facts(agent=agent(Activity.WAITING_INPUT, 30, question="And this?")),
        "notice:question:",
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_leads_to_one_action(cause: str) -> None:
    first, second, kind = CAUSES[cause]
    (old,) = (a for a in decide(first, POLICY, NOW).actions if str(a.key).startswith(kind))
    answered = done(old.key, *getattr(old, "covers", ()), seconds_ago=30)
    again = decide(replace(first, done={**first.done, **answered}), POLICY, NOW)
    assert not any(key.startswith(kind) for key in keys(again))
    renewed = decide(replace(second, done={**second.done, **answered}), POLICY, NOW)
    (new,) = (key for key in keys(renewed) if key.startswith(kind))
    assert new != str(old.key)
