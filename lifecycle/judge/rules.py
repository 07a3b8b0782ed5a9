"""The tables that map signals to a status and to the blockers of a merge.

The first matching rule gives the status. The blockers explain why a pull request is not merged; the
condition of a merge is `ready`, which is false whenever a row of `BLOCKERS` applies.
"""

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
    both,
    one_of,
    stacked,
)
from lifecycle.model.status import Merge, Reason, Review, Status


class Rule(NamedTuple):
    """A status and its condition. `because` has placeholders, see `lifecycle.read.sentences`."""

    status: Status
    when: When
    reads: str  #: The condition in words, for the documentation.
    because: str = "{why}"  #: `{why}` is the sentence of the session's finding.
    reason: Reason | None = None  #: If None, the reason of the session's finding.


def alone(s: Signals) -> bool:
    """Whether the base is not the branch of another open pull request of the session."""
    return not s.stacked


has_pull = one_of(PullStage.DRAFT, PullStage.HELD, PullStage.OPEN)
green = one_of(Ci.PASSING, Ci.NONE)
_accepted = both(one_of(PullStage.OPEN), alone, green, one_of(Review.APPROVED, Review.NONE))
#: Nothing blocks the merge. The bot merges only if this condition is met.
ready = both(_accepted, one_of(Merge.CLEAN))
#: Nothing blocks the merge except that the branch is behind its base.
ready_but_behind = both(_accepted, one_of(Merge.BEHIND))

RULES: Final = (
    # The session has ended; only a merge or a restore changes that.
    Rule(
        Status.CLEANUP,
        one_of(Hold.RELEASING),
        "ended; the agent's program is being stopped, or the workspace removed",
        "{why}; {cleanup}",
        Reason.RELEASING,
    ),
    Rule(Status.MERGED, one_of(Stage.MERGED), "a pull request was merged and none is open"),
    Rule(
        Status.KILLED,
        one_of(Stage.KILLED),
        "a person stopped it, or the agent's program was ended from outside too often in a row",
    ),
    Rule(
        Status.TERMINATED,
        one_of(Stage.TERMINATED),
        "its pull request or issue was closed, or the label or assignment was removed",
    ),
    Rule(
        Status.ERRORED,
        one_of(Stage.ERRORED),
        "the agent could not be started, or failed after its last restart",
    ),
    Rule(
        Status.DONE,
        one_of(Stage.DONE),
        "the issue was completed elsewhere, or nothing had to be changed",
    ),
    # It is paused, or not started yet.
    Rule(
        Status.PAUSED,
        one_of(Stage.PAUSED),
        "paused by a person, by a limit (budget, usage, disk), because its project is archived or"
        " removed, or because nobody writes in the chat",
    ),
    Rule(
        Status.QUEUED,
        one_of(Stage.QUEUED),
        "waits for a free slot or enough memory, for another issue, or for a budget",
    ),
    Rule(
        Status.SPAWNING,
        one_of(Stage.SPAWNING),
        "the workspace is being made, and the agent's program started",
        "the agent is being started",
        Reason.STARTING,
    ),
    # People have to look, whatever the pull request says.
    Rule(
        Status.NEEDS_INPUT,
        one_of(Attention.ESCALATED),
        "the agent waits for an answer, or cannot continue without people",
    ),
    Rule(
        Status.STUCK,
        one_of(Attention.STUCK),
        "the agent is blocked or shows no progress for too long, or its state is unknown",
    ),
    # The pull request's stage, worst first.
    Rule(
        Status.CI_FAILED,
        one_of(Ci.FAILING, Ci.SETTLING),
        "a check that the merge depends on failed on the head commit",
        "checks failed on {head}: {failed}",
    ),
    Rule(
        Status.CHANGES_REQUESTED,
        one_of(Review.CHANGES_REQUESTED),
        "a reviewer requested changes, or threads are unresolved",
        "{asked}",
    ),
    Rule(
        Status.PR_OPEN,
        one_of(PullStage.DRAFT),
        "the pull request is a draft",
        "pull request #{number} is a draft",
    ),
    Rule(
        Status.MERGEABLE,
        ready,
        "nothing blocks the merge",
        "{head} needs no more checks or reviews and can be merged{barred}",
    ),
    Rule(
        Status.APPROVED,
        both(alone, one_of(Review.APPROVED)),
        "approved, and something else blocks the merge",
        "approved; merge blocked by: {blockers}",
    ),
    Rule(
        Status.REVIEW_PENDING,
        both(one_of(Review.PENDING), green),
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
        one_of(Stage.RUNNING),
        "the agent works, and there is no pull request yet",
        "{activity}",
    ),
)


@lru_cache(maxsize=REMEMBERED)
def rule_for(signals: Signals) -> Rule:
    """Return the first rule whose condition is met. The last rule fits every running session."""
    return next(rule for rule in RULES if rule.when(signals))


class BlockerRule(NamedTuple):
    """A merge blocker: its fixed name, its condition, and the sentence that people read."""

    name: str
    when: When
    sentence: str


BLOCKERS: Final = (
    BlockerRule("ci_failing", one_of(Ci.FAILING, Ci.SETTLING), "failing checks: {failed}"),
    BlockerRule("ci_pending", one_of(Ci.PENDING, Ci.SETTLING), "{pending}"),
    BlockerRule(
        "ci_held",
        one_of(Ci.HELD),
        "checks were cancelled, went stale or wait for a person: {held}",
    ),
    BlockerRule("not_settled", one_of(Ci.UNSETTLED), "checks may still start after the last push"),
    BlockerRule(
        "ci_missing",
        one_of(Ci.MISSING),
        "no check ran here, but these ran for the last merged pull requests: {expected}",
    ),
    BlockerRule("changes_requested", one_of(Review.CHANGES_REQUESTED), "{asked}"),
    BlockerRule("review_required", one_of(Review.PENDING), "a review is required{ignored}"),
    BlockerRule(
        "conflict", one_of(Merge.CONFLICT), "the pull request conflicts with the base branch"
    ),
    BlockerRule("behind", one_of(Merge.BEHIND), "the pull request is behind the base branch"),
    BlockerRule("queued", one_of(Merge.QUEUED), "the pull request is in GitHub's merge queue"),
    BlockerRule("draft", one_of(PullStage.DRAFT), "the pull request is a draft"),
    BlockerRule("held", one_of(PullStage.HELD), "{holds} blocks the merge"),
    BlockerRule("stacked", stacked, "the pull request is based on #{parent}, which is not merged"),
    BlockerRule(
        "protected",
        one_of(Merge.PROTECTED),
        "a branch protection rule or ruleset blocks the merge; the pull request's merge box on "
        "GitHub shows what it requires{conversations}",
    ),
    BlockerRule(
        "unknown",
        one_of(Merge.UNKNOWN),
        "GitHub has not computed yet whether the pull request can be merged",
    ),
)


@lru_cache(maxsize=REMEMBERED)
def blockers_for(signals: Signals) -> tuple[BlockerRule, ...]:
    """Return the rows of `BLOCKERS` that apply; empty if there is no pull request."""
    if signals.pull is PullStage.NONE:
        return ()
    return tuple(row for row in BLOCKERS if row.when(signals))


@lru_cache(maxsize=REMEMBERED)
def rows_for(signals: Signals) -> tuple[Rule, tuple[BlockerRule, ...]]:
    """Return the rule that gives the status, and the blockers; cached by signals."""
    return rule_for(signals), blockers_for(signals)
