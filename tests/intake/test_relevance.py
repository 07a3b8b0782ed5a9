"""Deliveries that concern no session cost no read."""

import json
import random
from typing import Any

import pytest

from bot.intake.inbox import Inbox
from bot.store import Delivery
from scripts.faults.unrelated import unrelated
from tests.harness.observers import BRANCH, REPOSITORY, Bench

HERE = {"id": 1, "full_name": REPOSITORY}


def inbox_of(bench: Bench) -> Inbox:
    return Inbox(bench.store, frozenset({REPOSITORY}), lambda: None, triggers=bench.issues.triggers)


def subjects(bench: Bench, event: str, **payload: Any) -> list[str]:
    body = json.dumps({"repository": HERE, **payload}).encode()
    return [one.subject for one in inbox_of(bench).interpret(event, body)[0]]


def on_issue(number: int, *labels: str, **fields: Any) -> dict[str, Any]:
    return {"number": number, "labels": [{"name": name} for name in labels], **fields}


def on_pull(number: int, branch: str) -> dict[str, Any]:
    return {"number": number, "head": {"ref": branch}, "base": {"repo": {"id": 1}}}


COMMENT = {"id": 7, "created_at": "2026-11-20T10:00:00Z", "user": {"login": "eve", "type": "User"}}
CHECKS = ("check_run", "check_suite", "workflow_run")


@pytest.mark.parametrize(
    ("issue", "read"),
    [
        (on_issue(5), []),
        (on_issue(5, "bug"), []),
        (on_issue(5, "bug", "MergeWright"), ["issue:5"]),
        (on_issue(5, "mergewright:ada"), ["issue:5"]),
        (on_issue(12), ["issue:12"]),
        ({"number": 5}, ["issue:5"]),
        (on_issue(5, pull_request={}), ["other:5"]),
        (on_issue(34, pull_request={}), ["pull:34"]),
    ],
)
def test_an_issue_concerns_the_bot_by_its_session_or_its_labels(
    bench: Bench, issue: dict[str, Any], read: list[str]
) -> None:
    bench.pushed("a1")
    bench.pull()
    bench.reads()
    event = {"action": "created", "issue": issue, "comment": COMMENT}
    assert subjects(bench, "issue_comment", **event) == read
    if "pull_request" not in issue:
        assert subjects(bench, "issues", action="edited", issue=issue) == read


def test_the_label_that_an_event_removes_counts(bench: Bench) -> None:
    event = {"action": "unlabeled", "issue": on_issue(5), "label": {"name": "mergewright"}}
    assert subjects(bench, "issues", **event) == ["issue:5"]


def test_an_issue_that_blocks_another_has_that_one_read(bench: Bench) -> None:
    bench.github.blocked[12] = ("#5",)
    bench.labelled(12)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert subjects(bench, "issues", action="closed", issue=on_issue(5)) == ["issue:12"]


@pytest.mark.parametrize(
    ("pull", "read"),
    [
        (on_pull(5, "feature-5"), []),
        (on_pull(5, BRANCH), ["pull:5"]),
        (on_pull(34, "feature-5"), ["pull:34"]),
        ({"number": 5, "base": {"repo": {"id": 1}}}, ["other:5"]),
    ],
)
def test_a_pull_request_concerns_the_bot_by_its_session_or_its_branch(
    bench: Bench, pull: dict[str, Any], read: list[str]
) -> None:
    bench.pushed("a1")
    bench.pull()
    bench.reads()
    assert subjects(bench, "pull_request", pull_request=pull) == read
    for event in CHECKS:
        check = {"head_sha": "c1", "pull_requests": [pull]}
        assert subjects(bench, event, **{event: check}) == read
    said = {"action": "created", "pull_request": pull, "comment": COMMENT}
    assert subjects(bench, "pull_request_review_comment", **said) == read


def test_a_push_to_a_session_without_a_pull_request_costs_no_read(bench: Bench) -> None:
    bench.pushed("a1")
    push = {"ref": f"refs/heads/{BRANCH}"}
    assert subjects(bench, "push", **push) == []
    assert subjects(bench, "push", ref="refs/heads/main") == ["branch:main"]
    bench.pull()
    bench.reads()
    assert subjects(bench, "push", **push) == [f"branch:{BRANCH}"]


def test_a_flood_of_unrelated_deliveries_costs_nearly_no_request(bench: Bench) -> None:
    bench.pushed("a1")
    inbox, dice = inbox_of(bench), random.Random(1)
    sent = [unrelated(dice, HERE) for _ in range(1000)]
    inbox.accept(
        [
            Delivery(
                id=str(at), event=event, at=bench.scenario.clock(), body=json.dumps(body).encode()
            )
            for at, (event, body) in enumerate(sent)
        ]
    ).result(30)
    while inbox.process():
        pass
    assert {subject.partition(":")[0] for subject in bench.waiting()} == {"other"}
    while bench.pulls.read_requested():
        pass
    assert 1 <= len(bench.github.looked_up) <= 5
    assert bench.waiting() == []
