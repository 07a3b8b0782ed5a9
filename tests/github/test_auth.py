"""Authentication, and that credentials are never shown."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import jwt
import pytest
import respx

from bot.demo.github.app_keys import KeyPair, key_pair
from bot.github.auth import RENEW_EARLY, Credentials
from bot.github.client import GitHub
from bot.github.errors import REINSTALL, NotInstalled, Refused, TryLater
from bot.system.clock import SteadyClock
from tests.github.conftest import API, GRAPHQL, NOW, REPO
from tests.world.app_key import PRIVATE, PUBLIC

SETTINGS = {"default_branch": "main", "private": False, "clone_url": "there"}


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(clock: Clock) -> Iterator[GitHub]:
    """A client that is an App."""
    client = GitHub(API, Credentials(app_id="7", private_key=PRIVATE), clock=clock)
    yield client
    client.close()


def installed(mock: respx.MockRouter, clock: Clock, ahead: timedelta = timedelta()) -> respx.Route:
    """Let the App be installed; each of its tokens has a number and lives an hour.

    GitHub's clock is ahead of `clock` by `ahead`.
    """
    mock.get(f"{REPO}/installation").respond(json={"id": 99})
    made = iter(range(1, 1000))

    def token(_: httpx.Request) -> httpx.Response:
        ends = (clock.now + ahead + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return httpx.Response(201, json={"token": f"ghs_{next(made)}", "expires_at": ends})

    return mock.post(f"{API}/app/installations/99/access_tokens").mock(side_effect=token)


def test_every_request_carries_the_token(github: GitHub, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(REPO, headers={"Authorization": "Bearer s3cret"}).respond(json=SETTINGS)
    respx_mock.post(GRAPHQL, headers={"Authorization": "Bearer s3cret"}).respond(
        json={"data": {"viewer": {"login": "wright"}}}
    )
    github.read.repository("acme/widgets")
    assert github.read.me() == "wright"
    for call in respx_mock.calls:  # An older server refuses unknown API versions.
        assert "X-GitHub-Api-Version" not in call.request.headers


@pytest.mark.parametrize(
    ("api_url", "graphql"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://api.github.com/", "https://api.github.com/graphql"),
        ("https://ghes.example/api/v3", "https://ghes.example/api/graphql"),
        ("https://ghes.example/api/v3/", "https://ghes.example/api/graphql"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9/graphql"),
        ("http://127.0.0.1:9/api/v3", "http://127.0.0.1:9/api/graphql"),
    ],
)
def test_the_graphql_address_is_derived_from_the_api_url(
    respx_mock: respx.MockRouter, api_url: str, graphql: str
) -> None:
    respx_mock.post(graphql).respond(json={"data": {"viewer": {"login": "wright"}}})
    client = GitHub(api_url, Credentials(token="s3cret"))
    assert client.read.me() == "wright"
    client.close()


def test_an_app_takes_precedence_over_a_token(respx_mock: respx.MockRouter, clock: Clock) -> None:
    installed(respx_mock, clock)
    both = Credentials(token="s3cret", app_id="7", private_key=PRIVATE)
    client = GitHub(API, both, clock=clock)
    assert client.git_password("acme/widgets") == "ghs_1"
    assert repr(both) == "Credentials(app 7)"
    client.close()


def test_the_bots_login_is_read_once(github: GitHub, respx_mock: respx.MockRouter) -> None:
    route = respx_mock.post(GRAPHQL).respond(json={"data": {"viewer": {"login": "wright"}}})
    assert [github.read.me() for _ in range(3)] == ["wright"] * 3
    assert route.call_count == 1


def test_no_login_is_the_bots_while_github_does_not_answer(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    asked = respx_mock.post(GRAPHQL).respond(502)
    assert not github.read.is_me("wright")
    asked.respond(json={"data": {"viewer": {"login": "wright"}}})
    assert [github.read.is_me(login) for login in ("wright", "ann")] == [True, False]


def test_an_apps_login_is_its_slug(app: GitHub, respx_mock: respx.MockRouter) -> None:
    route = respx_mock.get(f"{API}/app").respond(json={"slug": "mergewright"})
    assert app.read.me() == "mergewright[bot]"
    _, _, with_marker = route.calls[0].request.headers["Authorization"].partition(" ")
    claims = jwt.decode(with_marker, PUBLIC, ["RS256"], options={"verify_exp": False})
    assert claims["iss"] == "7"


@pytest.mark.parametrize(("hours", "follows"), [(1, True), (-1, False)])
def test_a_bot_that_is_behind_github_follows_its_time(
    respx_mock: respx.MockRouter, hours: int, follows: bool
) -> None:
    clock = SteadyClock()
    there = clock() + timedelta(hours=hours)
    dated = {"Date": format_datetime(there, usegmt=True)}
    respx_mock.get(REPO).respond(json=SETTINGS, headers=dated)
    before = clock()
    github = GitHub(API, Credentials(token="s3cret"), clock=clock)
    for _ in range(2):
        github.read.repository("acme/widgets")
    github.close()
    expected = there if follows else before
    assert abs(clock() - expected) < timedelta(seconds=5)


@pytest.mark.parametrize("hours", [-1, 1])
def test_an_apps_signature_has_githubs_time(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock, hours: int
) -> None:
    """The first request shows how far the clocks differ: it is refused and sent once more."""
    there = clock() + timedelta(hours=hours)
    by_hand: Any = {"verify_exp": False, "verify_iat": False}

    def login(request: httpx.Request) -> httpx.Response:
        _, _, signed = request.headers["Authorization"].partition(" ")
        claims = jwt.decode(signed, PUBLIC, ["RS256"], options=by_hand)
        valid = claims["iat"] <= there.timestamp() < claims["exp"]
        dated = {"Date": format_datetime(there, usegmt=True)}
        if not valid:
            return httpx.Response(401, headers=dated, json={"message": "Bad credentials"})
        return httpx.Response(200, headers=dated, json={"slug": "mergewright"})

    route = respx_mock.get(f"{API}/app").mock(side_effect=login)
    assert app.read.me() == "mergewright[bot]"
    assert route.call_count == 2


@pytest.mark.parametrize("hours", [-1, 1])
def test_an_apps_token_is_renewed_by_githubs_time(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock, hours: int
) -> None:
    there = timedelta(hours=hours)
    route = installed(respx_mock, clock, ahead=there)
    respx_mock.get(REPO).mock(
        side_effect=lambda _: httpx.Response(
            200, headers={"Date": format_datetime(clock() + there, usegmt=True)}, json=SETTINGS
        )
    )
    for _ in range(3):
        app.read.repository("acme/widgets")
    assert route.call_count == 1
    clock.now += timedelta(minutes=51)
    app.read.repository("acme/widgets")
    assert route.call_count == 2


def test_an_apps_token_is_limited_to_one_repository(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    route = installed(respx_mock, clock)
    respx_mock.get(REPO, headers={"Authorization": "Bearer ghs_1"}).respond(json=SETTINGS)
    app.read.repository("acme/widgets")
    assert json.loads(route.calls[0].request.content) == {"repositories": ["widgets"]}


@pytest.mark.parametrize(
    ("granted", "given"),
    [
        ({"contents": "write", "issues": "write"}, {"contents": "write"}),
        ({"workflows": "read"}, {"contents": "write"}),
        ({"workflows": "write"}, {"contents": "write", "workflows": "write"}),
    ],
)
def test_git_gets_a_token_of_its_own_for_contents_alone(
    app: GitHub,
    respx_mock: respx.MockRouter,
    clock: Clock,
    granted: dict[str, str],
    given: dict[str, str],
) -> None:
    route = installed(respx_mock, clock)
    respx_mock.get(f"{REPO}/installation").respond(json={"id": 99, "permissions": granted})
    respx_mock.get(REPO).respond(json=SETTINGS)
    app.read.repository("acme/widgets")
    assert [app.git_password("acme/widgets") for _ in range(2)] == ["ghs_2"] * 2
    asked = [json.loads(call.request.content) for call in route.calls]
    assert asked == [
        {"repositories": ["widgets"]},
        {"repositories": ["widgets"], "permissions": given},
    ]


def test_git_gets_the_bots_own_token_where_there_is_no_app(github: GitHub) -> None:
    assert github.git_password("acme/widgets") == "s3cret"


def test_a_token_is_renewed_before_it_expires(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    installed(respx_mock, clock)
    assert app.git_password("acme/widgets") == "ghs_1"
    clock.now += timedelta(hours=1) - RENEW_EARLY - timedelta(seconds=1)
    assert app.git_password("acme/widgets") == "ghs_1"
    clock.now += timedelta(seconds=1)
    assert app.git_password("acme/widgets") == "ghs_2"


def test_threads_waiting_for_a_token_share_one(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    route = installed(respx_mock, clock)
    together = threading.Barrier(8)

    def ask(_: int) -> str:
        together.wait(10)
        return app.git_password("acme/widgets")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {"ghs_1"}
    assert route.call_count == 1


def test_a_token_that_expired_early_is_replaced_once(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    installed(respx_mock, clock)
    respx_mock.get(REPO, headers={"Authorization": "Bearer ghs_1"}).respond(401)
    respx_mock.get(REPO, headers={"Authorization": "Bearer ghs_2"}).respond(json=SETTINGS)
    assert app.read.repository("acme/widgets").clone_url == "there"


def test_only_an_expired_token_is_replaced(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    installed(respx_mock, clock)
    respx_mock.get(REPO).respond(404)
    with pytest.raises(Refused):
        app.read.repository("acme/widgets")
    assert len([call for call in respx_mock.calls if call.request.url == REPO]) == 1


def test_an_app_whose_new_token_is_refused_gives_up(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    route = installed(respx_mock, clock)
    respx_mock.get(REPO).respond(401)
    with pytest.raises(Refused):
        app.read.repository("acme/widgets")
    assert route.call_count == 2


def test_a_repository_without_the_app_waits_for_its_installation(
    app: GitHub, respx_mock: respx.MockRouter, clock: Clock
) -> None:
    respx_mock.get(f"{REPO}/installation").respond(404, json={"message": "Not Found"})
    with pytest.raises(NotInstalled, match=r"acme/widgets: .* install it") as failure:
        app.git_password("acme/widgets")
    # A known retry time does not count as a failed attempt.
    assert failure.value.at == clock.now + REINSTALL


def test_an_outage_while_requesting_a_token_is_retried_later(
    app: GitHub, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(f"{REPO}/installation").respond(503)
    with pytest.raises(TryLater):
        app.git_password("acme/widgets")


def test_an_unreadable_private_key_is_refused_without_showing_it() -> None:
    client = GitHub(API, Credentials(app_id="7", private_key="not-a-key"))
    with pytest.raises(Refused, match="PEM") as refusal:
        client.git_password("acme/widgets")
    assert "not-a-key" not in str(refusal.value)
    client.close()


def test_each_client_caches_its_own_jwt(respx_mock: respx.MockRouter) -> None:
    hosts = ["https://one.example/api/v3", "https://two.example/api/v3"]
    pairs = (KeyPair(PRIVATE, PUBLIC), key_pair())
    for host, pair in zip(hosts, pairs, strict=True):
        route = respx_mock.get(f"{host}/app").respond(json={"slug": "mergewright"})
        client = GitHub(host, Credentials(app_id="7", private_key=pair.private))
        client.read.me()
        with_marker = route.calls[0].request.headers["Authorization"].removeprefix("Bearer ")
        assert jwt.decode(with_marker, pair.public, ["RS256"])
        client.close()


@pytest.mark.parametrize("secret", ["ghp_1\n", "ghp 1", "gh\u00e9", "ghp\x00"])
def test_a_token_with_invalid_characters_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(ValueError, match="paste it again") as refusal:
        Credentials(token=secret)
    assert secret not in str(refusal.value)


@pytest.mark.parametrize("show", [repr, str, "{}".format])
def test_the_repr_of_credentials_shows_no_secret(show: Any) -> None:
    shown = show(Credentials(token="ghp_1", app_id="7", private_key=PRIVATE))
    assert "ghp_1" not in shown
    assert "KEY" not in shown
    assert show(Credentials(app_id="7", private_key=PRIVATE)) == "Credentials(app 7)"
    assert show(Credentials()) == "Credentials(none)"
