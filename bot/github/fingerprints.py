"""Fingerprints: a few fields, cheap to read, that show whether an issue or pull request changed."""

from datetime import datetime

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from bot.github.errors import UNDECODABLE
from bot.github.shapes import BranchTip, GraphQLShape, NodeList

#: In these merge states a new commit on the base branch changes what the bot does.
_DEPENDS_ON_BASE = {"BEHIND", "DIRTY"}


class Fingerprint(GraphQLShape, frozen=True):
    """The fingerprint of an issue. If two fingerprints differ, the issue has changed in between."""

    state: str
    updated_at: datetime


class RollupCounts(GraphQLShape, frozen=True):
    state: str
    contexts: object  #: The checks, counted by state. It is compared, never read.


class ThreadState(GraphQLShape, frozen=True):
    is_resolved: bool


class PullFingerprint(Fingerprint, frozen=True):
    """The fingerprint of a pull request, with `base_ref` only where a new commit there matters."""

    is_draft: bool
    head_ref_oid: str
    mergeable: str
    merge_state_status: str
    review_decision: str | None
    base_ref: BranchTip | None
    review_threads: NodeList[ThreadState]
    status_check_rollup: RollupCounts | None


class HeadBranch(GraphQLShape, frozen=True):
    """The head branch of a pull request."""

    head_ref_name: str


def branch_in(data: Raw) -> str:
    """Return the head branch from a pull request's data in a batch; empty if null or invalid."""
    try:
        return msgspec.json.decode(data, type=HeadBranch).head_ref_name
    except UNDECODABLE:
        return ""


def fingerprint_of(data: Raw, *, pull: bool) -> Fingerprint | None:
    """Return the fingerprint from an issue's or pull request's data; None if null or invalid.

    The fingerprint contains the base branch's head only where a new commit on that branch
    changes what the bot does.
    """
    try:
        if not pull:
            return msgspec.json.decode(data, type=Fingerprint)
        found = msgspec.json.decode(data, type=PullFingerprint)
    except UNDECODABLE:
        return None
    rollup = found.status_check_rollup
    # Whether a check fails on the base branch too, or none is expected, depends on its tip.
    if found.merge_state_status in _DEPENDS_ON_BASE or not rollup or rollup.state == "FAILURE":
        return found
    return replace(found, base_ref=None)
