"""Signing in with GitHub, how long that lasts, and signing out."""

import html
import re
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.web.sign_ins import COOKIE
from tests.web.conftest import TOKEN, Site, bearer
from tests.web.people import People, form_token, put


@pytest.fixture
def alice(people: People) -> People:
    people.may("alice", "read")
    return people


def account(client: httpx.Client) -> str:
    """Whose account page this browser shows; empty: nobody is signed in."""
    found = re.search("<h1>(.*)</h1>", client.get("/account").text)
    return found[1] if found and found[1] != "Sign in" else ""


def attempt(client: httpx.Client) -> str:
    """Begin to sign in; the address that GitHub sends the browser back to."""
    to_github = client.get("/login/github", follow_redirects=False).headers["location"]
    return client.get(to_github, follow_redirects=False).headers["location"]


def test_a_person_signs_in_with_github(alice: People) -> None:
    with alice.browser("alice") as client:
        assert f'href="{alice.url}login/github"' in client.get("/login").text
        response = client.get("/login/github")
        assert str(response.url) == alice.url
        assert "Sessions" in response.text
        assert account(client) == "@alice"
    assert alice.github.count("GET", "/user$") == 1


def test_after_the_sign_in_a_person_comes_to_the_page_they_opened(alice: People) -> None:
    page = "/costs?from=2026-11-01&person=a.b%20c"
    with alice.browser("alice") as client:
        opened = client.get(page, headers={"accept": "text/html,*/*;q=0.8"})
        assert opened.url.path == "/login"
        link = re.search('href="([^"]*login/github[^"]*)"', opened.text)
        assert link is not None
        response = client.get(html.unescape(link[1]))
        assert response.url.raw_path.decode() == page


def test_the_token_leads_to_the_page_too(site: Site) -> None:
    with httpx.Client(base_url=site.url, follow_redirects=True) as client:
        shown = client.get("/costs", headers={"accept": "text/html"})
        assert 'name="next" value="/costs"' in shown.text
        wrong = client.post("/login", data={"token": "wrong", "next": "/costs"})
        assert 'name="next" value="/costs"' in wrong.text
        assert client.post("/login", data={"token": TOKEN, "next": "/costs"}).url.path == "/costs"
        # What a program or a form asks for is no page.
        assert str(client.get("/account", headers={"accept": "*/*"}).url).endswith("/account")


@pytest.mark.parametrize(
    "page",
    [
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        " //evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/x\r\nSet-Cookie: a=b",
        "@evil.example",
        "/\u3000/evil.example",
        "/login",
        "/logout",
        "/" + "x" * 5000,
    ],
)
def test_a_sign_in_leads_to_no_other_site(site: Site, page: str) -> None:
    with httpx.Client(base_url=site.url, follow_redirects=False) as client:
        response = client.post("/login", data={"token": TOKEN, "next": page})
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert 'name="next" value="/"' in client.get("/login", params={"next": page}).text


def test_the_request_to_github_has_the_exact_address_a_state_and_a_challenge(
    alice: People,
) -> None:
    with alice.browser() as client:
        location = client.get("/login/github", follow_redirects=False).headers["location"]
    query = parse_qs(urlsplit(location).query)
    assert location.startswith(f"{alice.github.url}login/oauth/authorize?")
    assert query["redirect_uri"] == [f"{alice.url}login/callback"]
    assert query["client_id"] == [alice.app.client_id]
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["state"][0]) >= 40
    assert len(query["code_challenge"][0]) == 43
    assert "scope" not in query


def test_the_cookie_is_bound_and_nothing_of_the_flow_is_kept(alice: People) -> None:
    with alice.browser("alice") as client:
        back = client.get(attempt(client), follow_redirects=False)
        cookies = back.headers.get_list("set-cookie")
        (cookie,) = (one for one in cookies if one.startswith(COOKIE))
        assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
        value = client.cookies[COOKIE]
    store = alice.site.store
    stored = store.path.read_bytes() + store.path.with_name("store.db-wal").read_bytes()
    assert value.encode() not in stored
    assert b"ghu_" not in stored


def test_with_https_the_cookie_is_secure_and_belongs_to_this_host(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(public_url="https://bot.example/")
    cookie = site.http.post("/login", data={"token": TOKEN}).headers["set-cookie"]
    assert cookie.startswith(f"__Host-{COOKIE}=")
    assert "Secure" in cookie
    assert "Domain" not in cookie
    gone = site.http.post("/logout").headers["set-cookie"]
    assert gone.startswith(f"__Host-{COOKIE}=")
    assert "Secure" in gone


@pytest.mark.parametrize("change", ["no cookie", "another state", "no state"])
def test_a_sign_in_that_this_browser_did_not_begin_is_refused(alice: People, change: str) -> None:
    with alice.browser("alice") as client:
        back = attempt(client)
        if change == "no cookie":
            client.cookies.clear()
        elif change == "another state":
            back = re.sub("state=[^&]+", "state=guessed", back)
        else:
            back = re.sub("&state=[^&]+", "", back)
        response = client.get(back)
        assert response.status_code == 400
        assert "This sign-in began in another browser" in response.text
        assert account(client) == ""


def test_a_code_works_once(alice: People) -> None:
    with alice.browser("alice") as client:
        back = attempt(client)
        kept = dict(client.cookies)
        assert client.get(back, follow_redirects=False).status_code == 303
        client.cookies.clear()
        client.cookies.update(kept)
        response = client.get(back)
        assert response.status_code == 403
        assert "bad_verification_code" in response.text


def test_a_code_of_another_browsers_sign_in_is_worth_nothing(alice: People) -> None:
    """Without its verifier, which PKCE asks for."""
    alice.may("mallory", "read")
    with alice.browser("mallory") as theirs, alice.browser("alice") as own:
        code = parse_qs(urlsplit(attempt(theirs)).query)["code"][0]
        back = re.sub("code=[^&]+", f"code={code}", attempt(own))
        assert own.get(back).status_code == 403
        assert account(own) == ""


def test_a_person_who_refuses_at_github_is_not_signed_in(alice: People) -> None:
    with alice.browser() as client:
        response = client.get("/login/github")
        assert response.status_code == 403
        assert "access_denied" in response.text


def test_a_person_without_a_role_is_not_signed_in(alice: People) -> None:
    with alice.browser("mallory") as client:
        response = client.get("/login/github")
        assert response.status_code == 403
        assert "@mallory has no role in any project here" in response.text
        assert account(client) == ""


def test_an_outage_of_github_is_no_sign_in(alice: People) -> None:
    alice.github.fail_next("GET", "permission$", 500, times=9)
    with alice.browser("alice") as client:
        response = client.get("/login/github")
        assert response.status_code == 503
        assert "Try again in a minute" in response.text
        assert account(client) == ""


def test_wrong_codes_are_limited_over_all_addresses(alice: People) -> None:
    with alice.browser("alice") as client:
        back = attempt(client)
        cookie = dict(client.cookies)
        statuses = []
        for number in range(62):
            client.cookies.clear()
            client.cookies.update(cookie)
            guess = re.sub("code=[^&]+", f"code={number}", back)
            forwarded = {"x-forwarded-for": f"192.0.2.{number}"}
            statuses.append(client.get(guess, headers=forwarded).status_code)
        assert statuses == [403] * 60 + [429] * 2


def test_a_cookie_that_was_put_into_a_browser_does_not_become_a_sign_in(alice: People) -> None:
    with alice.browser("alice") as client:
        put(client, "chosen-by-mallory")
        client.get("/login/github")
        assert client.cookies[COOKIE] != "chosen-by-mallory"
        assert account(client) == "@alice"
    with alice.browser() as mallory:
        put(mallory, "chosen-by-mallory")
        assert account(mallory) == ""


def test_each_sign_in_has_a_new_cookie_and_ends_the_one_before(alice: People) -> None:
    with alice.browser("alice") as client:
        client.get("/login/github")
        first = client.cookies[COOKIE]
        client.get("/login/github")
        assert client.cookies[COOKIE] != first
    with alice.browser() as other:
        put(other, first)
        assert account(other) == ""


def test_a_browser_is_signed_out_when_it_was_idle_too_long(alice: People) -> None:
    with alice.signed_in("alice") as client:
        for _ in range(2):
            alice.later += timedelta(hours=23)
            assert account(client) == "@alice"
        alice.later += timedelta(hours=24)
        assert account(client) == ""


def test_a_browser_is_signed_out_after_a_week_however_busy(alice: People) -> None:
    with alice.signed_in("alice") as client:
        for _ in range(8):
            assert account(client) == "@alice"
            alice.later += timedelta(hours=21)
        assert account(client) == ""


def test_a_browser_gets_another_cookie_every_hour_and_the_one_before_ends(alice: People) -> None:
    with alice.signed_in("alice") as client:
        first, csrf = client.cookies[COOKIE], form_token(client)
        alice.later += timedelta(minutes=61)
        assert account(client) == "@alice"
        assert client.cookies[COOKIE] != first
        with alice.browser() as late:
            put(late, first)
            assert account(late) == "@alice"  # The browser may not have got the other one.
            assert account(client) == "@alice"
            assert account(late) == "@alice"  # This request was under way.
            assert late.cookies[COOKIE] == first
        assert form_token(client) == csrf
        alice.later += timedelta(minutes=59)
        assert account(client) == "@alice"


def test_a_replaced_cookie_that_is_used_again_signs_its_browser_out(
    alice: People, caplog: pytest.LogCaptureFixture
) -> None:
    with alice.signed_in("alice") as client, alice.signed_in("alice") as other:
        stolen = client.cookies[COOKIE]
        alice.later += timedelta(minutes=61)
        assert [account(client) for _ in range(2)] == ["@alice"] * 2
        alice.later += timedelta(minutes=1)
        with alice.browser() as thief:
            put(thief, stolen)
            assert account(thief) == ""
        assert (
            "@alice: a sign-in cookie was used after its replacement, as if stolen; signed out"
            in caplog.text
        )
        assert [account(client), account(other)] == ["", "@alice"]


def test_signing_out_ends_all_cookies_of_the_browser(alice: People) -> None:
    with alice.signed_in("alice") as client:
        first = client.cookies[COOKIE]
        alice.later += timedelta(minutes=61)
        assert account(client) == "@alice"
        client.post("/logout")
    with alice.browser() as other:
        put(other, first)
        assert account(other) == ""


def test_signing_out_ends_the_sign_in_and_not_only_the_cookie(alice: People) -> None:
    with alice.signed_in("alice") as client:
        value = client.cookies[COOKIE]
        client.post("/logout")
        assert COOKIE not in client.cookies
    with alice.browser() as other:
        put(other, value)
        assert account(other) == ""


def test_signing_out_everywhere_ends_all_sign_ins_of_this_person_alone(alice: People) -> None:
    alice.may("bob", "read")
    with ExitStack() as opened:
        first, second, bob = (
            opened.enter_context(alice.signed_in(login)) for login in ("alice", "alice", "bob")
        )
        token = form_token(first)
        assert first.post("/account/sign-out", data={"csrf": "forged"}).status_code == 403
        first.post("/account/sign-out", data={"csrf": token})
        assert [account(one) for one in (first, second, bob)] == ["", "", "@bob"]


@pytest.mark.parametrize("method", ["github", "token"])
def test_the_settings_decide_which_ways_to_sign_in_there_are(
    make_people: Callable[..., People], method: str
) -> None:
    people = make_people(method)
    people.may("alice", "read")
    with people.browser() as client:
        by_token = client.get("/api/v1/sessions", headers=bearer()).status_code == 200
        form = client.post("/login", data={"token": TOKEN}).status_code == 200
    assert (by_token, form) == ((method == "token"),) * 2
    with people.signed_in("alice") as client:
        assert (account(client) == "@alice") is (method == "github")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin", "origin": "http://rewritten.example"}, 303),
        ({"sec-fetch-site": "none"}, 303),
        ({"host": "evil.example"}, 400),
        ({"host": "["}, 400),
        ({"host": "localhost:9000"}, 303),
        ({"host": "192.0.2.7:9000"}, 303),
    ],
)
def test_requests_of_other_sites_are_refused(
    site: Site, headers: dict[str, str], status: int
) -> None:
    response = site.http.post("/login", data={"token": TOKEN}, headers=headers)
    assert response.status_code == status
    assert ("set-cookie" in response.headers) is (status == 303)


def test_a_page_under_another_name_is_not_served(site: Site) -> None:
    for path in ("/login", "/"):
        response = site.http.get(path, headers={"host": "evil.example"})
        assert response.status_code == 400
        assert "which an administrator sets with" in response.text
    own = bearer() | {b"host": b"evil.example"}
    assert site.http.get("/api/v1/sessions", headers=own).status_code == 200
