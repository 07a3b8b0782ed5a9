"""Personal tokens: made on the page, used by programs, revoked and expired."""

import re
from datetime import datetime, timedelta

import httpx
import pytest

from bot.store import TokenScope
from tests.web.conftest import TOKEN
from tests.web.people import People, form_token

SESSIONS = "/api/v1/sessions"


@pytest.fixture
def alice(people: People) -> People:
    people.may("alice", "admin")
    people.site.session(1)
    return people


def made(client: httpx.Client, **fields: str) -> httpx.Response:
    data = {"csrf": form_token(client), "name": "ci", "scope": "steer", "days": "7", **fields}
    return client.post("/account/tokens", data=data)


def status(people: People, token: str) -> int:
    with people.browser() as client:
        headers = {"authorization": f"Bearer {token}"}
        return client.get(SESSIONS, headers=headers).status_code


def test_the_form_says_what_each_scope_allows(alice: People) -> None:
    with alice.signed_in("alice") as client:
        page = client.get("/account").text
    found = dict(re.findall('<option value="([a-z]+)">([^<]+)</option>', page))
    assert list(found) == [str(one) for one in TokenScope]
    assert found["message"] == "message: also answer and write to agents"


def test_a_token_is_shown_once_and_acts_for_its_person(alice: People) -> None:
    with alice.signed_in("alice") as client:
        page = made(client)
        assert page.status_code == 201
        (token,) = re.findall(r"mwp_[\w-]{43}", page.text)
        shown = client.get("/account").text
        assert token not in shown
        assert "<strong>ci</strong>" in shown
        assert "not used yet" in shown
    store = alice.site.store
    stored = store.path.read_bytes() + store.path.with_name("store.db-wal").read_bytes()
    assert token.encode() not in stored
    with alice.browser() as client:
        headers = {"authorization": f"Bearer {token}", "idempotency-key": "k"}
        body = {"kind": "stop"}
        assert client.post(f"{SESSIONS}/widgets-1/commands", json=body, headers=headers).is_success
    session = store.sessions.get("widgets-1")
    assert session is not None
    assert [command.actor for command in session.commands] == ["alice"]
    assert store.personal_tokens.of("alice")[0].used is not None


def test_a_token_expires(alice: People) -> None:
    with alice.signed_in("alice") as client:
        (token,) = re.findall(r"mwp_[\w-]{43}", made(client, days="7").text)
    alice.later += timedelta(days=6)
    assert status(alice, token) == 200
    alice.later += timedelta(days=1)
    assert status(alice, token) == 401


def test_a_token_says_for_whom_it_acts(alice: People) -> None:
    alice.may("alice", "read", "gears")
    with alice.browser() as client:
        bearer = alice.token("alice", TokenScope.STEER, days=7)
        account = client.get("/api/v1/account", headers=bearer).json()
        page = client.get("/api/v1/account", headers={b"authorization": f"Bearer {TOKEN}".encode()})
    expires = datetime.fromisoformat(account.pop("expires"))
    assert timedelta(days=6) < expires - alice.now() <= timedelta(days=7)
    permissions = {"gears": "read", "widgets": "write"}
    assert account == {"login": "alice", "most": "write", "permissions": permissions}
    everything = dict.fromkeys(("gears", "widgets"), "admin")
    whole = {"login": "", "most": "admin", "expires": None, "permissions": everything}
    assert page.json() == whole


def test_a_token_is_revoked_by_its_owner_or_with_the_page_token(alice: People) -> None:
    alice.may("bob", "admin")
    with alice.signed_in("alice") as client:
        (token,) = re.findall(r"mwp_[\w-]{43}", made(client).text)
    (one,) = alice.site.store.personal_tokens.of("alice")

    def revokes(client: httpx.Client) -> None:
        data = {"csrf": form_token(client), "id": str(one.id)}
        assert client.post("/account/tokens/revoke", data=data).status_code == 200

    with alice.signed_in("bob") as client:
        assert "<strong>ci</strong>" not in client.get("/account").text
        revokes(client)
    assert status(alice, token) == 200
    with alice.browser() as client:
        client.post("/login", data={"token": TOKEN})
        assert "of @alice" in client.get("/account").text
        revokes(client)
    assert status(alice, token) == 401


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "  "}, "a token needs a name"),
        ({"days": "0"}, "more than 0 and at most 365 days"),
        ({"days": "366"}, "more than 0 and at most 365 days"),
        ({"days": "nan"}, "more than 0 and at most 365 days"),
        ({"days": "soon"}, ""),
        ({"scope": "everything"}, ""),
    ],
)
def test_a_token_without_a_name_or_an_end_is_refused(
    alice: People, fields: dict[str, str], says: str
) -> None:
    with alice.signed_in("alice") as client:
        response = made(client, **fields)
        assert response.status_code == 400
        assert says in response.text.lower()
    assert alice.site.store.personal_tokens.of("") == []


def test_a_token_makes_no_other_token(alice: People) -> None:
    headers = alice.token("alice", TokenScope.ADMIN)
    with alice.browser() as client:
        data = {"name": "another", "csrf": ""}
        assert client.post("/account/tokens", data=data, headers=headers).status_code == 403
    assert [one.name for one in alice.site.store.personal_tokens.of("")] == ["ci"]


def test_an_unknown_token_opens_nothing_and_keeps_nobody_out(alice: People) -> None:
    for number in range(70):
        assert status(alice, f"mwp_{number:043}") == 401
    with alice.browser() as client:
        assert client.post("/login", data={"token": TOKEN}).status_code == 200
