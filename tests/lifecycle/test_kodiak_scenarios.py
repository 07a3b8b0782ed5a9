"""Mergewright's decisions in scenarios from the documentation and tests of Kodiak, a merge bot.

https://kodiakhq.com/docs/config-reference

Kodiak merges pull requests that have a label; here, mode `merge` stands for the label. No test is
needed for automatic approvals (no bot approves its own work), forks and exceptions by author (every
pull request is the bot's own) and priorities (the bot has no merge queue). Other files test merge
messages (`tests/text/test_merge_messages.py`), methods that a repository forbids
(`tests/act/test_merging.py`) and errors in a configuration (`tests/config/test_repository.py`).
"""

import pytest
from msgspec.structs import replace

from lifecycle.model.facts import Failure
from lifecycle.model.policy import AutoMerge, MergeMethod, Mode
from lifecycle.model.status import CheckState, Merge, PullState, Reason, Review, Status
from tests.lifecycle.decisions import READY, Scenario, ready, with_pull
from tests.lifecycle.universe import (
    BRANCH,
    HEAD,
    NEXT,
    OTHER,
    ago,
    approval,
    check,
    command,
    objection,
    published,
    pull,
    remark,
    thread,
)

S = Status
PROPOSE = {"mode": Mode.PROPOSE}
REBASE = {"merge_method": MergeMethod.REBASE}
MERGES = "MergePull:34:squash"
MERGE_COMMAND = (command("merge", head=HEAD),)
FAILS, RUNS = CheckState.FAILED, CheckState.PENDING
REQUIRED = check(name="unit", required=True)
#: GitHub satisfies it by the context `.../travis-ci/pr`.
TRAVIS = check(RUNS, "continuous-integration/travis-ci", required=True, reported=False)


ASKS: dict[str, Scenario] = {
    "the label that asks for a merge": Scenario(
        ready(labels=("automerge",)),
        S.MERGEABLE,
        does="Comment:ready",
        differs="Kodiak merges; a label names neither the commit nor who asks, a command both",
        policy=PROPOSE,
    ),
    "a person asks for a merge": Scenario(
        ready(*MERGE_COMMAND),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer",
        says="The current commit is merged once nothing blocks it and the session neither is "
        "paused nor waits for a person.",
        policy=PROPOSE,
    ),
    "never merge": Scenario(
        ready(), S.MERGEABLE, does="Comment:ready_by_hand", policy={"auto_merge": AutoMerge.OFF}
    ),
    "never merge, but update always": Scenario(
        ready(merge=Merge.BEHIND),
        S.APPROVED,
        "behind",
        "Comment:ready_behind_by_hand",
        differs="Kodiak can update at each move of the base; every update runs all checks again",
        policy={"auto_merge": AutoMerge.OFF},
    ),
    "a label that blocks, and a person asks": Scenario(
        ready(*MERGE_COMMAND, labels=("wip",)),
        S.APPROVED,
        "held",
        "Comment:answer",
        says="the pull request's label `wip` blocks the merge",
        policy={"blocking_labels": ("wip",)},
    ),
    "a title that blocks": Scenario(
        ready(title="WIP: add a login"), S.APPROVED, "held", says='title "WIP: add a login"'
    ),
    "a title that a project's own expression blocks": Scenario(
        ready(title="Add a login, DONT  MERGE"),
        S.APPROVED,
        "held",
        policy={"blocking_titles": (r"dont\s*merge",)},
    ),
    "a title expression that is invalid": Scenario(
        ready(title="WIP: x"),
        S.MERGEABLE,
        does=MERGES,
        differs="Kodiak stops; `config check` names it, and the sessions continue",
        policy={"blocking_titles": ("(",)},
    ),
    "a draft": Scenario(ready(draft=True), S.PR_OPEN, "draft", says="is a draft"),
}

REVIEWS: dict[str, Scenario] = {
    "a required review is missing": Scenario(
        ready(verdicts=(), review=Review.PENDING), S.REVIEW_PENDING, "review_required"
    ),
    "no review is required": Scenario(
        ready(verdicts=()),
        S.REVIEW_PENDING,
        "review_required",
        differs="Kodiak merges; what an agent wrote is merged after a person's review by default",
    ),
    "no review is required by policy either": Scenario(
        ready(verdicts=()), S.MERGEABLE, does=MERGES, policy={"require_review": False}
    ),
    "one of two required approvals, or a code owner's review, is missing": Scenario(
        ready(review=Review.PENDING),
        S.REVIEW_PENDING,
        "review_required",
        says="GitHub requires another approval, such as a code owner's",
    ),
    "a requested review is missing": Scenario(
        ready(verdicts=(), review=Review.PENDING),
        S.REVIEW_PENDING,
        "review_required",
        differs="Kodiak waits for it only if configured",
        policy={"require_review": False},
    ),
    "an approval without write access": Scenario(
        ready(verdicts=(approval(allowed=False),)),
        S.REVIEW_PENDING,
        "review_required",
        says="the approval of @rob, who has no write access, does not count",
    ),
    "an approval by a bot": Scenario(
        ready(verdicts=(replace(approval(author="ci", allowed=False), bot=True),)),
        S.REVIEW_PENDING,
        "review_required",
        says="the approval of @ci, who is not listed in `bots`, does not count",
    ),
    "an approval by a bot that is listed": Scenario(
        ready(verdicts=(replace(approval(author="ci"), bot=True),)), S.MERGEABLE, does=MERGES
    ),
    "a commit after the approval": Scenario(
        ready(verdicts=(approval(NEXT),), review=Review.APPROVED),
        S.REVIEW_PENDING,
        "review_required",
        says="the approval of @rob, who approved an earlier commit, does not count",
        differs="Kodiak merges unless the branch dismisses stale approvals; nobody saw the commit",
    ),
    "an update from the base after the approval": Scenario(
        ready(verdicts=(approval(NEXT),), carried=frozenset({NEXT})), S.MERGEABLE, does=MERGES
    ),
    "another base after the approval": Scenario(
        ready(verdicts=(replace(approval(), for_base=False),), review=Review.APPROVED),
        S.REVIEW_PENDING,
        "review_required",
        says="for another base branch",
        differs="Kodiak merges into the new base; the approval was for the other one",
    ),
    "changes requested": Scenario(
        ready(verdicts=(objection(),)), S.CHANGES_REQUESTED, "changes_requested", says="@rob"
    ),
    "changes requested by one person, approved by another": Scenario(
        ready(verdicts=(objection(), approval(author="ann"))),
        S.CHANGES_REQUESTED,
        "changes_requested",
    ),
    "a comment after the approval": Scenario(
        ready(comments=(remark(),)),
        S.MERGEABLE,
        does=f"{MERGES} SendMessage:address_review",
    ),
    "a conversation that a rule wants resolved": Scenario(
        ready(
            merge=Merge.PROTECTED,
            threads=(thread(remark(author="lint[bot]", bot=True, allowed=False)),),
        ),
        S.APPROVED,
        "protected",
        says="unresolved conversations: @lint[bot] on a.py:3",
        differs="Kodiak knows only that GitHub blocks the merge",
    ),
    "a person's conversation that no rule wants resolved": Scenario(
        ready(threads=(thread(),)),
        S.CHANGES_REQUESTED,
        "changes_requested",
        "SendMessage:address_review",
        differs="Kodiak merges; an open question of a reviewer is the agent's to answer first",
    ),
}

CHECKS: dict[str, Scenario] = {
    "a required check runs": Scenario(
        ready(checks=(check(RUNS, required=True),)),
        S.APPROVED,
        "ci_pending",
        says="checks in progress: unit",
    ),
    "a required check fails": Scenario(
        ready(checks=(check(FAILS, required=True),)),
        S.CI_FAILED,
        "ci_failing",
        "SendMessage:fix_ci",
        differs="Kodiak takes it off its queue; the agent repairs it",
    ),
    "a required check fails while another runs": Scenario(
        ready(checks=(check(FAILS, required=True), check(RUNS, "lint", required=True))),
        S.CI_FAILED,
        "ci_failing ci_pending",
    ),
    "a required check never reports": Scenario(
        ready(checks=(REQUIRED, check(RUNS, "build", required=True, reported=False))),
        S.APPROVED,
        "ci_pending",
        says="required checks that have not reported yet: build",
    ),
    "a required context that GitHub satisfies by prefix, just after it did": Scenario(
        ready(checks=(TRAVIS,), clean_since=ago(60)), S.APPROVED, "ci_pending"
    ),
    "a required context that GitHub satisfies and we do not": Scenario(
        ready(checks=(TRAVIS,), clean_since=ago(1800)),
        S.NEEDS_INPUT,
        "ci_pending",
        "Comment:attention",
        says="required checks have not finished or reported: continuous-integration/travis-ci",
        differs="Kodiak merges; it is read as GitHub reads it, and where we fail a person decides",
    ),
    "a required check was skipped": Scenario(
        ready(checks=(check(CheckState.SKIPPED, required=True),)), S.MERGEABLE, does=MERGES
    ),
    "every check was skipped, and none is required": Scenario(
        ready(checks=(check(CheckState.SKIPPED),)), S.MERGEABLE, does=MERGES
    ),
    "a required check was cancelled": Scenario(
        ready(checks=(check(CheckState.CANCELLED, required=True, run_id=7),)),
        S.APPROVED,
        "ci_held",
        "Rerun",
        differs="Kodiak counts it as failed; it is run once more, then people are notified",
    ),
    "a required check waits for a person": Scenario(
        ready(checks=(check(CheckState.ACTION_REQUIRED, required=True),)),
        S.NEEDS_INPUT,
        "ci_held",
        "Comment:attention",
        says="wait for a person: unit",
    ),
    "a check that is not required fails": Scenario(
        ready(checks=(REQUIRED, check(FAILS, "lint"))), S.MERGEABLE, does=MERGES
    ),
    "a check that is not required runs": Scenario(
        ready(checks=(REQUIRED, check(RUNS, "WIP"))), S.MERGEABLE, does=MERGES
    ),
    "a check fails, and none is required": Scenario(
        ready(checks=(check(FAILS),)),
        S.CI_FAILED,
        "ci_failing",
        "SendMessage:fix_ci",
        differs="Kodiak merges, as GitHub would; without required checks all of them count",
    ),
    "a check that runs for ever, and none is required": Scenario(
        ready(checks=(check(RUNS, "WIP"),), pending_since=ago(7200)),
        S.NEEDS_INPUT,
        "ci_pending",
        "Comment:attention",
        says="the session has waited for more than 2 hours: checks in progress: WIP",
        differs="Kodiak skips checks that it is configured not to wait for; people are notified",
    ),
    "a person asks for a merge without the check that runs for ever": Scenario(
        ready(*MERGE_COMMAND, checks=(check(RUNS, "WIP"),), pending_since=ago(7300)),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer",
    ),
    "no check ran, and none is expected": Scenario(ready(checks=()), S.MERGEABLE, does=MERGES),
    "no check ran, though some did before": Scenario(
        ready(checks=(), checks_expected=("unit",)),
        S.APPROVED,
        "ci_missing",
        differs="Kodiak merges what no protected branch forbids; a workflow may not have started",
    ),
}

BRANCHES: dict[str, Scenario] = {
    "behind, and next to be merged": Scenario(
        ready(merge=Merge.BEHIND), S.APPROVED, "behind", "UpdateBranch"
    ),
    "behind, without a review": Scenario(
        ready(merge=Merge.BEHIND, verdicts=()), S.REVIEW_PENDING, "review_required behind"
    ),
    "behind, changes requested": Scenario(
        ready(merge=Merge.BEHIND, review=Review.CHANGES_REQUESTED),
        S.CHANGES_REQUESTED,
        "changes_requested behind",
    ),
    "behind, a check fails": Scenario(
        ready(merge=Merge.BEHIND, checks=(check(FAILS, required=True),)),
        S.CI_FAILED,
        "ci_failing behind",
        "SendMessage:fix_ci",
    ),
    "behind, a check runs": Scenario(
        ready(merge=Merge.BEHIND, checks=(check(RUNS, required=True),)),
        S.APPROVED,
        "ci_pending behind",
        differs="Kodiak updates at once by default; what fails is repaired before the update",
    ),
    "behind, and a person asks for an update": Scenario(
        ready(command("update"), merge=Merge.BEHIND, verdicts=()),
        S.REVIEW_PENDING,
        "review_required behind",
        "UpdateBranch Comment:answer",
    ),
    "a conflict": Scenario(
        ready(merge=Merge.CONFLICT),
        S.APPROVED,
        "conflict",
        "SendMessage:resolve_conflict",
        differs="Kodiak comments and removes its label; the agent resolves it",
    ),
    "a conflict under a title that blocks": Scenario(
        ready(merge=Merge.CONFLICT, title="WIP: x"),
        S.APPROVED,
        "conflict held",
        "SendMessage:resolve_conflict",
    ),
    "GitHub does not know yet": Scenario(
        ready(merge=Merge.UNKNOWN),
        S.APPROVED,
        "unknown",
        differs="Kodiak makes GitHub compute it by a test commit; reading it again does the same",
    ),
    "GitHub blocks it without a reason": Scenario(
        ready(merge=Merge.PROTECTED), S.APPROVED, "protected", says="branch protection rule"
    ),
}

ENDS: dict[str, Scenario] = {
    "the usual method": Scenario(
        ready(),
        S.MERGEABLE,
        does=MERGES,
        differs="Kodiak makes merge commits by default; an agent's commits are steps of one change",
    ),
    "another method": Scenario(
        ready(),
        S.MERGEABLE,
        does="MergePull:34:rebase",
        policy={"merge_method": MergeMethod.REBASE},
    ),
    "another method for this one": Scenario(
        ready(command("merge", head=HEAD, text="merge")),
        S.MERGEABLE,
        does="MergePull:34:merge Comment:answer",
        differs="Kodiak reads it from a label, we from the command",
    ),
    "GitHub refuses the merge": Scenario(
        with_pull(
            READY,
            failures={
                f"merge:{HEAD}": Failure(
                    at=ago(9), reason=Reason.ACTION_FAILED, detail="not signed"
                )
            },
        ),
        S.NEEDS_INPUT,
        does="Comment:attention",
        says="not signed",
        differs="Kodiak adds a label that disables it; people are notified and write `retry`",
    ),
    "merged": Scenario(
        ready(state=PullState.MERGED, branch=BRANCH),
        S.MERGED,
        does="DeleteBranch CloseIssue Release",
        differs="Kodiak keeps a branch with others on it; these are moved to the base instead",
    ),
    "merged, and branches are kept": Scenario(
        ready(state=PullState.MERGED),
        S.MERGED,
        does="CloseIssue Release",
        policy={"delete_branch": False},
    ),
    "merged, and another pull request of the session is based on it": Scenario(
        published(
            pulls=(
                pull(state=PullState.MERGED, branch=BRANCH),
                pull(number=35, branch="other", head=OTHER, base_branch=BRANCH),
            )
        ),
        S.REVIEW_PENDING,
        "review_required",
    ),
    "closed without a merge": Scenario(
        ready(state=PullState.CLOSED), S.TERMINATED, does="Stop Comment:ended"
    ),
}

SCENARIOS = ASKS | REVIEWS | CHECKS | BRANCHES | ENDS


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_scenario_of_kodiak_is_decided_so(scenario: Scenario) -> None:
    assert scenario.decided(mode=Mode.MERGE) == scenario.expected
