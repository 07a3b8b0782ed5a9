"""GitHub's words -> ours, one table each. A word that is not in its table is never good news."""

from collections.abc import Iterable

from bot.github.shapes import CheckContext, PullRequest, ReviewNode
from lifecycle.model.status import CheckState, Merge, PullState
from lifecycle.model.status import Review as ReviewState

#: What a finished check run concluded.
CONCLUSIONS = {
    "SUCCESS": CheckState.PASSED,
    "FAILURE": CheckState.FAILED,
    "TIMED_OUT": CheckState.FAILED,
    "STARTUP_FAILURE": CheckState.FAILED,
    "ACTION_REQUIRED": CheckState.ACTION_REQUIRED,
    "CANCELLED": CheckState.CANCELLED,
    "SKIPPED": CheckState.SKIPPED,
    "NEUTRAL": CheckState.SKIPPED,
    "STALE": CheckState.STALE,
}

#: What a commit status says. Every other state of a check run is that of one under way.
STATUSES = {
    "SUCCESS": CheckState.PASSED,
    "FAILURE": CheckState.FAILED,
    "ERROR": CheckState.FAILED,
    "PENDING": CheckState.PENDING,
    "EXPECTED": CheckState.PENDING,
}

#: `mergeStateStatus`. UNSTABLE means that only checks nobody requires are not green; DRAFT that
#: nothing but being a draft, which we know by itself, stands in the way.
MERGES = {
    "CLEAN": Merge.CLEAN,
    "HAS_HOOKS": Merge.CLEAN,
    "UNSTABLE": Merge.CLEAN,
    "DRAFT": Merge.CLEAN,
    "DIRTY": Merge.CONFLICT,
    "BEHIND": Merge.BEHIND,
    "BLOCKED": Merge.PROTECTED,
}

#: `reviewDecision`; null: the reviews themselves decide.
DECISIONS = {
    "APPROVED": ReviewState.APPROVED,
    "CHANGES_REQUESTED": ReviewState.CHANGES_REQUESTED,
    "REVIEW_REQUIRED": ReviewState.PENDING,
}

PULL_STATES = {
    "OPEN": PullState.OPEN,
    "CLOSED": PullState.CLOSED,
    "MERGED": PullState.MERGED,
}


def check_state(context: CheckContext) -> CheckState:
    """What one check run or commit status says; an unknown word reads as pending."""
    if context.typename == "StatusContext":
        return STATUSES.get(context.state or "", CheckState.PENDING)
    if context.status != "COMPLETED":
        return CheckState.PENDING
    return CONCLUSIONS.get(context.conclusion or "", CheckState.PENDING)


def merge_state(mergeable: str, status: str) -> Merge:
    """What stands between a pull request and its base; clean only if GitHub says so twice."""
    if mergeable == "CONFLICTING":
        return Merge.CONFLICT
    state = MERGES.get(status, Merge.UNKNOWN)
    if state is Merge.CLEAN and mergeable != "MERGEABLE":
        return Merge.UNKNOWN
    # What it says while it works a merge out anew was true of an earlier base or head.
    return Merge.UNKNOWN if state is Merge.CONFLICT and mergeable == "UNKNOWN" else state


def review_state(pull: PullRequest, latest: Iterable[ReviewNode]) -> ReviewState:
    """What the reviewers say together: GitHub's decision, or else each writer's latest review."""
    if pull.review_decision is not None:
        return DECISIONS.get(pull.review_decision, ReviewState.NONE)
    said = _writers(latest)
    if "CHANGES_REQUESTED" in said:
        return ReviewState.CHANGES_REQUESTED
    if "APPROVED" in said:
        return ReviewState.APPROVED
    return ReviewState.PENDING if pull.review_requests.total_count else ReviewState.NONE


def _writers(reviews: Iterable[ReviewNode]) -> set[str]:
    return {review.state for review in reviews if review.author_can_push_to_repository}
