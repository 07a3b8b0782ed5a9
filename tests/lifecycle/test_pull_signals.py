"""How a pull request reduces to signals."""

from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifecycle.judge.judge import foremost, read
from lifecycle.judge.signals import Ci, PullStage, Signals
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import CheckState, Merge, PullState, Review
from lifecycle.read.session_view import SessionView
from tests.lifecycle.universe import (
    NEXT,
    NOW,
    ago,
    approval,
    check,
    objection,
    published,
    pull,
    remark,
    thread,
)

C = CheckState


def signals(session: Facts, **policy: Any) -> Signals:
    return read(foremost(SessionView(session, Policy(**policy), NOW)))[0]


REQUIRED = check(C.PASSED, "required", required=True)
CHECKS: dict[str, tuple[dict[str, Any], Ci]] = {
    "passed": ({"checks": (check(),)}, Ci.PASSING),
    "passed and skipped": ({"checks": (check(), check(C.SKIPPED, "b"))}, Ci.PASSING),
    "failed": ({"checks": (check(C.FAILED), check(name="b"))}, Ci.FAILING),
    "failed, others run": ({"checks": (check(C.FAILED), check(C.PENDING, "b"))}, Ci.SETTLING),
    "failed on a page, others missing": (
        {"checks": (check(C.FAILED),), "checks_complete": False},
        Ci.FAILING,
    ),
    "failed and cancelled": ({"checks": (check(C.FAILED), check(C.CANCELLED, "b"))}, Ci.FAILING),
    "running": ({"checks": (check(), check(C.PENDING, "b"))}, Ci.PENDING),
    "running, another cancelled": (
        {"checks": (check(C.CANCELLED), check(C.PENDING, "b"))},
        Ci.PENDING,
    ),
    "passed, pages missing": ({"checks": (check(),), "checks_complete": False}, Ci.PENDING),
    "cancelled": ({"checks": (check(), check(C.CANCELLED, "b"))}, Ci.HELD),
    "asks for an action": ({"checks": (check(C.ACTION_REQUIRED),)}, Ci.HELD),
    "stale": ({"checks": (check(C.STALE),)}, Ci.HELD),
    "an optional check fails": ({"checks": (REQUIRED, check(C.FAILED, "b"))}, Ci.PASSING),
    "an optional check runs": ({"checks": (REQUIRED, check(C.PENDING, "b"))}, Ci.PASSING),
    "a required check fails, the rest runs": (
        {"checks": (check(C.FAILED, required=True), check(C.PENDING, "b"))},
        Ci.FAILING,
    ),
    "all skipped": ({"checks": (check(C.SKIPPED),)}, Ci.NONE),
    "all skipped, though some are expected": (
        {"checks": (check(C.SKIPPED),), "checks_expected": ("unit",)},
        Ci.MISSING,
    ),
    "required checks skipped": (
        {"checks": (check(C.SKIPPED, required=True),), "checks_expected": ("unit",)},
        Ci.PASSING,
    ),
    "required checks skipped, the rest fails": (
        {"checks": (check(C.SKIPPED, required=True), check(C.FAILED, "b"))},
        Ci.PASSING,
    ),
    "required checks skipped or never reported": (
        {"checks": (check(C.SKIPPED, required=True), check(C.PENDING, "b", required=True))},
        Ci.PENDING,
    ),
    "none": ({"checks": ()}, Ci.NONE),
    "none, just pushed": ({"checks": (), "head_since": ago(59)}, Ci.UNSETTLED),
    "none, long enough after the push": ({"checks": (), "head_since": ago(60)}, Ci.NONE),
    "none, at an unknown time": ({"checks": (), "head_since": None}, Ci.PENDING),
    "none, though some are expected": ({"checks": (), "checks_expected": ("unit",)}, Ci.MISSING),
    "none, though some are expected, just pushed": (
        {"checks": (), "checks_expected": ("unit",), "head_since": ago(59)},
        Ci.UNSETTLED,
    ),
    "a check that is not required was cancelled, others are expected": (
        {"checks": (check(C.CANCELLED),), "checks_expected": ("unit",)},
        Ci.HELD,
    ),
}


@pytest.mark.parametrize(("fields", "expected"), CHECKS.values(), ids=CHECKS.keys())
def test_checks_reduce_to_this_signal(fields: dict[str, Any], expected: Ci) -> None:
    assert signals(published(pulls=(pull(**fields),))).ci is expected


REVIEWS: dict[str, tuple[dict[str, Any], Review]] = {
    "no review": ({}, Review.PENDING),
    "approved": ({"verdicts": (approval(),)}, Review.APPROVED),
    "approved by GitHub's decision and by a writer": (
        {"verdicts": (approval(),), "review": Review.APPROVED},
        Review.APPROVED,
    ),
    "approved by GitHub's decision alone": ({"review": Review.APPROVED}, Review.PENDING),
    "approved, and GitHub wants more": (
        {"verdicts": (approval(),), "review": Review.PENDING},
        Review.PENDING,
    ),
    "approved at another head": ({"verdicts": (approval(NEXT),)}, Review.PENDING),
    "approved by the requester": ({"verdicts": (approval(author="alice"),)}, Review.PENDING),
    "approved by a stranger": ({"verdicts": (approval(allowed=False),)}, Review.PENDING),
    "one asks for changes": (
        {"verdicts": (approval(author="ann"), objection())},
        Review.CHANGES_REQUESTED,
    ),
    "a stranger asks for changes": (
        {"verdicts": (approval(author="ann"), replace(objection(), allowed=False))},
        Review.APPROVED,
    ),
    "changes requested by GitHub's decision": (
        {"review": Review.CHANGES_REQUESTED},
        Review.CHANGES_REQUESTED,
    ),
    "an open thread": (
        {"verdicts": (approval(),), "threads": (thread(),)},
        Review.CHANGES_REQUESTED,
    ),
    "a resolved thread": (
        {"verdicts": (approval(),), "threads": (replace(thread(), resolved=True),)},
        Review.APPROVED,
    ),
    "an outdated thread": (
        {"verdicts": (approval(),), "threads": (replace(thread(), outdated=True),)},
        Review.APPROVED,
    ),
    "an answered thread": (
        {
            "verdicts": (approval(),),
            "threads": (thread(remark("a"), remark("b", own=True, allowed=False)),),
        },
        Review.APPROVED,
    ),
    "an answered thread with a new comment": (
        {
            "verdicts": (approval(),),
            "threads": (thread(remark("a", own=True), remark("b")),),
        },
        Review.CHANGES_REQUESTED,
    ),
    "a stranger's thread": (
        {"verdicts": (approval(),), "threads": (thread(remark(allowed=False)),)},
        Review.APPROVED,
    ),
    "a bot's thread": (
        {"verdicts": (approval(),), "threads": (thread(remark(bot=True)),)},
        Review.APPROVED,
    ),
    "a thread without comments": (
        {"verdicts": (approval(),), "threads": (replace(thread(), remarks=()),)},
        Review.APPROVED,
    ),
}


@pytest.mark.parametrize(("fields", "expected"), REVIEWS.values(), ids=REVIEWS.keys())
def test_reviews_reduce_to_this_signal(fields: dict[str, Any], expected: Review) -> None:
    assert signals(published(pulls=(pull(**fields),))).review is expected


def test_without_require_review_only_reviews_required_by_github_count() -> None:
    def reading(**fields: Any) -> Review:
        return signals(published(pulls=(pull(**fields),)), require_review=False).review

    assert reading() is Review.NONE
    assert reading(review=Review.PENDING) is Review.PENDING
    assert reading(verdicts=(approval(),)) is Review.APPROVED


def test_threads_of_configured_bots_count() -> None:
    comment = remark(author="lint[bot]", bot=True)
    session = published(pulls=(pull(verdicts=(approval(),), threads=(thread(comment),)),))
    assert signals(session).review is Review.APPROVED
    assert signals(session, bots=("lint[bot]",)).review is Review.CHANGES_REQUESTED
    edited = published(pulls=(pull(threads=(thread(replace(comment, allowed=False)),)),))
    assert signals(edited, bots=("lint[bot]",)).review is Review.PENDING


def test_without_threads_block_open_threads_do_not_block() -> None:
    session = published(pulls=(pull(verdicts=(approval(),), threads=(thread(),)),))
    assert signals(session, threads_block=False).review is Review.APPROVED


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((), PullStage.NONE),
        ((pull(),), PullStage.OPEN),
        ((pull(draft=True),), PullStage.DRAFT),
        ((pull(draft=True), pull(number=35)), PullStage.DRAFT),
        ((pull(number=35), pull(draft=True)), PullStage.DRAFT),
        ((pull(), pull(number=35, draft=True, state=PullState.CLOSED)), PullStage.OPEN),
    ],
)
def test_of_several_pull_requests_the_worst_open_one_is_judged(
    fields: Any, expected: PullStage
) -> None:
    assert signals(published(pulls=fields)).pull is expected


def test_the_merge_signal_is_the_merge_state_of_github() -> None:
    for merge in Merge:
        assert signals(published(pulls=(pull(merge=merge),))).merge is merge


@settings(max_examples=100, deadline=None, derandomize=True)
@generated(
    st.lists(st.sampled_from(list(CheckState)), min_size=1, max_size=4),
    st.lists(st.sampled_from(list(CheckState)), max_size=3),
)
def test_optional_checks_never_matter_beside_required_ones(
    required: list[CheckState], optional: list[CheckState]
) -> None:
    needed = tuple(check(state, f"r{n}", required=True) for n, state in enumerate(required))
    others = tuple(check(state, f"o{n}") for n, state in enumerate(optional))
    alone = signals(published(pulls=(pull(checks=needed),)))
    assert signals(published(pulls=(pull(checks=(*others, *needed)),))).ci is alone.ci


@settings(max_examples=100, deadline=None, derandomize=True)
@generated(st.lists(st.sampled_from(list(CheckState)), max_size=5), st.booleans())
def test_checks_pass_exactly_if_all_are_known_and_passed_or_were_skipped(
    states: list[CheckState], complete: bool
) -> None:
    checks = tuple(check(state, str(n)) for n, state in enumerate(states))
    ci = signals(published(pulls=(pull(checks=checks, checks_complete=complete),))).ci
    good = complete and set(states) <= {C.PASSED, C.SKIPPED}
    assert (ci in (Ci.PASSING, Ci.NONE)) is good
    if C.FAILED in states:
        assert ci in (Ci.FAILING, Ci.SETTLING)
