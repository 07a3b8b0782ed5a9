"""The mapping of GitHub's enums."""

import pytest

from bot.github.checks import check_state
from bot.github.pulls import login_of, merge_state, review_state
from bot.github.shapes import Actor, HeadCheck, ReviewNode, TotalCount
from lifecycle.model.status import CheckState, Merge
from lifecycle.model.status import Review as ReviewState
from tests.github.pages import page, review

MERGEABLE = {
    "CLEAN": Merge.CLEAN,
    "HAS_HOOKS": Merge.CLEAN,
    "UNSTABLE": Merge.CLEAN,
    "DRAFT": Merge.CLEAN,
    "BEHIND": Merge.BEHIND,
    "BLOCKED": Merge.PROTECTED,
    "DIRTY": Merge.CONFLICT,
    "UNKNOWN": Merge.UNKNOWN,
    "A_WORD_OF_TOMORROW": Merge.UNKNOWN,
}


@pytest.mark.parametrize(
    ("conclusion", "state"),
    [
        ("SUCCESS", CheckState.PASSED),
        ("FAILURE", CheckState.FAILED),
        ("TIMED_OUT", CheckState.FAILED),
        ("STARTUP_FAILURE", CheckState.FAILED),
        ("ACTION_REQUIRED", CheckState.ACTION_REQUIRED),
        ("CANCELLED", CheckState.CANCELLED),
        ("SKIPPED", CheckState.SKIPPED),
        ("NEUTRAL", CheckState.SKIPPED),
        ("STALE", CheckState.STALE),
        ("A_WORD_OF_TOMORROW", CheckState.PENDING),
        (None, CheckState.PENDING),
    ],
)
def test_a_completed_check_run_has_the_state_of_its_conclusion(
    conclusion: str | None, state: CheckState
) -> None:
    run = HeadCheck(
        typename="CheckRun", is_required=False, status="COMPLETED", conclusion=conclusion
    )
    assert check_state(run) is state


@pytest.mark.parametrize(
    "status", ["QUEUED", "IN_PROGRESS", "PENDING", "REQUESTED", "WAITING", "A_WORD_OF_TOMORROW"]
)
def test_a_rerunning_check_run_is_pending_despite_an_earlier_conclusion(status: str) -> None:
    run = HeadCheck(typename="CheckRun", is_required=False, status=status, conclusion="SUCCESS")
    assert check_state(run) is CheckState.PENDING


@pytest.mark.parametrize(
    ("status_name", "state"),
    [
        ("SUCCESS", CheckState.PASSED),
        ("FAILURE", CheckState.FAILED),
        ("ERROR", CheckState.FAILED),
        ("PENDING", CheckState.PENDING),
        ("EXPECTED", CheckState.PENDING),
        ("A_WORD_OF_TOMORROW", CheckState.PENDING),
    ],
)
def test_a_commit_status_is_a_check(status_name: str, state: CheckState) -> None:
    status = HeadCheck(typename="StatusContext", is_required=False, context="ci", state=status_name)
    assert check_state(status) is state


@pytest.mark.parametrize(("status_name", "state"), MERGEABLE.items())
def test_a_mergeable_pull_request_has_the_state_of_its_merge_status(
    status_name: str, state: Merge
) -> None:
    assert merge_state("MERGEABLE", status_name) is state


@pytest.mark.parametrize("status_name", MERGEABLE)
def test_a_conflicting_pull_request_is_a_conflict_in_every_merge_status(status_name: str) -> None:
    assert merge_state("CONFLICTING", status_name) is Merge.CONFLICT


@pytest.mark.parametrize(
    "status_name", ["CLEAN", "HAS_HOOKS", "UNSTABLE", "DRAFT", "UNKNOWN", "DIRTY"]
)
def test_mergeability_is_unknown_until_github_has_computed_it(status_name: str) -> None:
    assert merge_state("UNKNOWN", status_name) is Merge.UNKNOWN


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        ("APPROVED", ReviewState.APPROVED),
        ("CHANGES_REQUESTED", ReviewState.CHANGES_REQUESTED),
        ("REVIEW_REQUIRED", ReviewState.PENDING),
        ("A_WORD_OF_TOMORROW", ReviewState.NONE),
    ],
)
def test_githubs_review_decision_takes_precedence(decision: str, state: ReviewState) -> None:
    contrary = (review("ann", "APPROVED"), review("ben", "CHANGES_REQUESTED"))
    assert review_state(page(review_decision=decision), contrary) is state


@pytest.mark.parametrize(
    ("reviews", "requested", "state"),
    [
        ([], 0, ReviewState.NONE),
        ([], 1, ReviewState.PENDING),
        ([review("ann", "APPROVED")], 0, ReviewState.APPROVED),
        ([review("ann", "APPROVED")], 1, ReviewState.APPROVED),
        ([review("ann", "DISMISSED")], 0, ReviewState.NONE),
        (
            [review("ann", "APPROVED"), review("ben", "CHANGES_REQUESTED")],
            0,
            ReviewState.CHANGES_REQUESTED,
        ),
        ([review("eve", "APPROVED", writer=False)], 0, ReviewState.NONE),
        ([review("eve", "CHANGES_REQUESTED", writer=False)], 1, ReviewState.PENDING),
    ],
)
def test_without_a_decision_the_latest_reviews_of_writers_decide(
    reviews: list[ReviewNode], requested: int, state: ReviewState
) -> None:
    status_name = page(review_requests=TotalCount(total_count=requested))
    assert review_state(status_name, reviews) is state


def test_an_apps_login_ends_with_bot_as_in_rest() -> None:
    assert login_of(Actor(typename="Bot", login="dependabot")) == "dependabot[bot]"
    assert login_of(Actor(typename="Bot", login="dependabot[bot]")) == "dependabot[bot]"
    assert login_of(Actor(typename="User", login="dependabot")) == "dependabot"
    assert login_of(None) == ""
