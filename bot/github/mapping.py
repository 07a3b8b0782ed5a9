"""Maps GitHub's enums to ours. An unknown value never means success."""

from collections.abc import Iterable

from bot.github.shapes import CheckContext, PullRequest, ReviewNode
from lifecycle.model.status import CheckState, Merge, PullState
from lifecycle.model.status import Review as ReviewState

#: `CheckConclusionState`.
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

#: `StatusState`, the state of a commit status.
STATUSES = {
    "SUCCESS": CheckState.PASSED,
    "FAILURE": CheckState.FAILED,
    "ERROR": CheckState.FAILED,
    "PENDING": CheckState.PENDING,
    "EXPECTED": CheckState.PENDING,
}

#: `MergeStateStatus`. UNSTABLE: only checks that are not required fail. DRAFT: only being a draft,
#: which is a fact of its own, blocks the merge.
MERGES = {
    "CLEAN": Merge.CLEAN,
    "HAS_HOOKS": Merge.CLEAN,
    "UNSTABLE": Merge.CLEAN,
    "DRAFT": Merge.CLEAN,
    "DIRTY": Merge.CONFLICT,
    "BEHIND": Merge.BEHIND,
    "BLOCKED": Merge.PROTECTED,
}

#: `PullRequestReviewDecision`; if it is null, the reviews decide.
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
    """The state of a check run or commit status; pending if unknown."""
    if context.typename == "StatusContext":
        return STATUSES.get(context.state or "", CheckState.PENDING)
    if context.status != "COMPLETED":
        return CheckState.PENDING
    return CONCLUSIONS.get(context.conclusion or "", CheckState.PENDING)


def merge_state(mergeable: str, status: str) -> Merge:
    """Whether a pull request can be merged; clean only if both of GitHub's fields say so."""
    if mergeable == "CONFLICTING":
        return Merge.CONFLICT
    state = MERGES.get(status, Merge.UNKNOWN)
    if state is Merge.CLEAN and mergeable != "MERGEABLE":
        return Merge.UNKNOWN
    # While GitHub recomputes mergeability, the status is that of an earlier base or head.
    return Merge.UNKNOWN if state is Merge.CONFLICT and mergeable == "UNKNOWN" else state


def review_state(pull: PullRequest, latest: Iterable[ReviewNode]) -> ReviewState:
    """GitHub's review decision, or else the latest reviews of people with write access."""
    if pull.review_decision is not None:
        return DECISIONS.get(pull.review_decision, ReviewState.NONE)
    states = _writers(latest)
    if "CHANGES_REQUESTED" in states:
        return ReviewState.CHANGES_REQUESTED
    if "APPROVED" in states:
        return ReviewState.APPROVED
    return ReviewState.PENDING if pull.review_requests.total_count else ReviewState.NONE


def _writers(reviews: Iterable[ReviewNode]) -> set[str]:
    return {review.state for review in reviews if review.author_can_push_to_repository}
