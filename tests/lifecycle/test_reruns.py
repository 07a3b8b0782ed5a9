"""Cancelled, flaky and missing checks, and checks that fail on the base too."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Check, Facts, Failure
from lifecycle.model.key import parse
from lifecycle.model.keys import fingerprint
from lifecycle.model.status import Blocker, CheckState, Reason, Status
from tests.lifecycle.decisions import ci_cause, decision, keys, ordered, with_pull
from tests.lifecycle.universe import HEAD, ago, check, done

C = CheckState
CANCELLED = check(C.CANCELLED, run_id=7)
FLAKY = check(C.FAILED, flaky=True, run_id=8)
RERUN = f"rerun:{HEAD}"
UNSEEN = done(RERUN, seconds_ago=59)
SEEN = done(RERUN, seconds_ago=61)


def with_checks(*checks: Check, **facts: Any) -> Facts:
    return with_pull({"checks": checks}, **facts)


def messages(facts: Facts, **policy: Any) -> list[do.Action]:
    return [a for a in ordered(facts, **policy) if isinstance(a, do.SendMessage)]


def test_a_cancelled_check_blocks_and_is_not_sent_to_the_agent() -> None:
    judged = decision(with_checks(CANCELLED, check(name="b")))
    assert judged.blockers[0] == Blocker(
        "ci_held", "checks were cancelled, went stale or wait for a person: unit"
    )
    assert messages(with_checks(CANCELLED)) == []


def test_cancelled_checks_are_rerun_once_per_head() -> None:
    two = (CANCELLED, check(C.CANCELLED, "lint", run_id=9), check(name="b"))
    assert ordered(with_checks(*two)) == [do.Rerun(key=parse(RERUN), number=34, runs=(7, 9))]
    assert keys(with_checks(*two, done=UNSEEN)) == []


def test_no_check_is_rerun_while_others_run() -> None:
    assert keys(with_checks(CANCELLED, check(C.PENDING, "b"))) == []


def test_checks_cancelled_again_after_a_rerun_escalate() -> None:
    judged = decision(with_checks(CANCELLED, done=SEEN))
    assert (judged.status, judged.reason) == (Status.NEEDS_INPUT, Reason.CHECKS_HELD)
    assert decision(with_checks(CANCELLED, done=UNSEEN)).status is Status.PR_OPEN


def test_a_refused_rerun_escalates_at_once() -> None:
    no = {RERUN: Failure(at=ago(1), reason=Reason.ACTION_FAILED, detail="403")}
    assert decision(with_checks(CANCELLED, failures=no)).reason is Reason.CHECKS_HELD
    assert len(messages(with_checks(FLAKY, failures=no))) == 1


def test_a_cancelled_check_without_a_run_escalates_at_once() -> None:
    assert decision(with_checks(check(C.CANCELLED))).reason is Reason.CHECKS_HELD


@pytest.mark.parametrize("state", [C.ACTION_REQUIRED, C.STALE])
def test_checks_that_are_stale_or_need_action_escalate_and_are_not_sent(
    state: CheckState,
) -> None:
    facts = with_checks(check(state, run_id=7))
    assert decision(facts).reason is Reason.CHECKS_HELD
    assert [type(action) for action in ordered(facts)] == [do.Comment]


def test_flaky_checks_are_rerun_once_before_the_agent_gets_them() -> None:
    assert ordered(with_checks(FLAKY)) == [do.Rerun(key=parse(RERUN), number=34, runs=(8,))]
    assert keys(with_checks(FLAKY, done=UNSEEN)) == []
    assert keys(with_checks(FLAKY, done=SEEN)) == [f"{ci_cause('unit')}#1"]


def test_flaky_checks_beside_another_failure_are_sent_at_once() -> None:
    assert keys(with_checks(FLAKY, check(C.FAILED, "lint"))) == [f"{ci_cause('unit', 'lint')}#1"]


def test_an_optional_flaky_check_is_ignored() -> None:
    assert keys(with_checks(FLAKY, check(name="b", required=True))) == []


# -- red on the base -------------------------------------------------------------------------------

ON_BASE = check(C.FAILED, red_on_base=True)


def test_checks_that_fail_on_the_base_too_escalate_and_are_not_sent() -> None:
    facts = with_checks(ON_BASE)
    judged = decision(facts)
    assert (judged.status, judged.reason) == (Status.NEEDS_INPUT, Reason.BASE_RED)
    assert judged.because == "all failed checks also fail on main: unit"
    assert f"notice:base_red:{HEAD}:{fingerprint(['ci/unit'])}" in keys(facts)
    assert messages(facts) == []
    assert (
        Blocker("ci_failing", "failing checks: unit (also fails on the base branch)")
        in judged.blockers
    )


def test_the_agent_gets_its_own_failures_and_the_names_of_the_bases() -> None:
    (tell,) = ordered(with_checks(ON_BASE, check(C.FAILED, "lint")))
    assert isinstance(tell, do.SendMessage)
    assert str(tell.key) == f"{ci_cause('lint')}#1"
    assert [item["name"] for item in tell.prompt.items] == ["lint"]
    assert tell.prompt.values["red_on_base"] == "unit"


def test_failures_on_the_base_do_not_escalate_while_checks_run() -> None:
    assert decision(with_checks(ON_BASE, check(C.PENDING, "b"))).status is Status.CI_FAILED


def test_a_failure_that_the_base_no_longer_has_goes_to_the_agent() -> None:
    assert keys(with_checks(replace(ON_BASE, red_on_base=False))) == [f"{ci_cause('unit')}#1"]


# -- none at all -----------------------------------------------------------------------------------


def test_without_checks_a_head_is_not_ready_before_the_settle_time() -> None:
    fresh = decision(with_pull({"checks": (), "head_since": ago(59)}))
    assert Blocker("not_settled", "checks may still start after the last push") in fresh.blockers
    assert (
        decision(with_pull({"checks": (), "head_since": ago(60)})).status is Status.REVIEW_PENDING
    )


def test_incompletely_read_checks_are_a_blocker() -> None:
    judged = decision(with_pull({"checks_complete": False}))
    assert (
        Blocker("ci_pending", "not all checks and reviews could be read from GitHub")
        in judged.blockers
    )
