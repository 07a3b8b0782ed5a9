"""Webhooks: documented bodies, signatures, order and redelivery."""

import hashlib
import hmac
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Union

import httpx
import pytest
from githubkit_schemas.latest import models
from pydantic import TypeAdapter

from bot.demo.github.repository import Repository
from bot.demo.github.rest import manifests
from tests.demo.outside import Delivered, HookServer
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import eventually


@cache
def documented(event: str, action: str | None) -> TypeAdapter[Any]:
    """githubkit's model of an event with this action: those of all actions take seconds to load."""
    name = "Webhook" + f"{event}_{action or ''}".title().replace("_", "")
    names = {name, f"{name}Oneof0", f"{name}Oneof1"} & {*models.__all__}
    kinds: Any = Union[tuple(getattr(models, one) for one in names)]  # noqa: UP007
    return TypeAdapter(kinds)


def everything_happens(repo: Repository) -> None:
    """Cause every event at least once."""
    issue = repo.open_issue("Broken", "It is.", by="rob")
    issue.label("bug", by="rob")
    issue.unlabel("bug", by="rob")
    issue.edit(title="Very broken", body="Indeed.", by="rob")
    issue.close("rob")
    issue.reopen("rob")
    comment = issue.comment("Hm.", by="rob")
    comment.edit("Hm!", "rob")
    comment.delete("rob")
    repo.push("feat", {"README.md": "one\ntwo\n3\n"}, by="wright")
    pull = repo.open_pull("feat", title="Mend", by="wright", draft=True)
    repo.push("feat", {"more": "1\n"}, by="wright")
    pull.mark_ready("wright")
    pull.mark_draft("wright")
    pull.mark_ready("wright")
    pull.label("bug", by="rob")
    pull.edit(title="Fix it", by="wright")
    pull.request_review("alice", "wright")
    review = pull.review("rob", "CHANGES_REQUESTED", "No.", [("README.md", 3, "Why?")])
    review.edit("No!", "rob")
    pull.threads[0].reply("wright", "Because.")
    pull.threads[0].resolve("rob")
    pull.threads[0].unresolve("rob")
    review.dismiss("alice")
    pull.comment("Look.", by="wright")
    run = pull.check("unit", status="queued")
    run.start()
    run.complete("failure", log="Expected 2.")
    pull.status("deploy", "success", "https://deploy.example")
    pull.close("rob")
    pull.reopen("rob")
    pull.merge("rob")
    repo.delete_branch("feat", "rob")


@pytest.fixture
def all_deliveries(repo: Repository, hook_server: HookServer) -> Callable[[], list[Delivered]]:
    """What a hook on the repository gets, once all was delivered."""
    repo.webhook(hook_server.url, "secret")

    def delivered() -> list[Delivered]:
        last = repo.world.account("alice")
        repo.label("the last", by=last.login)
        eventually(
            lambda: hook_server.received and b"the last" in hook_server.received[-1].body,
            "the last event",
        )
        return hook_server.received[:-1]

    return delivered


def test_every_webhook_body_matches_githubs_documentation(
    repo: Repository, all_deliveries: Callable[[], list[Delivered]]
) -> None:
    everything_happens(repo)
    seen: dict[str, set[str | None]] = {}
    for delivered in all_deliveries():
        body = json.loads(delivered.body)
        known = seen.setdefault(delivered.event, set())
        action = body.get("action")
        if action not in known:
            documented(delivered.event, action).validate_json(delivered.body)
        known.add(action)
        assert body["repository"]["full_name"] == repo.full_name
        assert body["sender"]["login"]
    assert seen == {
        "ping": {None},
        "label": {"created"},
        "issues": {"opened", "labeled", "unlabeled", "edited", "closed", "reopened"},
        "issue_comment": {"created", "edited", "deleted"},
        "push": {None},
        "pull_request": {
            "opened",
            "synchronize",
            "ready_for_review",
            "converted_to_draft",
            "labeled",
            "edited",
            "review_requested",
            "closed",
            "reopened",
        },
        "pull_request_review": {"submitted", "edited", "dismissed"},
        "pull_request_review_comment": {"created"},
        "pull_request_review_thread": {"resolved", "unresolved"},
        "check_run": {"created", "completed"},
        "check_suite": {"completed"},
        "status": {None},
    }


def test_a_delivery_is_signed_and_carries_githubs_headers(
    repo: Repository, all_deliveries: Callable[[], list[Delivered]]
) -> None:
    repo.open_issue("$(naïve) 🙂", "\x1b[31m", by="rob")
    ping, opened = all_deliveries()
    signature = hmac.new(b"secret", opened.body, hashlib.sha256).hexdigest()
    assert opened.headers["X-Hub-Signature-256"] == f"sha256={signature}"
    assert opened.headers["User-Agent"].startswith("GitHub-Hookshot/")
    assert opened.headers["Content-Type"] == "application/json"
    assert opened.headers["X-GitHub-Hook-ID"] == ping.headers["X-GitHub-Hook-ID"]
    assert opened.headers["X-GitHub-Delivery"] != ping.headers["X-GitHub-Delivery"]
    assert json.loads(opened.body)["issue"]["title"] == "$(naïve) 🙂"


def test_deliveries_keep_the_order_of_events(
    repo: Repository, all_deliveries: Callable[[], list[Delivered]]
) -> None:
    for number in range(20):
        repo.open_issue(f"Number {number}", by="rob")
    titles = [json.loads(delivered.body)["issue"]["title"] for delivered in all_deliveries()[1:]]
    assert titles == [f"Number {number}" for number in range(20)]


def test_a_lost_delivery_is_redelivered_with_its_guid(
    github: FaultyGitHub,
    repo: Repository,
    hook_server: HookServer,
    all_deliveries: Callable[[], list[Delivered]],
) -> None:
    github.lose_next(2)
    issue = repo.open_issue("Broken", by="rob")
    issue.label("bug", by="rob")
    assert [delivered.event for delivered in all_deliveries()] == ["ping", "issues"]
    lost = [d for d in github.deliveries if d.hook.repo is repo and d.status_code == 502]
    assert [(d.event, d.action) for d in lost] == [("issues", "opened"), ("label", "created")]
    again = github.redeliver(lost[0].id)
    eventually(lambda: again.ok, "the redelivery")
    assert again.redelivery
    assert hook_server.received[-1].headers["X-GitHub-Delivery"] == lost[0].guid
    assert hook_server.received[-1].body == lost[0].body


def test_failed_connections_and_refused_deliveries_are_distinguished(
    github: FaultyGitHub, repo: Repository, hook_server: HookServer
) -> None:
    def statuses() -> list[Any]:
        return [d.status_code for d in github.deliveries if d.hook.repo is repo]

    hook_server.status = 500
    repo.webhook(hook_server.url, "secret")
    repo.webhook("http://127.0.0.1:1/nobody", "secret")
    eventually(lambda: statuses() == [500, 502], "both answers")


def test_an_installed_app_is_named_and_gets_a_suite_for_every_push(
    github: FaultyGitHub, tmp_path_factory: pytest.TempPathFactory, hook_server: HookServer
) -> None:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as other:
        app = other.app("mergewright", "a public key")
        repo = other.repository("acme/widgets")
        repo.webhook(hook_server.url, "secret")
        repo.push("feat", {"a": "1\n"}, by="rob")
        eventually(lambda: hook_server.events() == ["ping", "push", "check_suite"], "the events")
    body = json.loads(hook_server.received[-1].body)
    assert (body["action"], body["check_suite"]["status"]) == ("requested", "queued")
    assert body["installation"]["id"] == app.installation_of(repo.owner)
    documented("check_suite", "requested").validate_json(hook_server.received[-1].body)


def test_a_suspended_app_gets_only_the_suspension_event(
    tmp_path: Path, hook_server: HookServer
) -> None:
    with FaultyGitHub(tmp_path) as other:
        app, repo = other.app("ear", "a public key"), other.repository("acme/widgets")
        other.app_webhook(app, hook_server.url, "secret")
        other.suspend(app)
        repo.open_issue("Broken", by="rob")
        other.suspend(app, suspended=False)
        eventually(lambda: hook_server.events() == ["installation"] * 2, "both events")
    bodies = [json.loads(delivered.body) for delivered in hook_server.received]
    assert [body["action"] for body in bodies] == ["suspend", "unsuspend"]
    for body, delivered in zip(bodies, hook_server.received, strict=True):
        documented("installation", body["action"]).validate_json(delivered.body)


def test_a_suite_completes_with_its_last_run(
    repo: Repository, all_deliveries: Callable[[], list[Delivered]]
) -> None:
    repo.push("feat", {"a": "1\n"}, by="wright")
    pull = repo.open_pull("feat", title="Mend", by="wright")
    unit, lint = (pull.check(name, status="queued") for name in ("unit", "lint"))
    unit.complete("failure")
    lint.complete("success")
    events = [
        (delivered.event, body["action"], body[delivered.event]["conclusion"])
        for delivered in all_deliveries()
        if delivered.event.startswith("check") and (body := json.loads(delivered.body))
    ]
    assert events == [
        ("check_run", "created", None),
        ("check_run", "created", None),
        ("check_run", "completed", "failure"),
        ("check_run", "completed", "success"),
        ("check_suite", "completed", "failure"),
    ]


def test_an_installed_app_gets_events_of_every_repository_of_its_owner(
    github: FaultyGitHub, repo: Repository, hook_server: HookServer
) -> None:
    manifest = {
        "name": "Ear",
        "default_permissions": {},
        "hook_attributes": {"url": hook_server.url},
    }
    manifests.register(github.world, manifest, "acme")
    repo.open_issue("Broken", by="rob")
    httpx.get(f"{github.url}apps/ear/installations/new", trust_env=False)
    later = github.repository("acme/later")
    for one in (repo, later, github.repository("umbrella/gears")):
        one.open_issue("Broken", by="rob")
    eventually(lambda: len(hook_server.received) == 2, "both events")
    bodies = [json.loads(each.body) for each in hook_server.received]
    assert [body["repository"]["full_name"] for body in bodies] == [repo.full_name, "acme/later"]
