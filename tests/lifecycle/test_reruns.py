"""Checks that prove nothing yet: cancelled, flaky, red on the base, waiting for a person."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Check, Facts, Failure
from lifecycle.model.key import parse
from lifecycle.model.status import CheckState, Reason, Status
from tests.lifecycle.asking import asked, ci_cause, decision, keys, of
from tests.lifecycle.universe import HEAD, ago, check, done

C = CheckState
CANCELLED = check(C.CANCELLED, run_id=7)
FLAKY = check(C.FAILED, flaky=True, run_id=8)
RERUN = f"rerun:{HEAD}"
UNSEEN = done(RERUN, seconds_ago=59)
SEEN = done(RERUN, seconds_ago=61)


def given(*checks: Check, **facts: Any) -> Facts:
    return of({"checks": checks}, **facts)


def told(facts: Facts, **policy: Any) -> list[do.Action]:
    return [a for a in asked(facts, **policy) if isinstance(a, do.SendMessage)]


def test_a_cancelled_check_counts_as_failed_and_does_not_nudge_the_agent() -> None:
    judged = decision(given(CANCELLED, check(name="b")))
    assert judged.blockers[0] == "ci_failing: checks were cancelled or wait for a person: unit"
    assert told(given(CANCELLED)) == []


def test_cancelled_checks_are_run_once_more_for_a_head() -> None:
    two = (CANCELLED, check(C.CANCELLED, "lint", run_id=9), check(name="b"))
    assert asked(given(*two)) == [do.Rerun(key=parse(RERUN), number=34, runs=(7, 9))]
    assert keys(given(*two, done=UNSEEN)) == []


def test_while_others_run_nothing_is_run_once_more() -> None:
    assert keys(given(CANCELLED, check(C.PENDING, "b"))) == []


def test_after_the_second_run_people_are_told() -> None:
    judged = decision(given(CANCELLED, done=SEEN))
    assert (judged.status, judged.reason) == (Status.NEEDS_INPUT, Reason.CHECKS_HELD)
    assert decision(given(CANCELLED, done=UNSEEN)).status is Status.PR_OPEN


def test_where_a_second_run_is_refused_people_are_told_at_once() -> None:
    no = {RERUN: Failure(at=ago(1), reason=Reason.ACTION_FAILED, detail="403")}
    assert decision(given(CANCELLED, failures=no)).reason is Reason.CHECKS_HELD
    assert len(told(given(FLAKY, failures=no))) == 1


def test_what_has_no_run_to_repeat_is_told_to_people_at_once() -> None:
    assert decision(given(check(C.CANCELLED))).reason is Reason.CHECKS_HELD


@pytest.mark.parametrize("state", [C.ACTION_REQUIRED, C.STALE])
def test_what_asks_for_a_person_or_is_stale_goes_to_people_and_not_to_the_agent(
    state: CheckState,
) -> None:
    facts = given(check(state, run_id=7))
    assert decision(facts).reason is Reason.CHECKS_HELD
    assert [type(action) for action in asked(facts)] == [do.Comment]


def test_flaky_checks_get_one_more_run_before_the_agent_hears_of_them() -> None:
    assert asked(given(FLAKY)) == [do.Rerun(key=parse(RERUN), number=34, runs=(8,))]
    assert keys(given(FLAKY, done=UNSEEN)) == []
    assert keys(given(FLAKY, done=SEEN)) == [f"{ci_cause('unit')}#1"]


def test_beside_another_failure_flaky_ones_are_told_at_once() -> None:
    assert keys(given(FLAKY, check(C.FAILED, "lint"))) == [f"{ci_cause('unit', 'lint')}#1"]


def test_a_flaky_check_that_is_not_required_where_others_are_is_left_alone() -> None:
    assert keys(given(FLAKY, check(name="b", required=True))) == []


# -- red on the base -------------------------------------------------------------------------------

ON_BASE = check(C.FAILED, red_on_base=True)


def test_what_is_red_on_the_base_too_is_told_to_people_and_not_to_the_agent() -> None:
    facts = given(ON_BASE)
    judged = decision(facts)
    assert (judged.status, judged.reason) == (Status.NEEDS_INPUT, Reason.BASE_RED)
    assert "also fail on main: unit" in judged.because
    assert told(facts) == []
    assert "ci_failing: failing checks: unit (also fails on the base branch)" in judged.blockers


def test_beside_failures_of_its_own_the_agent_is_told_which_are_the_bases() -> None:
    (tell,) = asked(given(ON_BASE, check(C.FAILED, "lint")))
    assert isinstance(tell, do.SendMessage)
    assert str(tell.key) == f"{ci_cause('lint')}#1"
    assert [item["name"] for item in tell.prompt.items] == ["lint"]
    assert tell.prompt.values["red_on_base"] == "unit"


def test_while_checks_run_the_base_is_no_matter_yet() -> None:
    assert decision(given(ON_BASE, check(C.PENDING, "b"))).status is Status.CI_FAILED


def test_a_base_that_is_mended_gives_the_failure_back_to_the_agent() -> None:
    assert keys(given(replace(ON_BASE, red_on_base=False))) == [f"{ci_cause('unit')}#1"]


# -- none at all -----------------------------------------------------------------------------------


def test_no_checks_are_not_green_before_the_settle_time() -> None:
    fresh = decision(of({"checks": (), "head_since": ago(59)}))
    assert "not_settled: checks may still start after the last push" in fresh.blockers
    assert decision(of({"checks": (), "head_since": ago(60)})).status is Status.REVIEW_PENDING


def test_no_checks_are_never_ready_where_the_base_had_some() -> None:
    judged = decision(of({"checks": (), "checks_expected": True}))
    assert "ci_pending: expected checks have not reported yet" in judged.blockers


def test_checks_that_could_not_be_read_whole_are_said_to_be_so() -> None:
    judged = decision(of({"checks_complete": False}))
    assert "ci_pending: not all checks and reviews could be read from GitHub" in judged.blockers
