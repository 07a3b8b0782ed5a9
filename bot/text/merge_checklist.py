"""The lines of the merge checklist: what a merge needs, and who or what provides it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from lifecycle.model.status import Reason


class Need(NamedTuple):
    """A requirement of a merge, with the blockers that show that it is not met."""

    title: str
    blockers: frozenset[str]  #: Names of `BLOCKERS` in `lifecycle.judge.rules`, and `frozen`.
    met: str = ""  #: The phrase for a requirement that is met; if empty, its line is hidden.


NEEDS: Final = (
    Need("Freeze", frozenset({"frozen"})),
    Need("Ready for review", frozenset({"draft"})),
    Need(
        "Checks",
        frozenset({"ci_failing", "ci_pending", "ci_held", "not_settled", "ci_missing"}),
        "no check blocks the merge",
    ),
    Need("Review", frozenset({"changes_requested", "review_required"}), "no review is missing"),
    Need(
        "Base branch",
        frozenset({"conflict", "behind", "unknown"}),
        "no conflict is known, and no update from the base branch is required",
    ),
    Need("Title, labels and parent", frozenset({"held", "stacked"})),
    Need("Branch protection", frozenset({"protected"})),
    Need("Merge queue", frozenset({"queued"})),
)

#: Who resolves a blocker, by its name. For those of `AGENTS`, this holds while the agent can act.
RESOLVED_BY: Final[Mapping[str, str]] = {
    "behind": "if Mergewright is to merge the pull request, it updates the branch by itself;"
    " otherwise a person gives the command `update` or updates the branch on GitHub",
    "changes_requested": "the agent addresses the review; after its push, the reviewers review"
    " again on GitHub",
    "ci_failing": "the agent fixes the checks",
    "ci_held": "a person reruns or approves the checks on GitHub; Mergewright reruns cancelled ones"
    " once, where it can",
    "ci_missing": "a person starts the checks on GitHub, or merges without them: by the command"
    " `merge`, or on GitHub if Mergewright may not merge",
    "ci_pending": "checks normally start and finish by themselves; a person starts one that does"
    " not; if checks stay unreadable, an administrator checks the permissions of the bot",
    "conflict": "the agent resolves the conflict",
    "draft": "a person marks the pull request as ready on GitHub; if the setting `policy.draft` is"
    " on, Mergewright does so once the checks of a draft that it opened pass",
    "frozen": "a person undoes this freeze",
    "held": "a person removes this label or changes this title on GitHub",
    "not_settled": "nothing to do: Mergewright waits a while after a push for checks to start",
    "protected": "once the required checks and reviews pass, this resolves itself; if another rule"
    " blocks the merge, a person meets or changes that rule on GitHub",
    "queued": "GitHub's merge queue merges it",
    "review_required": "a reviewer approves the pull request on GitHub",
    "stacked": "the other pull request is merged first",
    "unknown": "GitHub computes the result, usually within seconds",
}
#: Blockers that the agent resolves, unless the session waits for a person or a person pushed.
AGENTS: Final = frozenset({"changes_requested", "ci_failing", "conflict"})
#: Who resolves the blockers of `AGENTS` after a person's push to the branch.
AFTER_RESUME: Final = (
    "the agent continues once somebody gives the command `resume` or tells it what to do"
)
A_PERSON: Final = 'a person acts: see "Next"'

NO_PULL: Final = "Mergewright opens it once the agent has committed and finished its turn"
OPENED: Final = "it is open"
READY: Final = "nothing blocks it"
NOT_READY: Final = "waits for the lines above"
WAITS: Final = 'not before the session continues: see "Next"'

#: Who merges an unblocked pull request, by the result of `merge_awaits` in `bot.show.checklist`.
MERGED_BY: Final[Mapping[Reason | None, str]] = {
    None: "Mergewright merges the pull request as soon as nothing blocks it",
    Reason.AWAITS_MERGE: "a person gives the command `merge`",
    Reason.AWAITS_MANUAL_MERGE: "a person merges it on GitHub",
    Reason.MERGE_BARRED: "a person merges it on GitHub, because a rule keeps the bot from it",
}
