"""REST rules: permissions, validation, pages, ETags, limits and planned faults."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import jwt
import pytest

from bot.demo.github.app_keys import key_pair
from bot.demo.github.repository import Repository
from tests.demo.outside import Client
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.faulty_github import FaultyGitHub

Ask = Callable[..., Client]


@pytest.fixture
def here(repo: Repository) -> str:
    return f"repos/{repo.full_name}"


def test_an_unknown_token_is_refused_with_githubs_body(ask: Ask, here: str) -> None:
    answer = ask("forged")("GET", here)
    assert (answer.status_code, answer.json()) == (
        401,
        {
            "message": "Bad credentials",
            "documentation_url": "https://docs.github.com/rest",
            "status": "401",
        },
    )
    assert ask("forged")("GET", "rate_limit").status_code == 401
    with_old_word = {"Authorization": "token wrights"}
    assert ask("")("GET", "user", headers=with_old_word).json()["login"] == "wright"


def test_anonymous_requests_read_public_data_and_change_nothing(
    ask: Ask, repo: Repository, here: str
) -> None:
    repo.open_issue("Broken", by="rob")
    assert ask("")("GET", f"{here}/issues/1").json()["title"] == "Broken"
    assert ask("")("POST", f"{here}/issues/1/comments", json={"body": "x"}).status_code == 401
    assert ask("")("GET", "user").status_code == 401
    repo.private = True
    assert ask("")("GET", f"{here}/issues/1").status_code == 404
    assert ask("mallorys")("GET", f"{here}/issues/1").status_code == 404


@pytest.mark.parametrize(
    ("level", "coarse", "labels", "merges", "reads_hooks"),
    [
        ("read", "read", 403, 403, 403),
        ("triage", "read", 200, 403, 403),
        ("write", "write", 200, 404, 403),
        ("maintain", "write", 200, 404, 403),
        ("admin", "admin", 200, 404, 404),
    ],
)
def test_each_permission_level_allows_what_github_allows(
    ask: Ask,
    repo: Repository,
    here: str,
    level: str,
    coarse: str,
    labels: int,
    merges: int,
    reads_hooks: int,
) -> None:
    repo.permission("mallory", level)
    repo.open_issue("Broken", by="rob")
    asked = ask("mallorys")
    access = ask()("GET", f"{here}/collaborators/mallory/permission").json()
    assert (access["permission"], access["role_name"]) == (coarse, level)
    put = asked("POST", f"{here}/issues/1/labels", json={"labels": ["bug"]})
    assert put.status_code == labels
    assert asked("PUT", f"{here}/pulls/1/merge", json={}).status_code == merges
    assert asked("GET", f"{here}/hooks/1/deliveries").status_code == reads_hooks


def test_permissions_of_outsiders_and_unknown_accounts(
    ask: Ask, repo: Repository, here: str
) -> None:
    access = ask()("GET", f"{here}/collaborators/mallory/permission").json()
    assert access["permission"] == "read"
    repo.private = True
    access = ask()("GET", f"{here}/collaborators/mallory/permission").json()
    assert access["permission"] == "none"
    assert ask()("GET", f"{here}/collaborators/no-one/permission").status_code == 404
    assert ask("robs")("GET", f"{here}/collaborators/rob/permission").status_code == 200
    repo.permission("rob", "triage")
    assert ask("robs")("GET", f"{here}/collaborators/rob/permission").status_code == 403


def test_an_invalid_pull_request_is_refused(ask: Ask, repo: Repository, here: str) -> None:
    def refusal(**given: str) -> object:
        body = {"title": "T", "base": "main", **given}
        answer = ask()("POST", f"{here}/pulls", json=body)
        assert (answer.status_code, answer.json()["message"]) == (422, "Validation Failed")
        error = answer.json()["errors"][0]
        return error.get("message") or (error["field"], error["code"])

    repo.push("feat", {"a": "1\n"}, by="rob")
    assert refusal() == ("head", "missing_field")
    assert refusal(head="none") == ("head", "invalid")
    assert refusal(head="feat", base="none") == ("base", "invalid")
    assert refusal(head="main") == "No commits between main and main"
    repo.open_pull("feat", title="T", by="rob")
    assert refusal(head="feat") == "A pull request already exists for acme:feat."
    assert refusal(head="acme:feat") == "A pull request already exists for acme:feat."


def test_invalid_bodies_are_refused(ask: Ask, repo: Repository, here: str) -> None:
    repo.open_issue("Broken", by="rob")
    comments = f"{here}/issues/1/comments"
    assert ask()("POST", comments, content=b"{").json()["message"] == "Problems parsing JSON"
    assert ask()("POST", comments, json={}).status_code == 422
    assert ask()("POST", comments, json={"body": "x" * 65537}).status_code == 422
    assert ask()("POST", comments, json={"body": "x" * 65536}).status_code == 201
    assert ask()("DELETE", f"{here}/issues/1/labels/none").status_code == 404
    assert ask()("GET", f"{here}/issues/2").status_code == 404
    assert ask()("DELETE", f"{here}/git/refs/heads/none").status_code == 422
    odd = {"X-GitHub-Api-Version": "1999-01-01"}
    assert ask()("GET", here, headers=odd).status_code == 400


def test_an_author_cannot_approve_their_pull_request(ask: Ask, repo: Repository, here: str) -> None:
    repo.push("feat", {"a": "1\n"}, by="wright")
    repo.open_pull("feat", title="T", by="wright")
    answer = ask()("POST", f"{here}/pulls/1/reviews", json={"event": "APPROVE"})
    assert answer.status_code == 422
    assert answer.json()["errors"] == ["Can not approve your own pull request"]
    outside = {"event": "COMMENT", "comments": [{"path": "README.md", "line": 1, "body": "?"}]}
    assert ask()("POST", f"{here}/pulls/1/reviews", json=outside).status_code == 422


def test_the_pages_of_a_list_are_linked(ask: Ask, repo: Repository, here: str) -> None:
    for number in range(5):
        repo.open_issue(f"Number {number}", by="rob").label("bug", by="rob")
    answer = ask()("GET", f"{here}/issues?labels=bug&per_page=2")
    found = [[issue["number"] for issue in answer.json()]]
    while "next" in answer.links and len(found) < 9:
        answer = ask()("GET", answer.links["next"]["url"])
        found.append([issue["number"] for issue in answer.json()])
    assert found == [[5, 4], [3, 2], [1]]
    assert set(answer.links) == {"prev", "first"}
    assert len(ask()("GET", f"{here}/issues").json()) == 5
    assert "link" not in ask()("GET", f"{here}/issues").headers
    assert ask()("GET", f"{here}/issues?labels=bug,other").json() == []


def test_an_unchanged_resource_gets_a_free_304(ask: Ask, repo: Repository, here: str) -> None:
    issue = repo.open_issue("Broken", by="rob")
    first = ask()("GET", f"{here}/issues/1")
    known = {"If-None-Match": first.headers["ETag"]}
    again = ask()("GET", f"{here}/issues/1", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["X-RateLimit-Remaining"] == first.headers["X-RateLimit-Remaining"]
    issue.comment("Hm.", by="rob")
    changed = ask()("GET", f"{here}/issues/1", headers=known)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]
    theirs = ask("robs")("GET", f"{here}/issues/1").headers["ETag"]
    assert theirs != changed.headers["ETag"], "a token of one's own sees with its own eyes"
    repo.open_issue("Broken too", by="rob")
    page = f"{here}/issues?per_page=1"
    known = {"If-None-Match": ask()("GET", page).headers["ETag"]}
    assert "next" in ask()("GET", page).links
    again = ask()("GET", page, headers=known)
    assert (again.status_code, again.links) == (304, {}), "a 304 may say nothing of other pages"


def test_every_response_has_rate_limit_headers(ask: Ask, here: str) -> None:
    first, second = ask()("GET", here), ask()("GET", f"{here}/none")
    left = [int(answer.headers["X-RateLimit-Remaining"]) for answer in (first, second)]
    assert left[0] - left[1] == 1
    assert first.headers["X-RateLimit-Limit"] == "5000"
    assert first.headers["X-GitHub-Request-Id"] != second.headers["X-GitHub-Request-Id"]
    core = ask()("GET", "rate_limit").json()["resources"]["core"]
    assert core["remaining"] == left[1]
    assert ask("")("GET", here).headers["X-RateLimit-Limit"] == "60"


def test_an_app_gets_an_installation_token_with_its_key(
    github: FaultyGitHub, ask: Ask, repo: Repository, here: str
) -> None:
    stranger = key_pair().private
    app = github.app("mergewright", PUBLIC)
    now = int(github.world.now().timestamp())
    good = {"iss": str(app.id), "exp": now + 300}

    def signed(claims: dict[str, object], by: str = PRIVATE) -> Client:
        return ask(jwt.encode(claims, by, "RS256"))

    assert signed(good)("GET", "app").json()["slug"] == "mergewright"
    asked = signed(good)("GET", f"{here}/installation")
    assert asked.headers["X-RateLimit-Limit"] == "5000"  # An anonymous client gets 60.
    installation = asked.json()
    got = signed(good)("POST", f"app/installations/{installation['id']}/access_tokens").json()
    as_bot = ask(got["token"])
    repo.open_issue("Broken", by="rob")
    created = as_bot("POST", f"{here}/issues/1/comments", json={"body": "Hm."}).json()
    assert (created["user"]["login"], created["user"]["type"]) == ("mergewright[bot]", "Bot")
    assert as_bot("GET", "user").status_code == 403
    refused = [
        signed(good, stranger),
        signed({**good, "exp": now - 60}),
        signed({**good, "exp": now + 3600}),
        signed({**good, "iat": now + 60}),
        signed({**good, "iss": "1"}),
        ask("wrights"),
    ]
    assert [each("GET", "app").status_code for each in refused] == [401] * 6
    github.world.token_lasts = timedelta()
    late = signed(good)("POST", f"app/installations/{installation['id']}/access_tokens").json()
    assert ask(late["token"])("GET", here).status_code == 401


def test_only_apps_create_check_runs(ask: Ask, repo: Repository, here: str) -> None:
    given = {"name": "unit", "head_sha": repo.heads["main"]}
    answer = ask()("POST", f"{here}/check-runs", json=given)
    assert answer.json()["message"] == "You must authenticate via a GitHub App."


def test_a_planned_fault_happens_as_often_as_planned(
    github: FaultyGitHub, ask: Ask, repo: Repository, here: str
) -> None:
    issue = repo.open_issue("Broken", by="rob")
    comments = f"{here}/issues/1/comments"
    github.fail_next("POST", r"/comments$", 503, {"Retry-After": "7"}, b"busy", times=2)
    for _ in range(2):
        answer = ask()("POST", comments, json={"body": "x"})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "7")
        assert answer.content == b"busy"
    assert ask()("GET", comments).json() == []
    assert ask()("POST", comments, json={"body": "x"}).status_code == 201
    github.fail_next("POST", r"/comments$", 502, after=True)
    assert ask()("POST", comments, json={"body": "y"}).status_code == 502
    assert [comment.body for comment in issue.comments] == ["x", "y"]


def test_a_connection_can_be_cut_before_or_after_the_effect(
    github: FaultyGitHub, ask: Ask, repo: Repository, here: str
) -> None:
    issue = repo.open_issue("Broken", by="rob")
    for after in (False, True):
        github.fail_next("POST", r"/comments$", 0, after=after)
        with pytest.raises(httpx.RemoteProtocolError):
            ask()("POST", f"{here}/issues/1/comments", json={"body": f"{after}"})
    assert [comment.body for comment in issue.comments] == ["True"]


def test_a_request_can_be_delayed(github: FaultyGitHub, ask: Ask, here: str) -> None:
    github.delay_next("GET", here, 2.0)
    with pytest.raises(httpx.ReadTimeout):
        ask()("GET", here, timeout=0.5)
    assert ask()("GET", here).status_code == 200


def test_requests_are_counted_by_account_and_path(
    github: FaultyGitHub, ask: Ask, repo: Repository, here: str
) -> None:
    repo.open_issue("Broken", by="rob")
    comments = f"{here}/issues/1/comments"
    ask()("POST", comments, json={"body": "x"})
    ask()("POST", comments, json={})
    assert github.count("POST", comments) == 1
    seen = [(s.user, s.status) for s in github.requests if s.path.endswith(comments)]
    assert seen == [("wright", 201), ("wright", 422)]


def test_a_secondary_limit_holds_until_it_is_lifted(
    github: FaultyGitHub, ask: Ask, repo: Repository, here: str
) -> None:
    repo.open_issue("Broken", by="rob")
    before = github.traffic.refused
    github.limit_next("POST", r"/comments$", seconds=60, status=429)
    assert ask()("GET", here).status_code == 200
    answer = ask()("POST", f"{here}/issues/1/comments", json={"body": "x"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60")
    assert ask()("GET", here).status_code == 429
    assert ask()("POST", "../graphql", json={"query": "{viewer{login}}"}).status_code == 429
    assert (github.traffic.refused - before, github.traffic.planned) == (3, 0)
    github.traffic.lift()
    assert ask()("GET", f"{here}/issues/1").json()["comments"] == 0


def test_a_used_up_limit_refuses_until_its_reset(github: FaultyGitHub, ask: Ask, here: str) -> None:
    github.traffic.leave("wright", "core", 1, seconds=0)
    github.traffic.leave("wright", "graphql", 0, seconds=600)
    before = github.traffic.refused
    assert ask().graphql("{ viewer { login } }")["errors"][0]["type"] == "RATE_LIMITED"
    assert [ask()("GET", here).status_code for _ in range(2)] == [200, 200]
    github.traffic.leave("wright", "core", 1, seconds=600)
    answers = [ask()("GET", here) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 403]
    assert {answer.headers["X-RateLimit-Remaining"] for answer in answers} == {"0"}
    assert github.traffic.refused - before == 2
    github.traffic.lift()
    assert ask()("GET", here).status_code == 200
