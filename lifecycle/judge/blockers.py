"""The blockers of a merge: why a pull request is not merged, each with a sentence.

They explain. The condition of a merge itself is `lifecycle.judge.rules.ready`, which is false
whenever one of these is true.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.signals import (
    REMEMBERED,
    Ci,
    PullStage,
    Signals,
    When,
    ci,
    merge,
    pull,
    review,
    stacked,
)
from lifecycle.model.status import Merge, Review


class Blocker(NamedTuple):
    """A merge blocker: its fixed name, its condition, and the sentence that people read."""

    name: str
    when: When
    sentence: str


BLOCKERS: Final = (
    Blocker("ci_failing", ci(Ci.FAILING, Ci.SETTLING), "failing checks: {failed}"),
    Blocker("ci_pending", ci(Ci.PENDING, Ci.SETTLING), "{pending}"),
    Blocker("ci_failing", ci(Ci.HELD), "checks were cancelled or wait for a person: {held}"),
    Blocker(
        "not_settled",
        ci(Ci.UNSETTLED),
        "checks may still start after the last push",
    ),
    Blocker(
        "changes_requested",
        review(Review.CHANGES_REQUESTED),
        "changes were requested: {asked}",
    ),
    Blocker("review_required", review(Review.PENDING), "a review is required"),
    Blocker("conflict", merge(Merge.CONFLICT), "it conflicts with the base branch"),
    Blocker("behind", merge(Merge.BEHIND), "it is behind the base branch"),
    Blocker("queued", merge(Merge.QUEUED), "it is in GitHub's merge queue"),
    Blocker("draft", pull(PullStage.DRAFT), "it is a draft"),
    Blocker("stacked", stacked, "it is based on #{parent}, which is not merged"),
    Blocker("protected", merge(Merge.PROTECTED), "a branch protection rule or ruleset blocks it"),
    Blocker(
        "unknown", merge(Merge.UNKNOWN), "GitHub has not computed yet whether it can be merged"
    ),
)


@lru_cache(maxsize=REMEMBERED)
def blockers_for(signals: Signals) -> tuple[Blocker, ...]:
    """All blockers of an open pull request; empty without one."""
    if signals.pull is PullStage.NONE:
        return ()
    return tuple(row for row in BLOCKERS if row.when(signals))


@lru_cache(maxsize=REMEMBERED)
def blocker_names(signals: Signals) -> str:
    """The names of all blockers, for a sentence."""
    return ", ".join(row.name for row in blockers_for(signals))
