"""Why it is not merging: every reason that stands, each with a sentence."""

from collections.abc import Callable
from typing import Final, NamedTuple

from lifecycle.signals import Ci, PullStage, Signals
from lifecycle.status import Merge, Review


class Blocker(NamedTuple):
    """One row: its fixed name, when it stands, and what people read."""

    name: str
    when: Callable[[Signals], bool]
    sentence: str


BLOCKERS: Final = (
    Blocker("ci_failing", lambda s: s.ci in (Ci.FAILING, Ci.SETTLING), "checks fail: {failed}"),
    Blocker("ci_pending", lambda s: s.ci in (Ci.PENDING, Ci.SETTLING), "checks have not finished"),
    Blocker("not_settled", lambda s: s.ci is Ci.HELD, "checks wait for a person: {held}"),
    Blocker(
        "changes_requested",
        lambda s: s.review is Review.CHANGES_REQUESTED,
        "changes were requested: {asked}",
    ),
    Blocker("review_required", lambda s: s.review is Review.PENDING, "a review is needed"),
    Blocker("conflict", lambda s: s.merge is Merge.CONFLICT, "it conflicts with its base"),
    Blocker("behind", lambda s: s.merge is Merge.BEHIND, "its base has moved on"),
    Blocker("draft", lambda s: s.pull is PullStage.DRAFT, "it is a draft"),
    Blocker("protected", lambda s: s.merge is Merge.PROTECTED, "a rule of the branch holds it"),
    Blocker("unknown", lambda s: s.merge is Merge.UNKNOWN, "GitHub has not worked out the merge"),
)


def blockers_for(signals: Signals) -> tuple[Blocker, ...]:
    """Everything that stands between an open pull request and its merge; empty without one."""
    if signals.pull is PullStage.NONE:
        return ()
    return tuple(row for row in BLOCKERS if row.when(signals))
