"""Webhook events, parsed from payloads of the shape GitHub documents."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bot.intake.changes import ParsedEvent
from bot.intake.events import EVENTS, parse_event

PAYLOADS = Path(__file__).parent / "payloads"
SHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
SUBJECTS = {
    "check_run": ["pull:34"],
    "check_suite": ["pull:34"],
    "installation": ["repository:"],
    "installation_repositories": ["repository:"],
    "issue_comment": ["issue:12"],
    "issue_dependencies": ["issue:12"],
    "issues": ["issue:12"],
    "merge_group": ["pull:34"],
    "ping": [],
    "pull_request": ["pull:34"],
    "pull_request_review": ["pull:34"],
    "pull_request_review_comment": ["pull:34"],
    "pull_request_review_thread": ["pull:34"],
    "push": ["branch:mergewright/12-retry"],
    "repository": ["repository:"],
    "status": [f"sha:{SHA}"],
    "workflow_run": ["pull:34"],
}


def payload(event: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((PAYLOADS / f"{event}.json").read_bytes())
    return loaded


def read(event: str, body: Mapping[str, Any]) -> ParsedEvent:
    return parse_event(event, json.dumps(body).encode())


def subjects(parsed: ParsedEvent) -> list[str]:
    assert all(changed.repository.full_name == "acme/widgets" for changed in parsed.changed)
    return [changed.subject for changed in parsed.changed]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_names_the_subject_that_changed(event: str) -> None:
    assert subjects(read(event, payload(event))) == SUBJECTS[event]


def test_every_event_has_a_sample_payload() -> None:
    assert {path.stem for path in PAYLOADS.iterdir()} == set(EVENTS)


@pytest.mark.parametrize(
    "action",
    [
        *("opened", "edited", "closed", "reopened", "deleted", "transferred"),
        *("labeled", "unlabeled", "assigned", "unassigned"),
    ],
)
def test_actions_on_an_issue_refresh_it(action: str) -> None:
    assert subjects(read("issues", payload("issues") | {"action": action})) == ["issue:12"]


def test_actions_that_concern_no_session_refresh_nothing() -> None:
    assert subjects(read("issues", payload("issues") | {"action": "pinned"})) == []


def test_a_label_on_a_pull_request_refreshes_the_pull_request() -> None:
    assert subjects(read("pull_request", payload("pull_request") | {"action": "labeled"})) == [
        "pull:34"
    ]


def test_a_comment_on_a_pull_request_refreshes_the_pull_request() -> None:
    body = payload("issue_comment")
    body["issue"] |= {"number": 34, "pull_request": {"url": "https://api.github.com/x"}}
    assert subjects(read("issue_comment", body)) == ["pull:34"]


def test_a_comment_whose_pull_request_is_null_refreshes_the_issue() -> None:
    body = payload("issue_comment")
    body["issue"]["pull_request"] = None
    assert subjects(read("issue_comment", body)) == ["issue:12"]


def test_a_new_comment_is_returned_for_its_commands() -> None:
    comment = read("issue_comment", payload("issue_comment")).written
    assert comment is not None
    assert (comment.kind, comment.id, comment.number) == ("comment", 99, 12)
    assert comment.repository.full_name == "acme/widgets"
    assert (comment.author, comment.author_type, comment.body) == (
        "mara",
        "User",
        "/mergewright stop",
    )
    assert comment.at.isoformat() == "2026-11-20T10:00:00+00:00"


REVIEWS = [
    ("pull_request_review", "review", "review"),
    ("pull_request_review_comment", "comment", "line"),
]


@pytest.mark.parametrize(("event", "part", "kind"), REVIEWS)
def test_a_new_review_is_returned_for_its_commands(event: str, part: str, kind: str) -> None:
    body = payload(event)
    body[part] |= {"id": 5, "body": "/mergewright merge"}
    text = read(event, body).written
    assert text is not None
    assert (text.kind, text.id, text.number, text.author) == (kind, 5, 34, "lena")
    assert (text.body, text.at.hour) == ("/mergewright merge", 10)


@pytest.mark.parametrize("event", ["issue_comment", *(event for event, *_ in REVIEWS)])
@pytest.mark.parametrize("action", ["edited", "deleted", "dismissed"])
def test_edited_deleted_and_dismissed_texts_hold_no_command(event: str, action: str) -> None:
    parsed = read(event, payload(event) | {"action": action})
    assert parsed.written is None
    assert subjects(parsed) == SUBJECTS[event]


def test_a_comment_of_a_deleted_account_holds_no_command() -> None:
    body = payload("issue_comment")
    body["comment"]["user"] = None
    assert read("issue_comment", body).written is None


@pytest.mark.parametrize("event", ["check_run", "check_suite", "workflow_run"])
def test_a_check_without_pull_requests_refreshes_its_commit(event: str) -> None:
    body = payload(event)
    body[event]["pull_requests"] = []
    assert subjects(read(event, body)) == [f"sha:{SHA}"]


@pytest.mark.parametrize("event", ["check_run", "check_suite", "workflow_run"])
def test_a_check_never_refreshes_a_pull_request_of_another_repository(event: str) -> None:
    body = payload(event)
    body[event]["pull_requests"][0]["base"]["repo"]["id"] = 4
    assert subjects(read(event, body)) == [f"sha:{SHA}"]


@pytest.mark.parametrize("action", ["deleted", "suspend"])
def test_a_removed_or_suspended_installation_refreshes_nothing(action: str) -> None:
    assert subjects(read("installation", payload("installation") | {"action": action})) == []


def test_an_installation_without_a_list_of_repositories_refreshes_nothing() -> None:
    body = payload("installation") | {"action": "unsuspend"}
    del body["repositories"]
    assert subjects(read("installation", body)) == []


def test_a_repository_removed_from_the_installation_is_not_refreshed() -> None:
    body = payload("installation_repositories")
    body |= {"repositories_added": [], "repositories_removed": body["repositories_added"]}
    assert subjects(read("installation_repositories", body)) == []


@pytest.mark.parametrize("action", ["renamed", "transferred", "archived", "unarchived", "edited"])
def test_a_changed_repository_is_refreshed_as_a_whole(action: str) -> None:
    assert subjects(read("repository", payload("repository") | {"action": action})) == [
        "repository:"
    ]


@pytest.mark.parametrize("action", ["created", "deleted"])
def test_a_new_or_deleted_repository_is_not_refreshed(action: str) -> None:
    assert subjects(read("repository", payload("repository") | {"action": action})) == []


def test_a_merge_group_refreshes_the_pull_request_its_branch_ends_with() -> None:
    body = payload("merge_group")
    body["merge_group"]["head_ref"] = f"refs/heads/gh-readonly-queue/release/pr-1/pr-35-{SHA}"
    assert subjects(read("merge_group", body)) == ["pull:35"]


def test_a_merge_group_on_another_branch_refreshes_nothing() -> None:
    body = payload("merge_group")
    body["merge_group"]["head_ref"] = "refs/heads/queue/34"
    assert subjects(read("merge_group", body)) == []


def test_a_dependency_refreshes_the_blocked_issue_in_its_own_repository() -> None:
    body = payload("issue_dependencies")
    body["blocked_issue_repo"] = body["repository"]
    body["repository"] = body["repository"] | {"id": 5, "full_name": "acme/gears"}
    assert subjects(read("issue_dependencies", body)) == ["issue:12"]


def test_a_dependency_without_a_blocked_issue_refreshes_nothing() -> None:
    body = payload("issue_dependencies")
    del body["blocked_issue"]
    assert subjects(read("issue_dependencies", body)) == []


def test_a_pushed_tag_refreshes_nothing() -> None:
    assert subjects(read("push", payload("push") | {"ref": "refs/tags/v1"})) == []


@pytest.mark.parametrize("event", sorted(set(EVENTS) - {"ping"}))
@pytest.mark.parametrize("body", [b"", b'{"action": "crea', b"[]", b"{}", b"\xff\xfe", b"null"])
def test_a_body_of_another_shape_is_refused(event: str, body: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeError)):
        parse_event(event, body)


@pytest.mark.parametrize(
    ("part", "name", "number"),
    [
        *(("issue", "number", number) for number in (0, -1, 2**31, 10**30, 1e300)),
        *(("repository", "id", number) for number in (2**63, 10**30)),
    ],
)
def test_numbers_that_no_issue_or_repository_has_are_refused(
    part: str, name: str, number: float
) -> None:
    body = payload("issues")
    body[part][name] = number
    with pytest.raises(msgspec.DecodeError):
        read("issues", body)


def test_a_queues_branch_of_a_number_that_no_pull_request_has_refreshes_nothing() -> None:
    body = payload("merge_group")
    for number in ("9" * 10, "9" * 5000):
        body["merge_group"]["head_ref"] = f"refs/heads/gh-readonly-queue/main/pr-{number}-0a1b"
        assert subjects(read("merge_group", body)) == []


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RecursionError):
        parse_event("issues", b'{"x":' + b"[" * 100_000)


@pytest.mark.parametrize("event", EVENTS)
def test_events_about_installations_and_repositories_refresh_the_bots_access(event: str) -> None:
    asks = {"installation", "installation_repositories", "repository"}
    assert read(event, payload(event)).access_changed is (event in asks)


@pytest.mark.parametrize("action", ["deleted", "suspend", "unsuspend", "new_permissions_accepted"])
def test_every_action_on_an_installation_refreshes_the_bots_access(action: str) -> None:
    assert read("installation", payload("installation") | {"action": action}).access_changed
