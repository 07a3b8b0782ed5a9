"""What tells at little cost whether something at GitHub has changed -> one `Glance`."""

from datetime import datetime

import msgspec
from msgspec import Raw

from bot.github.responses import UNDECODABLE
from bot.github.shapes import CommitNode, GraphQLShape, NodeList
from bot.github.snapshots import Fingerprint

#: In these states a base that moves changes what is to be done.
_RESTS_ON_BASE = {"BEHIND", "DIRTY"}


class IssueFingerprint(GraphQLShape, frozen=True):
    """How an issue stands."""

    state: str
    updated_at: datetime


class StateCount(GraphQLShape, frozen=True):
    """How many checks are in a state."""

    state: str
    count: int


class ContextCounts(GraphQLShape, frozen=True):
    """How many checks there are of each state."""

    check_run_counts_by_state: tuple[StateCount, ...] | None
    status_context_counts_by_state: tuple[StateCount, ...] | None


class RollupCounts(GraphQLShape, frozen=True):
    """All checks of a commit, counted."""

    state: str
    contexts: ContextCounts


class ThreadState(GraphQLShape, frozen=True):
    """Whether a thread is resolved."""

    is_resolved: bool


class BaseTip(GraphQLShape, frozen=True):
    """Where the base branch is."""

    target: CommitNode | None


class PullFingerprint(GraphQLShape, frozen=True):
    """How a pull request stands."""

    state: str
    updated_at: datetime
    is_draft: bool
    head_ref_oid: str
    mergeable: str
    merge_state_status: str
    review_decision: str | None
    base_ref: BaseTip | None
    review_threads: NodeList[ThreadState]
    status_check_rollup: RollupCounts | None


def fingerprint_of(answer: Raw, *, pull: bool) -> Fingerprint | None:
    """What came back for one alias; None where it is null or cannot be read."""
    try:
        if pull:
            return _of_pull(msgspec.json.decode(answer, type=PullFingerprint))
        issue = msgspec.json.decode(answer, type=IssueFingerprint)
    except UNDECODABLE:
        return None
    return Fingerprint(state=issue.state, updated=issue.updated_at)


def _of_pull(pull: PullFingerprint) -> Fingerprint:
    rollup = pull.status_check_rollup
    # Whether a check is red on the base too, or none is expected, is said of the base's own tip.
    rests = pull.merge_state_status in _RESTS_ON_BASE or not rollup or rollup.state == "FAILURE"
    return Fingerprint(
        state=pull.state,
        updated=pull.updated_at,
        more=(
            *(pull.is_draft, pull.head_ref_oid, pull.mergeable, pull.merge_state_status),
            *(pull.review_decision, pull.review_threads, rollup),
            pull.base_ref if rests else None,
        ),
    )
