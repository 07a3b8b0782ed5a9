"""Which status wins, and what blocks a merge."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.judge.capacity import NO_MEMORY
from lifecycle.judge.rules import blockers_for, ready, rule_for
from lifecycle.judge.signals import Attention, Ci, Hold, Output, PullStage, Signals, Stage
from lifecycle.model.facts import Agent, Ended, Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import (
    Activity,
    Blocker,
    CheckState,
    Merge,
    PullState,
    Reason,
    Review,
    Status,
)
from lifecycle.read.availability import Availability
from tests.lifecycle.universe import (
    NOW,
    agent,
    ago,
    approval,
    check,
    done,
    ended,
    facts,
    objection,
    published,
    pull,
    remark,
    thread,
)

MERGED = (pull(state=PullState.MERGED),)


def running(**fields: Any) -> Signals:
    return Signals(
        stage=Stage.RUNNING, availability=Availability.IDLE, output=Output.PUSHED, **fields
    )


def opened(**fields: Any) -> Signals:
    """A pull request that is green, approved and clean."""
    return running(
        **{
            "pull": PullStage.OPEN,
            "ci": Ci.PASSING,
            "review": Review.APPROVED,
            "merge": Merge.CLEAN,
            **fields,
        }
    )


READS: dict[str, tuple[Signals, Status]] = {
    "over, being released": (Signals(stage=Stage.MERGED, hold=Hold.RELEASING), Status.CLEANUP),
    "over, held": (Signals(stage=Stage.MERGED), Status.MERGED),
    "over, released": (Signals(stage=Stage.KILLED, hold=Hold.RELEASED), Status.KILLED),
    "queued": (Signals(stage=Stage.QUEUED), Status.QUEUED),
    "being started": (Signals(stage=Stage.SPAWNING), Status.SPAWNING),
    "no pull request": (running(), Status.WORKING),
    "people, before red checks": (
        opened(ci=Ci.FAILING, attention=Attention.ESCALATED),
        Status.NEEDS_INPUT,
    ),
    "stuck, before red checks": (opened(ci=Ci.FAILING, attention=Attention.STUCK), Status.STUCK),
    "red, before changes requested": (
        opened(ci=Ci.FAILING, review=Review.CHANGES_REQUESTED),
        Status.CI_FAILED,
    ),
    "red already, while others run": (opened(ci=Ci.SETTLING), Status.CI_FAILED),
    "a red draft": (opened(ci=Ci.FAILING, pull=PullStage.DRAFT), Status.CI_FAILED),
    "changes requested of a draft": (
        opened(review=Review.CHANGES_REQUESTED, pull=PullStage.DRAFT),
        Status.CHANGES_REQUESTED,
    ),
    "changes requested, checks run": (
        opened(review=Review.CHANGES_REQUESTED, ci=Ci.PENDING),
        Status.CHANGES_REQUESTED,
    ),
    "a draft that is ready otherwise": (opened(pull=PullStage.DRAFT), Status.PR_OPEN),
    "ready": (opened(), Status.MERGEABLE),
    "ready without checks": (opened(ci=Ci.NONE), Status.MERGEABLE),
    "ready without a review": (opened(review=Review.NONE), Status.MERGEABLE),
    "approved, checks run": (opened(ci=Ci.PENDING), Status.APPROVED),
    "approved, checks wait for a person": (opened(ci=Ci.HELD), Status.APPROVED),
    "approved, in conflict": (opened(merge=Merge.CONFLICT), Status.APPROVED),
    "approved, behind": (opened(merge=Merge.BEHIND), Status.APPROVED),
    "approved, protected": (opened(merge=Merge.PROTECTED), Status.APPROVED),
    "approved, unknown merge state": (opened(merge=Merge.UNKNOWN), Status.APPROVED),
    "waits for a review": (opened(review=Review.PENDING), Status.REVIEW_PENDING),
    "waits for a review, in conflict": (
        opened(review=Review.PENDING, merge=Merge.CONFLICT),
        Status.REVIEW_PENDING,
    ),
    "waits for a review, without checks": (
        opened(review=Review.PENDING, ci=Ci.NONE),
        Status.REVIEW_PENDING,
    ),
    "waits for checks before a review": (
        opened(review=Review.PENDING, ci=Ci.PENDING),
        Status.PR_OPEN,
    ),
    "asks for no review, checks run": (opened(review=Review.NONE, ci=Ci.PENDING), Status.PR_OPEN),
    "asks for no review, in conflict": (
        opened(review=Review.NONE, merge=Merge.CONFLICT),
        Status.PR_OPEN,
    ),
}


@pytest.mark.parametrize(("session", "expected"), READS.values(), ids=READS.keys())
def test_these_signals_have_this_status(session: Signals, expected: Status) -> None:
    assert rule_for(session).status is expected


def test_a_draft_is_never_ready() -> None:
    assert ready(opened())
    assert not ready(opened(pull=PullStage.DRAFT))
    assert not ready(running())


BLOCKS: dict[str, tuple[Signals, list[str]]] = {
    "nothing": (opened(), []),
    "nothing without checks and reviews": (opened(ci=Ci.NONE, review=Review.NONE), []),
    "red checks": (opened(ci=Ci.FAILING), ["ci_failing"]),
    "red checks, others run": (opened(ci=Ci.SETTLING), ["ci_failing", "ci_pending"]),
    "checks run": (opened(ci=Ci.PENDING), ["ci_pending"]),
    "checks wait for a person": (opened(ci=Ci.HELD), ["ci_held"]),
    "no checks yet": (opened(ci=Ci.UNSETTLED), ["not_settled"]),
    "no checks, though some are expected": (opened(ci=Ci.MISSING), ["ci_missing"]),
    "one below it": (opened(stacked=True), ["stacked"]),
    "changes requested": (opened(review=Review.CHANGES_REQUESTED), ["changes_requested"]),
    "no review yet": (opened(review=Review.PENDING), ["review_required"]),
    "a conflict": (opened(merge=Merge.CONFLICT), ["conflict"]),
    "behind": (opened(merge=Merge.BEHIND), ["behind"]),
    "a rule": (opened(merge=Merge.PROTECTED), ["protected"]),
    "an unknown merge state": (opened(merge=Merge.UNKNOWN), ["unknown"]),
    "a draft": (opened(pull=PullStage.DRAFT), ["draft"]),
    "a title or label that holds it": (opened(pull=PullStage.HELD), ["held"]),
    "everything at once": (
        opened(ci=Ci.SETTLING, review=Review.PENDING, merge=Merge.CONFLICT, pull=PullStage.DRAFT),
        ["ci_failing", "ci_pending", "review_required", "conflict", "draft"],
    ),
    "no checks yet, changes requested, queued, a draft": (
        opened(
            ci=Ci.UNSETTLED,
            review=Review.CHANGES_REQUESTED,
            merge=Merge.QUEUED,
            pull=PullStage.DRAFT,
        ),
        ["not_settled", "changes_requested", "queued", "draft"],
    ),
    "a stacked draft of an unknown merge state": (
        opened(pull=PullStage.DRAFT, stacked=True, merge=Merge.UNKNOWN),
        ["draft", "stacked", "unknown"],
    ),
    "no checks, changes requested, held, stacked": (
        opened(ci=Ci.MISSING, review=Review.CHANGES_REQUESTED, pull=PullStage.HELD, stacked=True),
        ["ci_missing", "changes_requested", "held", "stacked"],
    ),
    "a stacked pull request behind a rule": (
        opened(stacked=True, merge=Merge.PROTECTED),
        ["stacked", "protected"],
    ),
    "no pull request": (running(ci=Ci.FAILING, merge=Merge.CONFLICT), []),
}


@pytest.mark.parametrize(("session", "expected"), BLOCKS.values(), ids=BLOCKS.keys())
def test_these_signals_have_these_blockers(session: Signals, expected: list[str]) -> None:
    assert [row.name for row in blockers_for(session)] == expected


F, P = CheckState.FAILED, CheckState.PENDING
SAYS: dict[str, tuple[Facts, str, tuple[Blocker, ...]]] = {
    "spawning": (facts(run=2), "the agent is being started", ()),
    "spawning the first": (facts(run=0), "the agent is being started", ()),
    "queued": (
        facts(slot=False, run=0, agent=Agent()),
        "the session waits for its turn in the queue",
        (),
    ),
    "queued with a reason": (
        facts(slot=False, run=0, agent=Agent(), waits=NO_MEMORY),
        "the machine has too little free memory for another session",
        (),
    ),
    "working": (facts(), "the agent ended its turn", ()),
    "working, without evidence": (facts(agent=agent(Activity.ACTIVE, 5)), "the agent works", ()),
    "blocked for a moment": (
        facts(agent=agent(Activity.BLOCKED, 30, error="cannot reach the model API")),
        "the agent is blocked: cannot reach the model API",
        (),
    ),
    "blocked without a message": (
        facts(agent=agent(Activity.BLOCKED, 30)),
        "the agent is blocked and reports no error message",
        (),
    ),
    "crashed": (
        facts(agent=ended(1, evidence="the agent's program exited with 1")),
        "the agent's program exited with 1; it will be started again",
        (),
    ),
    "crashed, without a slot": (
        facts(
            slot=False,
            agent=ended(1),
            waits="the server has no free session slot"
            " (limit: 4; slots reserved for sessions earlier in the queue are not free)",
        ),
        "the agent's program ended; it will be started again; the server has no free session slot "
        "(limit: 4; slots reserved for sessions earlier in the queue are not free)",
        (),
    ),
    "working, by evidence": (
        facts(agent=agent(evidence="it said `ready`")),
        "the agent ended its turn (it said `ready`)",
        (),
    ),
    "to resume with the next slot": (
        facts(
            slot=False,
            agent=agent(evidence="stopped"),
            waits="the server has no free session slot"
            " (limit: 4; slots reserved for sessions earlier in the queue are not free)",
        ),
        "the agent ended its turn (stopped); the server has no free session slot (limit: 4; "
        "slots reserved for sessions earlier in the queue are not free)",
        (),
    ),
    "red": (
        published(pulls=(pull(checks=(check(F), check(F, "lint"))),)),
        "checks failed on ccccccc: unit, lint",
        (
            Blocker("ci_failing", "failing checks: unit, lint"),
            Blocker("review_required", "a review is required"),
        ),
    ),
    "held": (
        published(pulls=(pull(checks=(check(CheckState.STALE),), head_since=NOW),)),
        "pull request #34 is open; merge blocked by: checks were cancelled, went stale or wait for "
        "a person: unit; a review is required",
        (
            Blocker("ci_held", "checks were cancelled, went stale or wait for a person: unit"),
            Blocker("review_required", "a review is required"),
        ),
    ),
    "changes requested by a review and a thread": (
        published(
            pulls=(
                pull(
                    threads=(thread(remark(author="ann")),),
                    verdicts=(objection(), replace(objection(), author="eve", allowed=False)),
                ),
            )
        ),
        "changes were requested by @rob; unresolved conversations with @ann",
        (
            Blocker(
                "changes_requested",
                "changes were requested by @rob; unresolved conversations with @ann",
            ),
        ),
    ),
    "changes requested by an unknown reviewer, and a thread": (
        published(pulls=(pull(review=Review.CHANGES_REQUESTED, threads=(thread(),)),)),
        "changes were requested in the review; unresolved conversations with @rob",
        (
            Blocker(
                "changes_requested",
                "changes were requested in the review; unresolved conversations with @rob",
            ),
        ),
    ),
    "changes requested by an unknown reviewer": (
        published(pulls=(pull(review=Review.CHANGES_REQUESTED),)),
        "changes were requested in the review",
        (Blocker("changes_requested", "changes were requested in the review"),),
    ),
    "ready": (
        published(pulls=(pull(verdicts=(approval(),)),)),
        "ccccccc needs no more checks or reviews and can be merged",
        (),
    ),
    "approved": (
        published(pulls=(pull(verdicts=(approval(),), checks=(check(P),)),)),
        "approved; merge blocked by: checks in progress: unit",
        (Blocker("ci_pending", "checks in progress: unit"),),
    ),
    "a review is waited for": (
        published(),
        "waits for a review of ccccccc",
        (Blocker("review_required", "a review is required"),),
    ),
    "released": (
        published(pulls=MERGED, pending=frozenset({"release#1"})),
        "pull request #34 was merged; the session's workspace is being removed",
        (),
    ),
}


@pytest.mark.parametrize(("session", "because", "blockers"), SAYS.values(), ids=SAYS.keys())
def test_a_decision_states_its_reason_and_blockers(
    session: Facts, because: str, blockers: tuple[Blocker, ...]
) -> None:
    decision = decide(session, Policy(), NOW)
    assert decision.because == because
    assert decision.blockers == blockers


def test_a_question_is_quoted_unchanged() -> None:
    asks = agent(Activity.WAITING_INPUT, question="May I {run} `{why}`?")
    decision = decide(facts(agent=asks), Policy(), NOW)
    assert decision.because == "the agent asks: May I {run} `{why}`?"


@pytest.mark.parametrize(
    ("session", "held"),
    [
        (facts(slot=False), True),
        (facts(), True),
        (published(pulls=MERGED), True),
        (
            published(
                pulls=MERGED,
                done=done("release#1"),
            ),
            False,
        ),
    ],
)
def test_a_slot_is_held_until_the_release(session: Facts, held: bool) -> None:
    assert decide(session, Policy(), NOW).holds_slot is held


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (facts(slot=False, run=0, agent=Agent()), Reason.NO_SLOT),
        (
            facts(slot=False, run=0, agent=Agent(), waits="the server is at its limit"),
            Reason.NO_SLOT,
        ),
        (facts(slot=False, run=0, agent=Agent(), waits=NO_MEMORY), Reason.NO_MEMORY),
        (facts(run=2), Reason.STARTING),
        (facts(), Reason.AGENT_AT_WORK),
        (published(), Reason.PULL_REQUEST),
        (facts(agent=agent(Activity.WAITING_INPUT)), Reason.AGENT_QUESTION),
        (published(pulls=MERGED), Reason.PR_MERGED),
        (published(pulls=MERGED, pending=frozenset({"release#1"})), Reason.RELEASING),
    ],
)
def test_a_decision_has_this_reason_code(session: Facts, reason: Reason) -> None:
    assert decide(session, Policy(), NOW).reason is reason


def remembered(status: Status) -> Ended:
    return Ended(status=status, reason=Reason.PR_CLOSED, because="it was so", at=ago(99))


@pytest.mark.parametrize("status", [Status.KILLED, Status.DONE, Status.MERGED])
def test_an_outcome_keeps_its_first_reason_and_time(status: Status) -> None:
    before = remembered(status)
    assert decide(facts(ended=before), Policy(), NOW).ended == before
    kind = "release" if status is Status.MERGED else "stop"
    releasing = facts(ended=before, pending=frozenset({f"{kind}#1"}))
    decision = decide(releasing, Policy(), NOW)
    assert decision.status is Status.CLEANUP
    assert decision.ended == before


def test_a_new_outcome_is_recorded_with_reason_and_time() -> None:
    decision = decide(published(pulls=MERGED, ended=remembered(Status.KILLED)), Policy(), NOW)
    assert decision.ended == Ended(
        status=Status.MERGED,
        reason=Reason.PR_MERGED,
        because="pull request #34 was merged",
        at=NOW,
    )
    assert decide(facts(), Policy(), NOW).ended is None
