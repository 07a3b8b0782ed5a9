"""Several pull requests of one session, and stacked ones."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Facts, Pull
from lifecycle.model.policy import Mode
from lifecycle.model.status import Blocker, CheckState, Merge, PullState, Reason, Review, Status
from tests.lifecycle.decisions import decision, keys, ordered
from tests.lifecycle.universe import HEAD, approval, check, published, pull, remark

OTHER = "e" * 40
F = CheckState.FAILED


def second(**fields: Any) -> Pull:
    """Another open pull request of the same session, from a branch of its own."""
    return pull(number=35, branch="mergewright/12-second", head=OTHER, **fields)


def ready(made: Pull) -> Pull:
    return replace(made, verdicts=(approval(made.head),))


def both(one: Pull, other: Pull, **fields: Any) -> Facts:
    return published(pulls=(one, other), **fields)


RED = {"checks": (check(F),)}
WORST: dict[str, tuple[Pull, Pull, Status]] = {
    "red checks before requested changes": (
        pull(**RED),
        second(review=Review.CHANGES_REQUESTED),
        Status.CI_FAILED,
    ),
    "requested changes before a draft": (
        pull(draft=True),
        second(review=Review.CHANGES_REQUESTED),
        Status.CHANGES_REQUESTED,
    ),
    "a draft before what is ready": (ready(pull()), second(draft=True), Status.PR_OPEN),
    "what is ready before what is approved": (
        ready(pull(merge=Merge.CONFLICT)),
        ready(second()),
        Status.MERGEABLE,
    ),
    "what is approved before what waits for a review": (
        ready(pull(merge=Merge.CONFLICT)),
        second(),
        Status.APPROVED,
    ),
    "what waits for a review before what waits for checks": (
        pull(checks=(check(CheckState.PENDING),)),
        second(),
        Status.REVIEW_PENDING,
    ),
}


@pytest.mark.parametrize(("one", "other", "expected"), WORST.values(), ids=WORST.keys())
def test_the_worst_of_several_pull_requests_gives_the_status(
    one: Pull, other: Pull, expected: Status
) -> None:
    assert decision(both(one, other)).status is expected
    assert decision(both(other, one)).status is expected


def test_an_escalation_of_any_pull_request_gives_the_status() -> None:
    held = second(checks=(check(CheckState.ACTION_REQUIRED),))
    found = decision(both(pull(**RED), held))
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.CHECKS_HELD)


def test_the_agent_gets_requests_of_every_pull_request() -> None:
    session = both(pull(comments=(remark("c1"),)), second(**RED))
    prompts = [action.prompt for action in ordered(session) if isinstance(action, do.SendMessage)]
    assert [(each.name, each.values["pull"]) for each in prompts] == [
        ("fix_ci", "35"),
        ("address_review", "34"),
    ]


def test_a_ready_pull_request_merges_while_another_waits() -> None:
    session = both(ready(pull()), second())
    merges = [a for a in ordered(session, mode=Mode.MERGE) if isinstance(a, do.MergePull)]
    assert [(each.number, each.sha) for each in merges] == [(34, HEAD)]


def test_a_session_is_merged_when_no_pull_request_is_open_and_one_is_merged() -> None:
    closed, merged = PullState.CLOSED, PullState.MERGED
    assert decision(both(pull(state=merged), second(state=closed))).status is Status.MERGED
    assert decision(both(pull(state=closed), second(state=merged))).status is Status.MERGED
    assert decision(both(pull(state=merged), second())).status is Status.REVIEW_PENDING
    assert decision(both(pull(state=closed), second(state=closed))).status is Status.TERMINATED
    assert decision(both(pull(state=closed), second())).status is Status.REVIEW_PENDING


# -- stacks ----------------------------------------------------------------------------------------


def stack(parent: dict[str, Any], child: dict[str, Any]) -> Facts:
    lower = pull(branch="mergewright/12-more-tests", **parent)
    return both(lower, second(base_branch="mergewright/12-more-tests", **child))


APPROVED = {"verdicts": (approval(), approval(OTHER))}


def test_a_stacked_pull_request_is_not_ready_while_its_parent_is_open() -> None:
    session = stack({}, APPROVED)
    assert decision(session).status is Status.REVIEW_PENDING
    assert not any(isinstance(a, do.MergePull) for a in ordered(session, mode=Mode.MERGE))
    child = decision(stack({"checks": (check(CheckState.PENDING),)}, APPROVED))
    assert child.status is Status.PR_OPEN


def test_problems_of_a_stacked_pull_request_are_shown() -> None:
    assert decision(stack({}, RED)).status is Status.CI_FAILED
    assert decision(stack({}, {"review": Review.CHANGES_REQUESTED})).status is (
        Status.CHANGES_REQUESTED
    )


def test_a_stacked_pull_request_lists_its_parent_as_blocker() -> None:
    found = decision(stack(APPROVED, {"checks": (check(F),)}))
    assert (
        Blocker("stacked", "the pull request is based on #34, which is not merged")
        in found.blockers
    )


def test_a_stacked_pull_request_is_ready_once_its_parent_is_merged() -> None:
    session = stack({"state": PullState.MERGED}, APPROVED)
    assert decision(session).status is Status.MERGEABLE


def test_a_parent_merges_before_its_stacked_pull_request() -> None:
    merges = [
        action.number
        for action in ordered(stack(APPROVED, APPROVED), mode=Mode.MERGE)
        if isinstance(action, do.MergePull)
    ]
    assert merges == [34]


def test_two_pull_requests_on_the_same_base_are_not_stacked() -> None:
    assert decision(both(ready(pull()), ready(second()))).blockers == ()
    assert keys(both(ready(pull()), ready(second())))
