"""Redirects of renamed repositories."""

import pytest
import respx

from bot.github.client import GitHub
from bot.github.errors import Refused
from bot.github.rest import RepositoryIdentity
from tests.github.conftest import API, REPO


def test_a_write_follows_the_redirect_of_a_renamed_repository(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    there = f"{API}/repositories/7/issues/comments/5/reactions"
    route = respx_mock.post(f"{REPO}/issues/comments/5/reactions")
    route.respond(307, headers={"Location": there})
    moved = respx_mock.post(there).respond(201)
    github.write.react("acme/widgets", 5, "eyes")
    assert moved.calls.last.request.content == route.calls.last.request.content


@pytest.mark.parametrize(("status", "where"), [(301, API), (307, "https://other.example")])
def test_a_write_follows_no_other_redirect(
    github: GitHub, respx_mock: respx.MockRouter, status: int, where: str
) -> None:
    route = respx_mock.post(f"{REPO}/issues/comments/5/reactions")
    route.respond(status, headers={"Location": f"{where}/repositories/7/reactions"})
    with pytest.raises(Refused, match="renamed"):
        github.write.react("acme/widgets", 5, "eyes")
    assert len(respx_mock.calls) == 1


def test_the_pull_request_of_a_branch_is_found_at_the_repositorys_new_owner(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    github.aliases["acme/widgets"] = RepositoryIdentity(id=7, name="newco/widgets")
    there = f"{API}/repos/newco/widgets/pulls"
    exists = {"message": "A pull request already exists for newco:fix."}
    respx_mock.post(there).respond(422, json=exists)
    ends = {"head": {"sha": "a", "repo": {"id": 7}}, "base": {"sha": "b", "repo": {"id": 7}}}
    found = {"number": 4, "node_id": "P", "state": "open", "user": None, **ends}
    respx_mock.get(there, params={"head": "newco:fix"}).respond(json=[found])
    respx_mock.get(there).respond(json=[])
    opened = github.write.open_pull("acme/widgets", "fix", "main", "Fix", "", False, {"a"})
    assert opened == 4
