"""Draft until green, by policy; reviewers are asked only when it is green."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Failure
from lifecycle.model.key import parse
from lifecycle.model.policy import Mode
from lifecycle.model.status import CheckState, Origin, Reason, Status
from tests.lifecycle.decisions import AT_WORK, COMMIT, FAILED, decision, keys, with_pull
from tests.lifecycle.universe import NEXT, NOW, agent, ago, approval, check, done, pull

PENDING = (check(CheckState.PENDING),)
#: A required check that has not reported to GitHub.
EXPECTED = (check(CheckState.PENDING, required=True, reported=False),)


def drafted(**fields: Any) -> list[str]:
    """Return the keys of the `make_ready` actions for a draft pull request with these fields."""
    found = keys(with_pull({"draft": True, **fields}), draft=True)
    return [key for key in found if key.startswith("make_ready:")]


def test_a_green_draft_is_marked_ready() -> None:
    assert drafted() == ["make_ready:34"]
    assert drafted(checks=PENDING) == []
    assert drafted(checks=FAILED) == []


def test_a_draft_without_checks_is_marked_ready_after_the_settle_time() -> None:
    assert drafted(checks=(), head_since=ago(59)) == []
    assert drafted(checks=(), head_since=ago(60)) == ["make_ready:34"]
    for waits in ({"checks": EXPECTED}, {"checks": (), "checks_expected": ("unit",)}):
        assert drafted(**waits, head_since=ago(59)) == []
        assert decision(
            with_pull({"draft": True, **waits, "head_since": ago(59)}), draft=True
        ).recheck_at
        assert drafted(**waits, head_since=ago(60)) == ["make_ready:34"]
    assert drafted(checks=(*EXPECTED, *PENDING)) == []
    assert drafted(checks=(), checks_complete=False) == []


@pytest.mark.parametrize(
    "fields", [{"agent": AT_WORK}, {"work": COMMIT}], ids=["at work", "something to push"]
)
def test_a_draft_stays_one_while_the_agent_works_on_it(fields: dict[str, Any]) -> None:
    assert "make_ready:34" not in keys(with_pull({"draft": True}, **fields), draft=True)


def test_a_persons_draft_stays_a_draft() -> None:
    assert "make_ready:34" not in keys(with_pull({"draft": True}))
    assert "make_ready:34" not in keys(
        with_pull({"draft": True}, done=done("make_ready:34")), draft=True
    )


def test_an_adopted_draft_stays_a_draft() -> None:
    adopted = replace(with_pull({"draft": True}), origin=Origin.PULL)
    (theirs,) = adopted.pulls
    ours = replace(theirs, number=35, branch="another")
    theirs = replace(theirs, branch=adopted.branch)
    found = keys(replace(adopted, pulls=(theirs, ours)), draft=True)
    assert [key for key in found if key.startswith("make_ready:")] == ["make_ready:35"]


def test_a_pull_request_just_marked_ready_waits_for_checks_that_skip_drafts() -> None:
    ready = {"verdicts": (approval(),)}
    for checks in ((), (check(),)):
        fresh = decision(
            with_pull({**ready, "checks": checks}, done=done("make_ready:34", seconds_ago=59)),
            mode=Mode.MERGE,
        )
        assert fresh.status is Status.APPROVED
        assert [one.name for one in fresh.blockers] == ["not_settled"]
        assert fresh.recheck_at == ago(-1)
        later = with_pull({**ready, "checks": checks}, done=done("make_ready:34", seconds_ago=60))
        assert decision(later, mode=Mode.MERGE).status is Status.MERGEABLE


def test_reviewers_are_requested_once_when_checks_pass() -> None:
    reviewers = ("rob", "acme/core")
    asked = [
        a
        for a in decision(with_pull({}), reviewers=reviewers).actions
        if isinstance(a, do.RequestReview)
    ]
    assert asked == [
        do.RequestReview(key=parse("request_review:34"), number=34, reviewers=reviewers)
    ]
    again = with_pull({"head": NEXT}, done=done("request_review:34"))
    assert "request_review:34" not in keys(again, reviewers=reviewers)


def test_refused_reviewers_are_reported_once_and_block_nothing() -> None:
    failed = Failure(at=ago(60), reason=Reason.ACTION_FAILED, detail="there is no @rob")
    session = with_pull({}, failures={"request_review:34": failed})
    judged = decision(session, reviewers=("rob",))
    (warning,) = [a for a in judged.actions if str(a.key) == "warning:request_review:34"]
    assert isinstance(warning, do.Comment)
    because = warning.values["because"]
    assert because.startswith("the review could not be requested from rob: request it on GitHub")
    assert because.endswith("The error: there is no @rob")
    assert judged.status is decision(with_pull({}), reviewers=("rob",)).status
    assert "request_review:34" not in keys(session, reviewers=("rob",))
    assert "warning:request_review:34" not in keys(
        replace(session, done={**session.done, **done("warning:request_review:34")}),
        reviewers=("rob",),
    )


@pytest.mark.parametrize(
    "pulls",
    [{"checks": FAILED}, {"checks": PENDING}, {"draft": True}, {"checks": (), "head_since": NOW}],
    ids=["red", "running", "draft", "not settled"],
)
def test_no_review_is_requested_before_checks_pass(pulls: dict[str, Any]) -> None:
    assert "request_review:34" not in keys(with_pull(pulls), reviewers=("rob",))


def test_each_of_several_drafts_is_marked_ready_on_its_own() -> None:
    green, red = pull(draft=True), pull(number=35, branch="other", draft=True, checks=FAILED)
    session = with_pull({}, agent=agent())
    assert "make_ready:34" in keys(replace(session, pulls=(green, red)), draft=True)
    assert "make_ready:35" not in keys(replace(session, pulls=(green, red)), draft=True)
