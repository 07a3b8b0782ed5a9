"""Cheap summaries of issues and pull requests, by which the resync finds changed ones."""

from datetime import datetime

import msgspec
from msgspec import Raw

from bot.github.responses import UNDECODABLE
from bot.github.shapes import CommitNode, GraphQLShape, NodeList
from bot.github.snapshots import Fingerprint

#: In these merge states a new commit on the base branch changes what the bot does.
_DEPENDS_ON_BASE = {"BEHIND", "DIRTY"}


class IssueFingerprint(GraphQLShape, frozen=True):
    """The fingerprint fields of an issue."""

    state: str
    updated_at: datetime


class StateCount(GraphQLShape, frozen=True):
    """The number of checks in one state."""

    state: str
    count: int


class ContextCounts(GraphQLShape, frozen=True):
    """The number of checks by state."""

    check_run_counts_by_state: tuple[StateCount, ...] | None
    status_context_counts_by_state: tuple[StateCount, ...] | None


class RollupCounts(GraphQLShape, frozen=True):
    """The checks of a commit, counted."""

    state: str
    contexts: ContextCounts


class ThreadState(GraphQLShape, frozen=True):
    """Whether a thread is resolved."""

    is_resolved: bool


class BaseTip(GraphQLShape, frozen=True):
    """The tip of the base branch."""

    target: CommitNode | None


class PullFingerprint(GraphQLShape, frozen=True):
    """The fingerprint fields of a pull request."""

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


def fingerprint_of(data: Raw, *, pull: bool) -> Fingerprint | None:
    """The fingerprint in the data of one alias; None if it is null or invalid."""
    try:
        if pull:
            return _of_pull(msgspec.json.decode(data, type=PullFingerprint))
        issue = msgspec.json.decode(data, type=IssueFingerprint)
    except UNDECODABLE:
        return None
    return Fingerprint(state=issue.state, updated=issue.updated_at)


def _of_pull(pull: PullFingerprint) -> Fingerprint:
    rollup = pull.status_check_rollup
    # Whether a check fails on the base branch too, or none is expected, depends on its tip.
    depends_on_base = (
        pull.merge_state_status in _DEPENDS_ON_BASE or not rollup or rollup.state == "FAILURE"
    )
    return Fingerprint(
        state=pull.state,
        updated=pull.updated_at,
        more=(
            *(pull.is_draft, pull.head_ref_oid, pull.mergeable, pull.merge_state_status),
            *(pull.review_decision, pull.review_threads, rollup),
            pull.base_ref if depends_on_base else None,
        ),
    )
