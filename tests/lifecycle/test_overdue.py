"""Every wait ends in a person: what takes too long is named, again at growing intervals."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Issue
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import CheckState, Merge, Reason, Status
from tests.lifecycle.decisions import AT_WORK, READY, decision, effects, with_pull
from tests.lifecycle.measured import rested
from tests.lifecycle.universe import (
    HEAD,
    NOW,
    ago,
    approval,
    check,
    command,
    done,
    ended,
    facts,
    remark,
    thread,
)

DAY = timedelta(days=1)
PENDING = check(CheckState.PENDING, "wip")
SILENT = check(CheckState.PENDING, "build", required=True, reported=False)
ROBOT = replace(thread(remark(author="lint[bot]", bot=True, allowed=False)), outdated=True)

WAITS: dict[str, tuple[dict[str, Any], timedelta, str]] = {
    "a review": ({}, DAY, "a review is required"),
    "a check that runs for ever": (
        {**READY, "checks": (PENDING,)},
        timedelta(hours=2),
        "checks in progress: wip",
    ),
    "a required check that never reports": (
        {**READY, "checks": (SILENT,)},
        timedelta(hours=2),
        "required checks that have not reported yet: build",
    ),
    "a conversation that a rule wants resolved": (
        {**READY, "merge": Merge.PROTECTED, "threads": (ROBOT,)},
        DAY,
        "unresolved conversations: @lint[bot] on a.py:3",
    ),
    "GitHub's merge state": ({**READY, "merge": Merge.UNKNOWN}, DAY, "GitHub has not computed"),
    "a draft of a person": ({**READY, "draft": True}, DAY, "the pull request is a draft"),
    "the merge queue": (
        {**READY, "merge": Merge.QUEUED},
        DAY,
        "the pull request is in GitHub's merge queue",
    ),
}


def notices(found: Decision) -> list[str]:
    comments = [action for action in found.actions if isinstance(action, do.Comment)]
    return [one.values["because"] for one in comments if one.topic == "attention"]


@pytest.mark.parametrize(("fields", "after", "says"), WAITS.values(), ids=WAITS)
def test_people_are_notified_of_a_wait_by_its_name_and_age_at_growing_intervals(
    fields: dict[str, Any], after: timedelta, says: str
) -> None:
    since = ago(120)  # When the agent came to rest.
    if "checks" in fields:
        fields = {**fields, "pending_since": since}
    session = with_pull(fields)
    early = decide(session, Policy(), since + after - timedelta(microseconds=1))
    assert early.status is not Status.NEEDS_INPUT
    keys = set()
    for age in (after, 2 * after, 4 * after):
        found = decide(session, Policy(), since + age)
        assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.WAITED_TOO_LONG)
        (notice,) = notices(found)
        assert notice.startswith("the session has waited for more than ")
        assert notice.endswith(f"(session requested by @{session.requester})")
        assert says in notice
        assert found.recheck_at == since + 2 * age
        keys |= {str(a.key) for a in found.actions if isinstance(a, do.Comment)}
    assert len(keys) == 3


def test_people_are_notified_of_a_merge_that_the_bot_was_to_make_and_may_not() -> None:
    fields = {**READY, "barred": "lock", "base_branch": "main"}
    at, merges = ago(120) + DAY, Policy(mode=Mode.MERGE)
    (notice,) = notices(decide(with_pull(fields), merges, at))
    assert (
        "the session has waited for more than 1 day: the branch main is locked: only people who"
        in notice
    )
    assert notices(decide(with_pull(fields), merges, at - timedelta(seconds=1))) == []
    assert notices(decide(with_pull(fields), Policy(), at)) == [], "they are asked to merge it"


def test_a_wait_ends_with_its_cause() -> None:
    def reason(**fields: Any) -> Reason:
        return decision(rested(**fields)).reason

    late = Reason.WAITED_TOO_LONG
    assert reason() is late
    assert decision(rested(), wait_seconds=0).reason is not late
    assert decision(replace(rested(), agent=AT_WORK)).reason is not late
    assert decision(rested(verdicts=(approval(),))).status is Status.MERGEABLE
    assert reason(comments=(remark(),)) is not late
    assert reason(green_since=ago(60)) is not late
    assert reason(base_since=ago(60)) is not late
    assert reason(comments=(remark(allowed=False), remark(own=True))) is late
    asked = replace(rested(), commands=(command("status"),))
    assert decision(asked).reason is not late


def test_nothing_but_the_check_prolongs_the_wait_for_a_check() -> None:
    session = rested(checks=(PENDING,), pending_since=ago(7200), comments=(remark(),), **READY)
    assert decision(session).reason is Reason.WAITED_TOO_LONG


def test_people_are_notified_of_a_crashed_run_that_gets_no_slot() -> None:
    crashed = facts(slot=False, agent=ended(1, 86_400), created=ago(99_999))
    found = decision(replace(crashed, done=done("start:first#1", seconds_ago=90_000)))
    assert notices(found) == [
        "the session has waited for more than 1 day: the limit of concurrent sessions is reached "
        "(session requested by @alice)"
    ]


def test_a_merge_command_after_the_limit_merges_without_optional_checks() -> None:
    def merged(*checks: Any, said: float = 20, **policy: Any) -> bool:
        fields = {**READY, "checks": checks, "pending_since": ago(7220), "head_since": ago(9000)}
        words = command("merge", head=HEAD, at=ago(said))
        found = effects(decision(with_pull(fields, commands=(words,)), **policy))
        return any(isinstance(action, do.MergePull) for action in found)

    assert merged(PENDING)
    assert merged(check(), PENDING)
    assert not merged(PENDING, said=21)
    assert not merged(SILENT)
    assert not merged(check(CheckState.FAILED), PENDING)
    assert not merged(PENDING, checks_pending_seconds=0)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"issue": Issue(number=12, title="x", blocked_by=("#7",))}, "the session waits for #7"),
        ({"slot": False, "waits": "the server is at its limit"}, "the server is at its limit"),
    ],
)
def test_people_are_notified_of_a_start_that_waits_too_long(
    fields: dict[str, Any], says: str
) -> None:
    waiting = replace(facts(run=0, agent=Agent(), created=NOW, **fields), done={})
    assert decide(waiting, Policy(), NOW + DAY - timedelta(seconds=1)).because == says
    found = decide(waiting, Policy(), NOW + DAY)
    assert found.status is Status.QUEUED
    waited = "the session has waited for more than 1 day to start"
    assert notices(found) == [f"{waited}: {says} (session requested by @alice)"]
    assert found.recheck_at == NOW + 2 * DAY
