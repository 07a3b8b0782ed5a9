"""Access by bearer token, sign-in form and cookie."""

from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from litestar.exceptions import TooManyRequestsException

from bot.system.clock import utc_now
from bot.web.page_token import PageToken
from bot.web.sign_ins import COOKIE, SignIns
from bot.web.visitor import Visitor
from config.tables import SignInSettings
from tests.web.conftest import TOKEN, Site, bearer

PRIVATE = [
    *("/", "/api", "/sessions/widgets-1", "/events"),
    *("/api/v1/sessions", "/api/v1/sessions/widgets-1"),
]


def sign_in(site: Site, token: str = TOKEN, **headers: str) -> httpx.Response:
    return site.http.post("/login", data={"token": token}, headers=headers)


@pytest.mark.parametrize("path", PRIVATE)
def test_pages_require_the_token(site: Site, path: str) -> None:
    site.session(1, title="a secret title")
    for headers in ({}, bearer("wrong"), {b"cookie": f"{COOKIE}=99999999999.00".encode()}):
        response = site.http.get(path, headers=headers)
        assert "a secret title" not in response.text
        if path.startswith(("/api/", "/events")):
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
        else:
            assert (response.status_code, response.headers["location"]) == (303, "/login")


@pytest.mark.parametrize("path", [*PRIVATE, "/login"])
def test_without_a_configured_token_the_page_is_disabled_with_a_remedy(
    make_site: Callable[..., Site], path: str
) -> None:
    site = make_site(token="")
    for headers in ({}, {b"authorization": b"Bearer"}, bearer("guess")):
        response = site.http.get(path, headers=headers)
        assert response.status_code == 403
        assert "MERGEWRIGHT_PAGE_TOKEN" in response.text
    assert sign_in(site, "").status_code == 403
    assert not PageToken("").opens("")


def test_a_bearer_token_is_accepted(site: Site) -> None:
    assert site.seen("/api/v1/sessions").json() == {"items": [], "cursor": None}


def test_signing_in_leads_to_the_page(site: Site) -> None:
    response = sign_in(site)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert site.http.get("/").status_code == 200


def test_the_cookie_is_http_only_and_same_site_and_does_not_contain_the_token(site: Site) -> None:
    cookie = sign_in(site).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert TOKEN not in cookie


def test_at_an_https_url_the_cookie_is_secure(make_site: Callable[..., Site]) -> None:
    site = make_site(public_url="https://bot.example/")
    assert "Secure" in sign_in(site).headers["set-cookie"]


def test_behind_a_proxy_that_ends_tls_the_cookie_is_secure(site: Site) -> None:
    assert "Secure" in sign_in(site, **{"x-forwarded-proto": "https"}).headers["set-cookie"]


def test_a_wrong_token_shows_the_sign_in_form_again(site: Site) -> None:
    response = sign_in(site, "wrong")
    assert response.status_code == 401
    assert "Wrong token" in response.text
    assert "set-cookie" not in response.headers


def test_guesses_of_the_token_are_limited_over_all_addresses_and_ways(
    make_site: Callable[..., Site],
) -> None:
    site = make_site()
    cookie = sign_in(site).headers["set-cookie"].partition(";")[0]
    site.http.cookies.clear()
    statuses = []
    for n in range(40):
        statuses.append(sign_in(site, f"guess {n}", **{"x-forwarded-for": f"192.0.2.{n}"}))
        statuses.append(site.http.get("/api/v1/sessions", headers=bearer(f"other {n}")))
    assert [one.status_code for one in statuses] == [401] * 60 + [429] * 20
    assert statuses[-1].headers["retry-after"].isdigit()
    # The right one is not compared either: otherwise the limit would limit nothing.
    assert site.seen("/api/v1/sessions").status_code == 429
    assert site.http.get("/api/v1/sessions", headers={"cookie": cookie}).status_code == 200


def test_a_program_with_an_old_token_locks_nobody_out() -> None:
    token = PageToken(TOKEN)
    assert not any(token.opens("old") for _ in range(100))
    assert token.opens(TOKEN)


def test_guesses_count_for_a_minute() -> None:
    now = 1000.0
    token = PageToken(TOKEN, clock=lambda: now)
    for n in range(60):
        assert not token.opens(f"guess {n}")
    with pytest.raises(TooManyRequestsException):
        token.opens(TOKEN)
    now += 60
    assert token.opens(TOKEN)


def test_signing_out_deletes_the_cookie(site: Site) -> None:
    sign_in(site)
    assert site.http.post("/logout").headers["location"] == "/login"
    assert site.http.get("/").status_code == 303


def test_the_cookie_expires(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    sign_in(site)
    monkeypatch.setattr(site.store, "clock", lambda: utc_now() + timedelta(days=8))
    assert site.http.get(
        "/", headers={"cookie": f"{COOKIE}={site.http.cookies[COOKIE]}"}
    ).is_redirect


def test_a_cookie_for_another_token_or_an_unknown_one_is_rejected(site: Site) -> None:
    another = SignIns(site.store, PageToken("another"), SignInSettings(), https=False)
    sign_in(site)
    own = site.http.cookies[COOKIE]
    site.http.cookies.clear()
    for cookie in (another.begin(Visitor()), own[:-1], f"{own}x", "", ".", "é.é"):
        headers = {b"cookie": f"{COOKIE}={cookie}".encode()}
        assert site.http.get("/", headers=headers).status_code == 303


def test_the_database_does_not_hold_what_a_cookie_holds(site: Site) -> None:
    sign_in(site)
    stored = site.store.path.read_bytes() + site.store.path.with_name("store.db-wal").read_bytes()
    assert site.http.cookies[COOKIE].encode() not in stored


@pytest.mark.parametrize("header", ["", "Bearer", f"Basic {TOKEN}", TOKEN])
def test_a_partial_bearer_token_is_rejected(site: Site, header: str) -> None:
    response = site.http.get("/api/v1/sessions", headers={b"authorization": header.encode()})
    assert response.status_code == 401
