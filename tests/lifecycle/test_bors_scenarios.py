"""Scenarios from the tests of rust-lang/bors, each with what Mergewright decides.

https://github.com/rust-lang/bors

In bors, the one command `r+` approves a pull request and has it merged. In Mergewright, a reviewer
approves on GitHub, and the command `merge` merges (in mode `propose`).

This file has no scenarios for these features of bors:

* Permissions: commands of people without write access never become facts. See
  `tests/intake/test_authorization.py`.
* Delegation: write access on GitHub decides who may give commands.
* Try builds, rollups and unrolled builds: checks run on the pull request itself.
* Priorities: Mergewright has no merge queue of its own.
* Retries of pushes that fail temporarily: see `tests/act/test_outages.py`.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model.facts import Facts, Failure, Frozen, Push
from lifecycle.model.status import CheckState, Merge, Mover, PullState, Reason, Status
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
    done,
    published,
    pull,
)

S = Status
#: A reviewer asked for the merge of this commit.
ASKED = command("merge", head=HEAD, actor="rob")
AGAIN = replace(ASKED, key="again", at=ago(10))
OTHER_ASKED = replace(ASKED, key="other", head=OTHER)
CANCEL = command("cancel", actor="rob", at=ago(5))
MERGES = "MergePull:34:squash"
#: Its command was answered before.
ANSWERED = done("command_applied:comment-merge")
REFUSED = Failure(at=ago(9), reason=Reason.ACTION_FAILED, detail="base branch was modified")
BUILD_RUNS, BUILD_FAILS = check(CheckState.PENDING), check(CheckState.FAILED)
PERSON = Push(sha=OTHER, at=ago(15), by="rob")
TREE_CLOSED = Frozen(scope="project", by="ann", at=ago(60))


def asked(*commands: Any, **fields: Any) -> Facts:
    """A pull request that is approved, green and clean, after an applied merge command."""
    return with_pull({**READY, **fields}, commands=(ASKED, *commands), done=ANSWERED)


def two(*commands: Any) -> Facts:
    """Two pull requests of a session that are approved, green and clean."""
    pulls = (
        pull(branch=BRANCH, **READY),
        pull(number=35, branch="other", head=OTHER, verdicts=(approval(OTHER),)),
    )
    answered = {**ANSWERED, **done("command_applied:other")}
    return published(pulls=pulls, commands=commands, done=answered)


APPROVALS: dict[str, Scenario] = {
    "a reviewer approves": Scenario(
        ready(ASKED),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer",
        says="The current commit is merged once",
    ),
    "a reviewer approves twice": Scenario(
        ready(ASKED, AGAIN), S.MERGEABLE, does=f"{MERGES} Comment:answer Comment:answer"
    ),
    "a comment approves, and no review does": Scenario(
        ready(ASKED, verdicts=()),
        S.REVIEW_PENDING,
        "review_required",
        "Comment:answer",
        differs="bors counts its command as the approval; GitHub and its rules know reviews alone",
    ),
    "the author approves the own work": Scenario(
        ready(replace(ASKED, actor="alice"), verdicts=()),
        S.REVIEW_PENDING,
        "review_required",
        "Comment:answer",
        says="@alice requested this work and cannot approve it",
        differs="bors lets authors with permission approve; here an agent wrote it for them",
    ),
    "somebody who pushed to it approves": Scenario(
        asked(contributors=frozenset({"rob"})),
        S.REVIEW_PENDING,
        "review_required",
        says="the approval of @rob, who pushed commits to the branch, does not count",
        differs="bors counts it; nobody else has seen these commits",
    ),
    "an approval of another commit": Scenario(
        ready(replace(ASKED, head=OTHER)),
        S.MERGEABLE,
        does="Comment:answer Comment:ready",
        says="The pull request has new commits or another base branch since your command.",
    ),
    "approved as work in progress": Scenario(
        ready(ASKED, title="[WIP] More tests"),
        S.APPROVED,
        "held",
        "Comment:answer",
        says='the pull request\'s title "[WIP] More tests" blocks the merge',
        differs="bors refuses the approval; here it is kept until the title changes",
        policy={"blocking_titles": (r"^\[?WIP",)},
    ),
    "approved as a draft": Scenario(
        ready(ASKED, draft=True),
        S.PR_OPEN,
        "draft",
        "Comment:answer",
        says="the pull request is a draft",
        differs="bors refuses the approval; here it is kept until the draft is ready",
    ),
    "approved after it was closed": Scenario(
        ready(ASKED, state=PullState.CLOSED),
        S.TERMINATED,
        does="Stop Comment:answer Comment:ended",
        says="The session has ended: the pull request was closed without a merge.",
    ),
    "approved after it was merged": Scenario(
        ready(ASKED, state=PullState.MERGED),
        S.MERGED,
        does="DeleteBranch CloseIssue Release Comment:answer",
        says="The session has ended: pull request #34 was merged.",
    ),
    "unapproved": Scenario(
        asked(CANCEL),
        S.MERGEABLE,
        does="Comment:answer Comment:ready",
        says="The bot does not merge",
    ),
    "unapproved, and approved again": Scenario(
        asked(CANCEL, replace(AGAIN, at=ago(1))),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer Comment:answer",
    ),
    "unapproved without an approval": Scenario(
        ready(CANCEL), S.MERGEABLE, does="Comment:answer Comment:ready", says="There is no mer"
    ),
    "unapproved after it was closed": Scenario(
        asked(CANCEL, state=PullState.CLOSED),
        S.TERMINATED,
        does="Stop Comment:answer Comment:ended",
        says="The session has ended",
    ),
    "unapproved in the merge queue": Scenario(
        with_pull(
            {**READY, "queue": True, "merge": Merge.QUEUED},
            commands=(ASKED, CANCEL),
            done={**ANSWERED, **done(f"merge:{HEAD}")},
        ),
        S.APPROVED,
        "queued",
        "Dequeue Comment:answer",
    ),
}

CHANGES: dict[str, Scenario] = {
    "the author pushes after the approval": Scenario(
        asked(head=NEXT),
        S.REVIEW_PENDING,
        "review_required",
        "MergeRemote",
        says="the approval of @rob, who approved an earlier commit, does not count",
    ),
    "the agent pushes, and only its review is new": Scenario(
        replace(
            asked(head=HEAD, verdicts=(approval(),)),
            commands=(replace(ASKED, head=NEXT),),
        ),
        S.MERGEABLE,
        does="Comment:ready",
    ),
    "a person pushes with force": Scenario(
        asked(head=OTHER, head_by=Mover.PERSON, person=PERSON),
        S.REVIEW_PENDING,
        "review_required",
        "MergeRemote Comment:handed_to_human",
    ),
    "the base moves after the approval": Scenario(
        asked(head=HEAD, verdicts=(approval(NEXT),), carried=frozenset({NEXT})),
        S.MERGEABLE,
        does=MERGES,
    ),
    "another base after the approval": Scenario(
        asked(base_branch="beta", base_since=ago(10)),
        S.MERGEABLE,
        does="Comment:ready",
    ),
    "a conflict with the base": Scenario(
        asked(merge=Merge.CONFLICT),
        S.APPROVED,
        "conflict",
        "SendMessage:resolve_conflict",
        differs="bors unapproves it and asks its author to rebase; here that is the agent",
    ),
    "GitHub does not know yet whether it conflicts": Scenario(
        asked(merge=Merge.UNKNOWN), S.APPROVED, "unknown"
    ),
    "closed after the approval": Scenario(
        asked(state=PullState.CLOSED), S.TERMINATED, does="Stop Comment:ended"
    ),
    "a draft again after the approval": Scenario(asked(draft=True), S.PR_OPEN, "draft"),
    "labels follow the status": Scenario(
        asked(checks=(BUILD_RUNS,)),
        S.APPROVED,
        "ci_pending",
        "ShowStatus",
        policy={"state_labels": True},
    ),
}

BUILDS: dict[str, Scenario] = {
    "the build runs": Scenario(asked(checks=(BUILD_RUNS,)), S.APPROVED, "ci_pending"),
    "the build fails": Scenario(
        asked(checks=(BUILD_FAILS,)),
        S.CI_FAILED,
        "ci_failing",
        "SendMessage:fix_ci",
        differs="bors waits for a `retry`; the agent repairs it, and flaky checks are run again",
    ),
    "the build fails at random": Scenario(
        asked(checks=(replace(BUILD_FAILS, flaky=True, run_id=7),)),
        S.CI_FAILED,
        "ci_failing",
        "Rerun",
        differs="bors waits for a `retry`; what the project calls flaky is run once more",
    ),
    "the build exceeds its time": Scenario(
        asked(checks=(BUILD_RUNS,), pending_since=ago(7200)),
        S.NEEDS_INPUT,
        "ci_pending",
        "Comment:attention",
        says="the session has waited for more than 2 hours: checks in progress: unit",
        differs="bors cancels it; the checks are not ours to cancel",
    ),
    "a retry of what did not fail": Scenario(
        asked(command("retry")),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer",
        says="There are no failed actions to retry.",
    ),
    "the base moved just before the merge": Scenario(
        with_pull(READY, commands=(ASKED,), done=ANSWERED, failures={f"merge:{HEAD}": REFUSED}),
        S.NEEDS_INPUT,
        does="Comment:attention",
        says="base branch was modified",
        differs="bors comments and drops it; it waits for a person's `retry` or a new commit",
    ),
    "the merge is tried again": Scenario(
        with_pull(
            READY,
            commands=(ASKED, command("retry", at=ago(5))),
            done=ANSWERED,
            failures={f"merge:{HEAD}": REFUSED},
        ),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer",
        says="The failed actions are retried.",
    ),
    "the tree is closed": Scenario(
        replace(asked(), frozen=TREE_CLOSED),
        S.MERGEABLE,
        "frozen",
        says="@ann froze the project",
        differs="bors still merges what has a higher priority; a freeze stops every effect",
    ),
    "the tree is closed for this one": Scenario(
        asked(command("freeze", at=ago(3))), S.MERGEABLE, "frozen", does="Comment:answer"
    ),
    "the tree is open again": Scenario(
        asked(command("freeze", at=ago(8)), command("unfreeze", at=ago(3))),
        S.MERGEABLE,
        does=f"{MERGES} Comment:answer",
    ),
    "two are approved at once": Scenario(
        two(ASKED, OTHER_ASKED),
        S.MERGEABLE,
        does=f"{MERGES} MergePull:35:squash",
        differs="bors tests them one by one; a rule of GitHub that asks for updates does the same",
    ),
    "one of two is approved": Scenario(
        two(OTHER_ASKED), S.MERGEABLE, does="MergePull:35:squash Comment:ready"
    ),
    "two are unapproved, and one is approved again": Scenario(
        two(ASKED, OTHER_ASKED, replace(CANCEL, at=ago(12)), replace(OTHER_ASKED, at=ago(10))),
        S.MERGEABLE,
        does="MergePull:35:squash Comment:ready Comment:answer",
    ),
}

SCENARIOS = APPROVALS | CHANGES | BUILDS


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_scenario_of_bors_is_decided_so(scenario: Scenario) -> None:
    assert scenario.decided() == scenario.expected
