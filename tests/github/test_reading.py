"""Pagination, and responses with missing parts."""

import json
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
import respx

from bot.github.client import GitHub
from bot.github.errors import Refused, TryLater
from bot.github.reader import PULL_PAGES
from bot.github.shapes import BaseRef, CommitNode, PullRequest
from tests.github.conftest import GRAPHQL, REPO
from tests.github.pages import checks, comment, listed, page, run

VIEWER = {"data": {"viewer": {"login": "wright"}}}
PLACE = ("repository", "pullRequest")


def answers(
    mock: respx.MockRouter, *pages: PullRequest, errors: Any = None, base: Any = None
) -> list[Any]:
    """Respond with these pages in turn, then with the last; records the variables.

    `base` is reported as the base branch's newest commit.
    """
    asked: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if "query Viewer" in body["query"]:
            return httpx.Response(200, json=VIEWER)
        if "BaseChecks" in body["query"]:
            found = {"object": base, "pullRequests": {"nodes": []}}
            return httpx.Response(200, json={"data": {"repository": found}})
        asked.append(body["variables"])
        found = msgspec.to_builtins(pages[min(len(asked), len(pages)) - 1])
        data = {"data": {"repository": {"pullRequest": found}}}
        return httpx.Response(200, json={**data, "errors": errors} if errors else data)

    mock.post(GRAPHQL).mock(side_effect=answer)
    return asked


def test_each_list_continues_at_its_cursor(github: GitHub, respx_mock: respx.MockRouter) -> None:
    asked = answers(
        respx_mock,
        page(
            comments=listed(comment(1), more=True, cursor="c1"),
            review_threads=listed(cursor="t1"),
            latest_opinionated_reviews=listed(cursor="o1"),
        ),
        page(comments=listed(comment(2), cursor="c2"), review_threads=listed()),
    )
    reading = github.read.pull("acme/widgets", 34)
    assert reading is not None
    assert [each.id for each in reading.pull.comments] == ["comment:1", "comment:2"]
    assert reading.pull.checks_complete
    place = {"owner": "acme", "name": "widgets", "number": 34}
    assert asked == [place, {**place, "comments": "c1", "opinions": "o1", "threads": "t1"}]


def test_an_endless_list_makes_the_snapshot_incomplete(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    asked = answers(respx_mock, page(commits=checks(run(1, "unit", "FAILURE"), more=True)))
    reading = github.read.pull("acme/widgets", 34)
    assert reading is not None
    assert not reading.pull.checks_complete
    assert len(reading.pull.checks) == 1
    assert len(asked) == PULL_PAGES


def test_a_push_between_two_pages_fails_the_read(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    answers(
        respx_mock,
        page(comments=listed(comment(1), more=True, cursor="c1")),
        page(head_ref_oid="f" * 40),
    )
    with pytest.raises(TryLater, match="pushed to"):
        github.read.pull("acme/widgets", 34)


@pytest.mark.parametrize("kind", ["FORBIDDEN", "INSUFFICIENT_SCOPES", "NOT_FOUND"])
@pytest.mark.parametrize("field", ["branchProtectionRule", "refUpdateRule", "rules"])
def test_unreadable_rules_are_ignored(
    github: GitHub, respx_mock: respx.MockRouter, kind: str, field: str
) -> None:
    hidden = BaseRef(target=CommitNode(oid="d" * 40), branch_protection_rule=None, rules=None)
    refusal = {"type": kind, "path": [*PLACE, "baseRef", field], "message": "Not for you."}
    answers(respx_mock, page(base_ref=hidden), errors=[refusal])
    reading = github.read.pull("acme/widgets", 34)
    assert reading is not None
    assert not reading.pull.checks_expected


def test_rules_that_fail_to_load_fail_the_read(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    hidden = BaseRef(target=CommitNode(oid="d" * 40), branch_protection_rule=None, rules=None)
    timeout = {"path": [*PLACE, "baseRef", "rules"], "message": "Timeout on validation."}
    answers(respx_mock, page(base_ref=hidden), errors=[timeout])
    with pytest.raises(TryLater):
        github.read.pull("acme/widgets", 34)


def test_unreadable_checks_fail_the_read(github: GitHub, respx_mock: respx.MockRouter) -> None:
    path = [*PLACE, "commits", "nodes", 0, "commit", "statusCheckRollup"]
    refusal = {"type": "FORBIDDEN", "path": path, "message": "Resource not accessible."}
    answers(respx_mock, page(), errors=[refusal])
    with pytest.raises(Refused, match="permission"):
        github.read.pull("acme/widgets", 34)


def test_a_list_with_too_many_pages_is_not_read(
    github: GitHub, respx_mock: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("api_client", "reader"):
        monkeypatch.setattr(f"bot.github.{module}.MAX_PAGES", 3)
    route = respx_mock.get(f"{REPO}/issues/1/dependencies/blocked_by")
    route.respond(json=[], headers={"Link": f'<{REPO}/issues?page=2>; rel="next"'})
    page = {"pageInfo": {"hasNextPage": True, "endCursor": "on"}, "nodes": []}
    listed = respx_mock.post(GRAPHQL).respond(json={"data": {"repository": {"l0": page}}})
    with pytest.raises(TryLater, match="pages"):
        github.read.blocked_by("acme/widgets", 1)
    with pytest.raises(TryLater, match="incomplete"):
        github.read.labelled_issues("acme/widgets", ["agent"])
    assert (route.call_count, listed.call_count) == (3, 3)
    assert '\\"on\\"' in listed.calls.last.request.content.decode()


def test_pull_requests_of_a_branch_are_read_page_by_page(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    mine, deleted = {"nameWithOwner": "acme/widgets"}, None
    numbers = iter(range(1, 9))

    def answer(request: httpx.Request) -> httpx.Response:
        cursor = json.loads(request.content)["variables"]["after"]
        pulls = {
            "pageInfo": {"hasNextPage": cursor is None, "endCursor": "p1"},
            "nodes": [
                {"number": next(numbers), "headRepository": each} for each in (mine, deleted)
            ],
        }
        return httpx.Response(200, json={"data": {"repository": {**mine, "pullRequests": pulls}}})

    respx_mock.post(GRAPHQL).mock(side_effect=answer)
    assert github.read.pulls_of("acme/widgets", "mergewright/12-retry") == [1, 3]


@pytest.mark.parametrize("permission", ["superadmin", "", "Write"])
def test_an_unknown_permission_does_not_allow_writing(
    github: GitHub, respx_mock: respx.MockRouter, permission: str
) -> None:
    route = respx_mock.get(f"{REPO}/collaborators/eve/permission")
    route.respond(json={"permission": permission})
    assert not github.read.may_write("acme/widgets", "eve")


@pytest.mark.parametrize("login", ["../../../user", "a b?c#d", "renovate[bot]"])
def test_a_login_cannot_change_the_path(
    github: GitHub, respx_mock: respx.MockRouter, login: str
) -> None:
    route = respx_mock.route().respond(404)
    assert not github.read.may_write("acme/widgets", login)
    asked = route.calls[0].request.url.raw_path.decode()
    assert asked == f"/api/v3/repos/acme/widgets/collaborators/{quote(login, safe='')}/permission"


def test_a_deleted_account_is_not_looked_up(github: GitHub, respx_mock: respx.MockRouter) -> None:
    assert not github.read.may_write("acme/widgets", "")
    assert len(respx_mock.calls) == 0


def test_unknown_merge_methods_are_left_to_github(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(REPO).respond(
        json={
            "default_branch": "main",
            "private": False,
            "clone_url": "x",
            "allow_rebase_merge": False,
        }
    )
    assert github.read.repository("acme/widgets").merge_methods == ("merge", "squash")
