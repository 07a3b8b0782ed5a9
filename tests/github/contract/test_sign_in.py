"""Sign-in with the App, and the roles of people."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused, TryLater
from bot.github.sign_in import GitHubSignIn
from bot.github.write_access import WriteAccess
from lifecycle.model.roles import Role
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import PATIENCE

CALLBACK = "https://bot.example/login/callback"
VERIFIER = "v" * 43


@pytest.fixture
def make(server: FaultyGitHub) -> Callable[..., GitHubSignIn]:
    app = server.sign_in_app("sign-in", CALLBACK)

    def made(**changes: str) -> GitHubSignIn:
        given = {
            "web_url": server.url,
            "api_url": f"{server.url}api/v3/",
            "client_id": app.client_id,
            "client_secret": app.client_secret,
            **changes,
        }
        return GitHubSignIn(**given)

    return made


@pytest.fixture
def sign_in(make: Callable[..., GitHubSignIn]) -> GitHubSignIn:
    return make()


def code_of(sign_in: GitHubSignIn, login: str) -> str:
    """The code with which GitHub sends this person's browser back."""
    address = sign_in.address(CALLBACK, "the state", VERIFIER)
    cookie = {"cookie": f"user_session={login}"}
    back = httpx.get(address, headers=cookie, trust_env=False, timeout=PATIENCE).headers["location"]
    assert back.startswith(f"{CALLBACK}?")
    query = parse_qs(urlsplit(back).query)
    assert query["state"] == ["the state"]
    return query["code"][0]


def test_a_code_says_who_signed_in(server: FaultyGitHub, sign_in: GitHubSignIn) -> None:
    user = sign_in.user(code_of(sign_in, "eve"), CALLBACK, VERIFIER)
    assert (user.login, user.id) == ("eve", server.user("eve").id)


def test_a_code_of_another_verifier_is_refused(sign_in: GitHubSignIn) -> None:
    with pytest.raises(Refused, match="Sign in once more"):
        sign_in.user(code_of(sign_in, "eve"), CALLBACK, "w" * 43)


def test_a_wrong_secret_is_found(make: Callable[..., GitHubSignIn]) -> None:
    assert make().check_secret() == ""
    assert "MERGEWRIGHT_GITHUB_CLIENT_SECRET" in make(client_secret="x").check_secret()


def test_an_unreachable_github_is_an_outage(make: Callable[..., GitHubSignIn]) -> None:
    with pytest.raises(TryLater, match="cannot be reached"):
        make(web_url="http://127.0.0.1:9/").user("code", CALLBACK, VERIFIER)


@pytest.mark.parametrize("private", [True, False], ids=["private", "public"])
@pytest.mark.parametrize(
    ("level", "role"),
    [
        ("admin", Role.ADMIN),
        ("maintain", Role.WRITE),
        ("write", Role.WRITE),
        ("triage", Role.TRIAGE),
        ("read", Role.READ),
        ("none", Role.NONE),
    ],
)
def test_a_permission_is_a_role(
    github: GitHub, repo: Repository, level: str, role: Role, private: bool
) -> None:
    repo.private = private
    repo.permission("eve", level)
    assert github.roles.of(repo.full_name, "eve").role is role


def test_to_be_able_to_read_a_public_repository_is_no_role(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    server.user("passer-by")
    for login in ("passer-by", "nobody-of-this-name", "../../../user"):
        assert github.roles.of(repo.full_name, login).role is Role.NONE


def test_an_outage_is_no_role(github: GitHub, server: FaultyGitHub, repo: Repository) -> None:
    repo.permission("eve", "read")
    server.fail_next("GET", "collaborators/eve$", 500)
    with pytest.raises(GitHubFailure):
        github.roles.of(repo.full_name, "eve")


def test_a_lost_role_is_noticed_once_it_is_too_old(github: GitHub, repo: Repository) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    people = WriteAccess(github, lambda: now)
    repo.permission("eve", "write")

    def role(login: str = "eve") -> Role:
        return people.role(repo.full_name, login, within=timedelta(seconds=300))

    assert role() is Role.WRITE
    repo.permission("eve", "none")
    now += timedelta(seconds=299)
    assert role("Eve") is Role.WRITE
    now += timedelta(seconds=1)
    assert role() is Role.NONE


def test_another_account_with_the_login_of_a_person_has_no_role(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    people = WriteAccess(github, lambda: datetime(2030, 1, 1, tzinfo=UTC))
    eve = server.user("eve").id
    repo.permission("eve", "write")
    assert people.role(repo.full_name, "eve", user=eve) is Role.WRITE
    assert people.role(repo.full_name, "eve", user=eve + 1) is Role.NONE
