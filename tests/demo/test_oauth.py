"""Sign-in with an App at the stand-in: the web flow with PKCE, as GitHub documents it."""

import base64
import hashlib
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qs

import httpx
import pytest

from bot.demo.github.repository import Repository
from bot.demo.github.world import App
from tests.demo.outside import Client
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import PATIENCE

CALLBACK = "https://bot.example/login/callback"
VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)
Exchange = Callable[..., dict[str, str]]


@pytest.fixture
def app(github: FaultyGitHub) -> App:
    return github.sign_in_app("sign-in", CALLBACK)


@pytest.fixture
def authorize(github: FaultyGitHub, app: App) -> Callable[..., dict[str, str]]:
    """Return a function that opens GitHub's authorization page as a user, by default alice.

    The function returns the query parameters of the address to which GitHub redirects the browser.
    """

    def opened(login: str = "alice", **changes: str) -> dict[str, str]:
        query = {
            "client_id": app.client_id,
            "redirect_uri": CALLBACK,
            "state": "xyz",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            **changes,
        }
        cookie = {"cookie": f"user_session={login}"}
        address = f"{github.url}login/oauth/authorize"
        answer = httpx.get(address, params=query, headers=cookie, trust_env=False, timeout=PATIENCE)
        assert answer.status_code == 302
        back, _, fields = answer.headers["location"].partition("?")
        assert back == CALLBACK
        return {name: values[0] for name, values in parse_qs(fields).items()}

    return opened


@pytest.fixture
def exchange(github: FaultyGitHub, app: App) -> Exchange:
    def sent(code: str, **changes: str) -> dict[str, str]:
        body = {
            "client_id": app.client_id,
            "client_secret": app.client_secret,
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            **changes,
        }
        answer = httpx.post(
            f"{github.url}login/oauth/access_token",
            data=body,
            headers={"accept": "application/json"},
            trust_env=False,
            timeout=PATIENCE,
        )
        assert answer.status_code == 200
        found: dict[str, str] = answer.json()
        return found

    return sent


def test_a_code_is_exchanged_for_a_token_of_the_person_once(
    ask: Callable[..., Client], authorize: Exchange, exchange: Exchange
) -> None:
    back = authorize()
    assert back["state"] == "xyz"
    answer = exchange(back["code"])
    assert answer["access_token"].startswith("ghu_")
    assert (answer["token_type"], answer["scope"]) == ("bearer", "")
    me = ask(answer["access_token"])("GET", "user").json()
    assert (me["login"], me["type"]) == ("alice", "User")
    assert exchange(back["code"])["error"] == "bad_verification_code"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_secret": "wrong"}, "incorrect_client_credentials"),
        ({"client_id": "Iv1.unknown"}, "incorrect_client_credentials"),
        ({"code_verifier": "w" * 43}, "bad_verification_code"),
        ({"redirect_uri": f"{CALLBACK}/more"}, "redirect_uri_mismatch"),
    ],
)
def test_an_exchange_with_another_secret_verifier_or_address_is_refused(
    authorize: Exchange, exchange: Exchange, changes: dict[str, str], error: str
) -> None:
    assert exchange(authorize()["code"], **changes)["error"] == error


def test_a_code_expires(github: FaultyGitHub, authorize: Exchange, exchange: Exchange) -> None:
    code = authorize()["code"]
    known = github.world.sign_in_codes[code]
    object.__setattr__(known, "until", known.until - timedelta(minutes=10))
    assert exchange(code)["error"] == "bad_verification_code"


def test_people_are_sent_back_to_a_registered_address_alone(authorize: Exchange) -> None:
    back = authorize(redirect_uri="https://evil.example/login/callback")
    assert back["error"] == "redirect_uri_mismatch"
    assert "code" not in back


def test_a_person_may_refuse(authorize: Exchange) -> None:
    assert authorize(login="")["error"] == "access_denied"


def test_an_unknown_app_is_not_found(github: FaultyGitHub) -> None:
    address = f"{github.url}login/oauth/authorize"
    assert (
        httpx.get(address, params={"client_id": "x"}, trust_env=False, timeout=PATIENCE).status_code
        == 404
    )


def test_readers_of_a_public_repository_are_no_collaborators(
    ask: Callable[..., Client], repo: Repository
) -> None:
    def status(login: str, token: str = "wrights") -> int:
        return ask(token)("GET", f"repos/{repo.full_name}/collaborators/{login}").status_code

    repo.permission("eve", "read")
    assert [status(login) for login in ("rob", "eve", "mallory", "nobody")] == [204, 204, 404, 404]
    assert status("rob", "mallorys") == 403
