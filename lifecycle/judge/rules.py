"""The table that reads a status off the signals. Top to bottom: the first match wins."""

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
ready = both(is_open, alone, green, reviewed, merge(Merge.CLEAN))

RULES: Final = (
    # It is over: nothing the agent or GitHub does changes that, but a merge or a restore.
    Rule(
        Status.CLEANUP,
        releasing,
        "over, and its runtime or workspace is being released",
        "{why}; its runtime and workspace are being released",
        Reason.RELEASING,
    ),
    Rule(Status.MERGED, stage(Stage.MERGED), "a pull request was merged, none is open", "{why}"),
    Rule(Status.KILLED, stage(Stage.KILLED), "a person stopped it", "{why}"),
    Rule(
        Status.TERMINATED,
        stage(Stage.TERMINATED),
        "its pull request or issue was closed, or the label removed",
        "{why}",
    ),
    Rule(Status.ERRORED, stage(Stage.ERRORED), "it failed beyond retry", "{why}"),
    Rule(
        Status.DONE,
        stage(Stage.DONE),
        "the issue was completed elsewhere, or there was nothing to change",
        "{why}",
    ),
    # It does not go on, or is not under way yet.
    Rule(
        Status.PAUSED, stage(Stage.PAUSED), "a person, a budget or a usage limit holds it", "{why}"
    ),
    Rule(Status.QUEUED, stage(Stage.QUEUED), "no slot is free, or no budget to begin", "{why}"),
    Rule(
        Status.SPAWNING,
        stage(Stage.SPAWNING),
        "its workspace and program are being made",
        "run {run} is being started",
        Reason.STARTING,
    ),
    # People have to look, whatever the pull request says.
    Rule(
        Status.NEEDS_INPUT,
        attention(Attention.ESCALATED),
        "the agent waits for an answer, or cannot bring it further",
        "{why}",
    ),
    Rule(
        Status.STUCK,
        attention(Attention.STUCK),
        "blocked or without progress beyond the threshold, or its state is unknown",
        "{why}",
    ),
    # The pull request's stage, worst first.
    Rule(
        Status.CI_FAILED,
        red,
        "a check that counts failed on the head",
        "checks failed on {head}: {failed}",
    ),
    Rule(
        Status.CHANGES_REQUESTED,
        review(Review.CHANGES_REQUESTED),
        "a reviewer asked for changes, or threads are unresolved",
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
        "nothing stands in the way",
        "{head} is green, reviewed and clean to merge",
    ),
    Rule(
        Status.APPROVED,
        both(alone, review(Review.APPROVED)),
        "approved, and something else stands in the way",
        "approved; in the way: {blockers}",
    ),
    Rule(
        Status.REVIEW_PENDING,
        both(review(Review.PENDING), green),
        "a review is required or requested and has not come",
        "waits for a review of {head}",
    ),
    Rule(
        Status.PR_OPEN,
        has_pull,
        "a pull request is open and not settled",
        "pull request #{number} is open; in the way: {blockers}",
    ),
    Rule(
        Status.WORKING,
        stage(Stage.RUNNING),
        "the agent is at it, and there is no pull request yet",
        "the agent is at work: {activity}",
        Reason.AGENT_AT_WORK,
    ),
)


@lru_cache(maxsize=REMEMBERED)
def rule_for(signals: Signals) -> Rule:
    """The first row that matches. The last row matches whatever is still running."""
    return next(rule for rule in RULES if rule.when(signals))
