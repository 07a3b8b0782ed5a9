"""Tests the value of each default of `Policy`, and that another value changes a decision."""

from typing import Any

import pytest
from msgspec.structs import fields, replace

from lifecycle.decide import decide
from lifecycle.model.facts import Facts, Spending, Work
from lifecycle.model.policy import (
    PROTECTED_PATHS,
    AutoMerge,
    MergeMethod,
    Mode,
    NothingToShow,
    Policy,
)
from lifecycle.model.status import Activity, CheckState, PullState, Review, Status
from lifecycle.read.availability import Availability
from tests.lifecycle.decisions import with_pull
from tests.lifecycle.defaults import (
    BUDGET_CHOICES,
    Choice,
    Reading,
    Threshold,
    availability,
    of_action,
    orders,
    reported_cost,
    status,
)
from tests.lifecycle.measured import (
    asked_for_changes,
    chatting,
    crashed_runs,
    dollars,
    failed_probes,
    in_conflict,
    merged,
    over,
    pushed,
    red,
    reported,
    rested,
    unanswered_review,
    vanished,
    waiting,
)
from tests.lifecycle.test_missing_checks import without_checks
from tests.lifecycle.universe import (
    BASE,
    HEAD,
    NOW,
    agent,
    ago,
    approval,
    check,
    done,
    ended,
    facts,
    published,
    pull,
    remark,
    thread,
)

#: A thread that was sent to the agent, and a push by the agent since.
ANSWERED = published(
    pulls=(pull(threads=(thread(),)),),
    done=done("remark:thread-comment-1#1") | done(f"push:{HEAD}", seconds_ago=500),
)
APPROVED = published(pulls=(pull(verdicts=(approval(),)),))
#: A commit that is pushed and has no pull request yet.
READY_TO_SHOW = facts(work=Work(base=BASE, head=HEAD, dirty=False), done=done(f"push:{HEAD}"))
MERGED = published(pulls=(pull(state=PullState.MERGED, merged_at=ago(10)),))

THRESHOLDS = {
    "checks_pending_seconds": Threshold(
        7200.0,
        lambda seconds: rested(checks=(check(CheckState.PENDING),), pending_since=ago(seconds)),
        status,
        Status.PR_OPEN,
        Status.NEEDS_INPUT,
    ),
    "wait_seconds": Threshold(
        86_400.0,
        lambda seconds: rested(head_since=ago(seconds)),
        status,
        Status.REVIEW_PENDING,
        Status.NEEDS_INPUT,
    ),
    "checks_missing_seconds": Threshold(
        1800.0,
        lambda seconds: without_checks(seconds=seconds),
        status,
        Status.APPROVED,
        Status.NEEDS_INPUT,
    ),
    "ci_repairs": Threshold(3, red, status, Status.CI_FAILED, Status.NEEDS_INPUT),
    "conflict_repairs": Threshold(
        3, in_conflict, orders("resolve_conflict:"), below=True, at=False
    ),
    "review_rounds": Threshold(
        10, asked_for_changes, status, Status.CHANGES_REQUESTED, Status.NEEDS_INPUT
    ),
    "restarts": Threshold(
        3, lambda n: crashed_runs("crash", n, ""), status, Status.WORKING, Status.ERRORED
    ),
    "lost_runs": Threshold(
        10, lambda n: crashed_runs("lost", n, "reboot"), status, Status.WORKING, Status.KILLED
    ),
    "settle_seconds": Threshold(
        60,
        lambda s: published(pulls=(pull(checks=(), head_since=ago(s), verdicts=(approval(),)),)),
        status,
        Status.APPROVED,
        Status.MERGEABLE,
    ),
    "review_debounce_seconds": Threshold(
        60,
        lambda s: published(pulls=(pull(comments=(remark(seconds_ago=s),)),)),
        orders("address_review:"),
        below=False,
        at=True,
    ),
    "review_escalation_seconds": Threshold(
        1800, unanswered_review, status, Status.CHANGES_REQUESTED, Status.NEEDS_INPUT
    ),
    "idle_seconds": Threshold(
        300,
        lambda s: facts(agent=agent(seconds_ago=s)),
        status,
        Status.WORKING,
        Status.NEEDS_INPUT,
    ),
    "stuck_seconds": Threshold(
        600,
        lambda s: facts(agent=agent(Activity.BLOCKED, s, error="529")),
        status,
        Status.WORKING,
        Status.STUCK,
    ),
    "message_grace_seconds": Threshold(
        15,
        lambda s: facts(agent=agent(seconds_ago=60), done=done("fix_ci:x:y#1", seconds_ago=s)),
        availability,
        Availability.ACTIVE,
        Availability.IDLE,
    ),
    "restart_seconds": Threshold(
        5, lambda s: facts(agent=ended(1, s)), orders("start:crash#"), below=False, at=True
    ),
    "merge_grace_seconds": Threshold(300, merged, orders("release"), below=False, at=True),
    "activity_timeout_seconds": Threshold(
        300,
        lambda s: facts(agent=agent(Activity.ACTIVE, s)),
        availability,
        Availability.ACTIVE,
        Availability.UNKNOWN,
    ),
    "probe_seconds": Threshold(300, failed_probes, status, Status.WORKING, Status.STUCK),
    "probe_rounds": Threshold(
        3,
        lambda rounds: failed_probes(9000, rounds),
        status,
        Status.WORKING,
        Status.STUCK,
    ),
    "recent_activity_seconds": Threshold(
        60, vanished, availability, Availability.UNKNOWN, Availability.CRASHED
    ),
    "spawn_seconds": Threshold(
        600,
        lambda s: replace(facts(start_due=ago(s), run=1), done={}),
        status,
        Status.SPAWNING,
        Status.ERRORED,
    ),
    "park_seconds": Threshold(900, waiting, orders("park:rest#"), below=False, at=True),
    "chat_idle_seconds": Threshold(3600, chatting, status, Status.WORKING, Status.PAUSED),
    "session_usd": Threshold(5, dollars("spent"), status, Status.WORKING, Status.PAUSED, 0.01),
    "session_hours": Threshold(
        2,
        lambda hours: facts(spent=Spending(active_seconds=3600 * hours)),
        status,
        Status.WORKING,
        Status.PAUSED,
        0.01,
    ),
    "session_tokens": Threshold(
        5_000_000,
        lambda tokens: facts(spent=Spending(tokens=int(tokens))),
        status,
        Status.WORKING,
        Status.PAUSED,
    ),
    "day_usd": Threshold(25, dollars("spent_today"), status, Status.WORKING, Status.PAUSED, 0.01),
    "budget_warning": Threshold(
        0.8,
        lambda part: facts(spent=Spending(cost_usd=5 * part)),
        orders("warning:budget:session"),
        below=False,
        at=True,
        step=0.01,
    ),
    "workspace_days": Threshold(
        14, lambda days: over(86_400 * days), orders("release"), below=False, at=True
    ),
    "report_seconds": Threshold(60, reported, orders("report:12:1:"), below=False, at=True),
    "self_review_seconds": Threshold(
        1800,
        lambda s: replace(
            READY_TO_SHOW,
            agent=agent(Activity.ACTIVE, 5),
            done=dict(READY_TO_SHOW.done) | done(f"self_review:{HEAD}#1", seconds_ago=s),
        ),
        orders("open_pull:"),
        below=False,
        at=True,
        also={"self_review": True},
    ),
    "pushes_per_hour": Threshold(10, pushed, orders("push:"), below=True, at=False),
}


def of_push(field: str, default: Any, other: Any) -> Choice:
    """Return the `Choice` for a setting that sets the field `field` of the action `Publish`."""
    work = Work(base=BASE, head=HEAD, dirty=False)
    return Choice(
        default, other, facts(work=work), of_action("push:", field), says=default, otherwise=other
    )


CHOICES = {
    "expect_checks": Choice(
        True, False, without_checks(), status, Status.APPROVED, Status.MERGEABLE
    ),
    "mode": Choice(
        Mode.PROPOSE, Mode.MERGE, APPROVED, orders("merge:"), says=False, otherwise=True
    ),
    "auto_merge": Choice(
        AutoMerge.WHEN_APPROVED,
        AutoMerge.ON_COMMAND,
        APPROVED,
        orders("merge:"),
        says=True,
        otherwise=False,
        also={"mode": Mode.MERGE},
    ),
    "merge_method": Choice(
        MergeMethod.SQUASH,
        MergeMethod.REBASE,
        APPROVED,
        of_action("merge:", "method"),
        MergeMethod.SQUASH,
        MergeMethod.REBASE,
        {"mode": Mode.MERGE},
    ),
    "self_review": Choice(
        False,
        True,
        READY_TO_SHOW,
        orders("self_review:"),
        says=False,
        otherwise=True,
    ),
    "draft": Choice(
        False,
        True,
        READY_TO_SHOW,
        of_action("open_pull:", "draft"),
        says=False,
        otherwise=True,
    ),
    "check_run": Choice(
        True, False, published(), orders("report_check:"), says=True, otherwise=False
    ),
    "state_labels": Choice(
        False, True, facts(), orders("show_status:"), says=False, otherwise=True
    ),
    "public_cost": Choice(
        False,
        True,
        facts(spent_ever=Spending(cost_usd=1)),
        reported_cost,
        says="",
        otherwise="1.00 USD",
    ),
    "reviewers": Choice(
        (), ("rob",), published(), orders("request_review:"), says=False, otherwise=True
    ),
    "delete_branch": Choice(
        True, False, MERGED, orders("delete_branch:"), says=True, otherwise=False
    ),
    "close_issue": Choice(True, False, MERGED, orders("close_issue"), says=True, otherwise=False),
    "require_review": Choice(
        True, False, published(), status, Status.REVIEW_PENDING, Status.MERGEABLE
    ),
    "contributors_approve": Choice(
        False,
        True,
        with_pull({"verdicts": (approval(),), "contributors": frozenset({"rob"})}),
        status,
        Status.REVIEW_PENDING,
        Status.MERGEABLE,
    ),
    "blocking_labels": Choice(
        ("do-not-merge",),
        (),
        with_pull({"verdicts": (approval(),), "labels": ("do-not-merge",)}),
        status,
        Status.APPROVED,
        Status.MERGEABLE,
    ),
    "blocking_titles": Choice(
        ("^(WIP|DO NOT MERGE)",),
        (),
        with_pull({"verdicts": (approval(),), "title": "WIP: x"}),
        status,
        Status.APPROVED,
        Status.MERGEABLE,
    ),
    "threads_block": Choice(
        True,
        False,
        published(pulls=(pull(threads=(thread(),), review=Review.APPROVED),)),
        status,
        Status.CHANGES_REQUESTED,
        Status.REVIEW_PENDING,
    ),
    "resolve_threads": Choice(
        False,
        True,
        ANSWERED,
        of_action("reply:", "resolve"),
        says=False,
        otherwise=True,
    ),
    "bots": Choice(
        (),
        ("lintbot",),
        published(pulls=(pull(comments=(remark(author="lintbot", bot=True),)),)),
        orders("address_review:"),
        says=False,
        otherwise=True,
    ),
    "protected_paths": of_push("protected", PROTECTED_PATHS, ("ci/**",)),
    "max_file_mb": of_push("max_file_mb", 25, 50),
    "commit_authors": of_push("commit_authors", (), ("*",)),
    "sign_commits": of_push("sign", False, True),
    "nothing_to_show": Choice(
        NothingToShow.ASK,
        NothingToShow.DONE,
        facts(agent=ended(0)),
        status,
        Status.NEEDS_INPUT,
        Status.DONE,
    ),
    **BUDGET_CHOICES,
}

#: Defaults that matter outside the core, where tests/act holds them.
ELSEWHERE = {"start_tries"}


def read(session: Facts, reading: Reading, **policy: Any) -> object:
    return reading(decide(session, Policy(**policy), NOW))


def test_every_default_is_covered() -> None:
    names = {field.name for field in fields(Policy)}
    assert len(THRESHOLDS) + len(CHOICES) + len(ELSEWHERE) == len(names)
    assert THRESHOLDS.keys() | CHOICES.keys() | ELSEWHERE == names


@pytest.mark.parametrize("name", THRESHOLDS)
def test_a_default_threshold_takes_effect_at_its_value(name: str) -> None:
    row = THRESHOLDS[name]
    assert getattr(Policy(), name) == row.default
    assert read(row.given(row.default - row.step), row.reading, **row.also) == row.below
    assert read(row.given(row.default), row.reading, **row.also) == row.at


@pytest.mark.parametrize("name", THRESHOLDS)
def test_another_threshold_changes_the_decision(name: str) -> None:
    row = THRESHOLDS[name]
    higher = {**row.also, name: row.default + row.step}
    lower = {**row.also, name: row.default - row.step}
    assert read(row.given(row.default), row.reading, **higher) == row.below
    assert read(row.given(row.default - row.step), row.reading, **lower) == row.at


@pytest.mark.parametrize("name", CHOICES)
def test_another_choice_changes_the_decision(name: str) -> None:
    row = CHOICES[name]
    assert getattr(Policy(), name) == row.default
    assert read(row.given, row.reading, **row.also) == row.says
    assert read(row.given, row.reading, **{**row.also, name: row.other}) == row.otherwise
