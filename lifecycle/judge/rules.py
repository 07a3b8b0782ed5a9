"""The table that maps signals to a status. The first matching row wins."""

from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.signals import (
    REMEMBERED,
    Attention,
    Ci,
    Hold,
    PullStage,
    Signals,
    Stage,
    When,
    alone,
    attention,
    both,
    ci,
    hold,
    merge,
    pull,
    review,
    stage,
)
from lifecycle.model.status import Merge, Reason, Review, Status


class Rule(NamedTuple):
    """One row. `because` is a sentence with `{names}` of `lifecycle.read.sentences`."""

    status: Status
    when: When
    reads: str  #: The condition in words, for the documentation.
    because: str
    reason: Reason | None = None  #: None: the reason that came with the evidence.


releasing = hold(Hold.RELEASING)
has_pull = pull(PullStage.DRAFT, PullStage.OPEN)
is_open = pull(PullStage.OPEN)
red = ci(Ci.FAILING, Ci.SETTLING)
green = ci(Ci.PASSING, Ci.NONE)
reviewed = review(Review.APPROVED, Review.NONE)
#: Nothing blocks the merge: the bot merges in no other state. The blockers are in `blockers`.
ready = both(is_open, alone, green, reviewed, merge(Merge.CLEAN))

RULES: Final = (
    # It is over: nothing the agent or GitHub does changes that, but a merge or a restore.
    Rule(
        Status.CLEANUP,
        releasing,
        "ended; its runtime and workspace are being released",
        "{why}; its runtime and workspace are being released",
        Reason.RELEASING,
    ),
    Rule(Status.MERGED, stage(Stage.MERGED), "a pull request was merged and none is open", "{why}"),
    Rule(
        Status.KILLED,
        stage(Stage.KILLED),
        "a person stopped it, or its runtime was lost for good",
        "{why}",
    ),
    Rule(
        Status.TERMINATED,
        stage(Stage.TERMINATED),
        "its pull request or issue was closed, or the label was removed",
        "{why}",
    ),
    Rule(Status.ERRORED, stage(Stage.ERRORED), "every retry failed", "{why}"),
    Rule(
        Status.DONE,
        stage(Stage.DONE),
        "the issue was completed elsewhere, or nothing had to be changed",
        "{why}",
    ),
    # It is paused, or not started yet.
    Rule(
        Status.PAUSED, stage(Stage.PAUSED), "paused by a person, a budget or a usage limit", "{why}"
    ),
    Rule(
        Status.QUEUED,
        stage(Stage.QUEUED),
        "waits for a free slot, another issue or a budget",
        "{why}",
    ),
    Rule(
        Status.SPAWNING,
        stage(Stage.SPAWNING),
        "its workspace and program are being created",
        "run {run} is being started",
        Reason.STARTING,
    ),
    # People have to look, whatever the pull request says.
    Rule(
        Status.NEEDS_INPUT,
        attention(Attention.ESCALATED),
        "the agent waits for an answer, or cannot continue without people",
        "{why}",
    ),
    Rule(
        Status.STUCK,
        attention(Attention.STUCK),
        "the agent is blocked or shows no progress for too long, or its state is unknown",
        "{why}",
    ),
    # The pull request's stage, worst first.
    Rule(
        Status.CI_FAILED,
        red,
        "a check that counts failed on the head commit",
        "checks failed on {head}: {failed}",
    ),
    Rule(
        Status.CHANGES_REQUESTED,
        review(Review.CHANGES_REQUESTED),
        "a reviewer requested changes, or threads are unresolved",
        "changes were requested: {asked}",
    ),
    Rule(
        Status.PR_OPEN,
        pull(PullStage.DRAFT),
        "the pull request is a draft",
        "pull request #{number} is a draft",
    ),
    Rule(
        Status.MERGEABLE,
        ready,
        "nothing blocks the merge",
        "{head} passes its checks, is reviewed and can be merged",
    ),
    Rule(
        Status.APPROVED,
        both(alone, review(Review.APPROVED)),
        "approved, and something else blocks the merge",
        "approved; merge blocked by: {blockers}",
    ),
    Rule(
        Status.REVIEW_PENDING,
        both(review(Review.PENDING), green),
        "a required or requested review is missing",
        "waits for a review of {head}",
    ),
    Rule(
        Status.PR_OPEN,
        has_pull,
        "a pull request is open, and none of the above applies",
        "pull request #{number} is open; merge blocked by: {blockers}",
    ),
    Rule(
        Status.WORKING,
        stage(Stage.RUNNING),
        "the agent works, and there is no pull request yet",
        "the agent's last activity: {activity}",
        Reason.AGENT_AT_WORK,
    ),
)


@lru_cache(maxsize=REMEMBERED)
def rule_for(signals: Signals) -> Rule:
    """Return the first row that matches. The last row matches every running session."""
    return next(rule for rule in RULES if rule.when(signals))
