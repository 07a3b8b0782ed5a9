"""Every route is tested with every role: who may use it, and which sessions they see."""

import hashlib
import hmac
from datetime import timedelta
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.routes import ASGIRoute, HTTPRoute

from bot.store import TokenScope
from bot.web.personal_tokens import ROLES
from bot.web.sign_ins import COOKIE
from bot.web.visitor import NEEDS, Needs, Visitor, Where
from lifecycle.model.roles import Role
from tests.web.conftest import Site, bearer
from tests.web.people import LEVELS, People, form_token, put

API = "/api/v1"
READ, TRIAGE, WRITE, ADMIN = Role.READ, Role.TRIAGE, Role.WRITE, Role.ADMIN
ANY, EVERY, SESSION = Where.ANYWHERE, Where.EVERYWHERE, Where.SESSION
#: Every route that is not for everybody, and what it requires.
WANTED = {
    "GET /": Needs(ANY, READ),
    "GET /account": Needs(ANY, READ),
    "POST /account/sign-out": Needs(ANY, READ),
    "POST /account/tokens": Needs(ANY, READ),
    "POST /account/tokens/revoke": Needs(ANY, READ),
    "GET /agents": Needs(ANY, READ),
    "GET /agents/{name}": Needs(ANY, READ),
    **dict.fromkeys(("GET /projects", "GET /projects/{name}"), Needs(ANY, READ)),
    **dict.fromkeys(("GET /costs", "GET /costs.csv"), Needs(ANY, READ)),
    "GET /deliveries": Needs(ANY, READ),
    "GET /deliveries/{id}": Needs(ANY, READ),
    "POST /deliveries/{id}/retry": Needs(EVERY, ADMIN),
    "GET /health": Needs(EVERY, READ),
    "GET /api": Needs(ANY, READ),
    "GET /events": Needs(ANY, READ),
    "POST /sessions": Needs(ANY, WRITE),
    "POST /freeze": Needs(ANY, ADMIN),
    "POST /unfreeze": Needs(ANY, ADMIN),
    "GET /metrics": Needs(EVERY, READ),
    **{
        f"GET /sessions/{{id}}{tab}": Needs(SESSION, READ)
        for tab in (
            "",
            "/terminal",
            "/screen",
            "/transcript",
            "/changes",
            "/checks",
            "/setup",
            "/cost",
        )
    },
    **dict.fromkeys(("GET /sessions/{id}/facts", "GET /sessions/{id}/setup"), Needs(SESSION, READ)),
    "POST /sessions/{id}/ask": Needs(SESSION, TRIAGE),
    "POST /sessions/{id}/keys": Needs(SESSION, ADMIN),
    f"GET {API}/openapi.json": Needs(ANY, READ),
    f"GET {API}/sessions": Needs(ANY, READ),
    **{
        f"GET {API}/sessions/{{id}}{end}": Needs(SESSION, READ)
        for end in ("", "/history", "/log", "/log/stream", "/steps", "/transcript", "/why")
    },
    f"POST {API}/sessions": Needs(ANY, WRITE),
    f"POST {API}/sessions/{{id}}/commands": Needs(SESSION, TRIAGE),
    f"POST {API}/sessions/{{id}}/keys": Needs(SESSION, ADMIN),
    f"GET {API}/commands/{{key}}": Needs(ANY, READ),
    f"PATCH {API}/sessions/{{id}}/metadata": Needs(SESSION, WRITE),
    f"GET {API}/events": Needs(ANY, READ),
    f"GET {API}/agents": Needs(ANY, READ),
    f"GET {API}/agents/{{name}}": Needs(ANY, READ),
    f"GET {API}/agents/{{name}}/types": Needs(ANY, READ),
    f"GET {API}/agents/{{name}}/weeks": Needs(ANY, READ),
    f"GET {API}/projects": Needs(ANY, READ),
    f"GET {API}/projects/{{project}}": Needs(ANY, READ),
    f"GET {API}/usage": Needs(ANY, READ),
    f"GET {API}/prices": Needs(ANY, READ),
    f"GET {API}/queue": Needs(ANY, READ),
    f"GET {API}/health": Needs(EVERY, READ),
    f"GET {API}/incidents": Needs(EVERY, READ),
    f"GET {API}/account": Needs(ANY, READ),
    f"GET {API}/board": Needs(ANY, READ),
    f"GET {API}/freezes": Needs(ANY, READ),
    f"PUT {API}/freezes/{{target}}": Needs(ANY, ADMIN),
    f"DELETE {API}/freezes/{{target}}": Needs(ANY, ADMIN),
    f"GET {API}/deliveries": Needs(ANY, READ),
    f"GET {API}/deliveries/{{id}}": Needs(ANY, READ),
    f"GET {API}/deliveries/{{id}}/dry-run": Needs(EVERY, READ),
    f"PUT {API}/deliveries/{{id}}/retry": Needs(EVERY, ADMIN),
}
PUBLIC = {
    *("GET /healthz", "GET /readyz", "GET /static/{file_path}"),
    *("GET /login", "POST /login", "POST /logout", "GET /login/github", "GET /login/callback"),
}
BODIES: dict[str, dict[str, Any]] = {
    "POST /sessions/{id}/ask": {"kind": "tell", "text": "Use tabs."},
    "POST /account/tokens": {"name": "ci"},
    "POST /sessions": {"project": "widgets", "prompt": "Add a flag"},
    f"POST {API}/sessions": {"project": "widgets", "issue": 12},
    f"POST {API}/sessions/{{id}}/commands": {"kind": "tell", "text": "Use tabs."},
    "POST /sessions/{id}/keys": {"keys": '["y"]', "key": "k-1"},
    f"POST {API}/sessions/{{id}}/keys": {"keys": ["y"]},
    f"PATCH {API}/sessions/{{id}}/metadata": {"ticket": "A-1"},
}
#: What the parts of a path are replaced with.
PARTS = {
    "deliveries/{id}": "deliveries/d-1",
    "projects/{name}": "projects/widgets",
    "{project}": "widgets",
    "{id}": "widgets-1",
    "{name}": "shell",
    "{key}": "api:widgets-1:k-1",
    "{target}": "all",
}


def declared(app: Litestar) -> dict[str, Needs | None]:
    """What the handler of each route says that it requires."""
    found: dict[str, Needs | None] = {}
    for route in app.routes:
        if isinstance(route, ASGIRoute):
            found[f"* {route.path_format}"] = route.route_handler.opt.get(NEEDS)
        elif isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                for method in handler.http_methods - {"OPTIONS", "HEAD"}:
                    found[f"{method} {route.path_format}"] = handler.opt.get(NEEDS)
    return found


def test_every_route_declares_who_may_use_it(site: Site) -> None:
    found = declared(site.app)
    assert [name for name, needs in found.items() if needs is None] == []
    public = {name for name, needs in found.items() if needs and needs.where is Where.NOWHERE}
    assert public == PUBLIC
    assert {name: needs for name, needs in found.items() if name not in PUBLIC} == WANTED


def test_every_route_that_is_not_for_everybody_has_a_guard(site: Site) -> None:
    unguarded = [
        f"{sorted(handler.http_methods)} {route.path_format}"
        for route in site.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        if f"{min(handler.http_methods)} {route.path_format}" in WANTED
        if not handler.resolve_guards()
    ]
    assert unguarded == []


def asked(client: httpx.Client, name: str, headers: dict[bytes, bytes]) -> str:
    """Ask for a route; how access to it was refused, or an empty text."""
    cookie = client.cookies.get(COOKIE) or ""
    sign_in = hashlib.sha256(cookie.encode()).hexdigest() if cookie else ""
    csrf = hmac.new(sign_in.encode(), b"form", "sha256").hexdigest()
    method, _, path = name.partition(" ")
    for part, value in PARTS.items():
        path = path.replace(part, value)
    body = BODIES.get(name, {})
    api = path.startswith(API)
    content: dict[str, Any] = {"json": body} if api else {"data": {**body, "csrf": csrf}}
    if method in ("GET", "DELETE") or (api and not body):
        content = {}
    given = {b"idempotency-key": b"k-1", b"accept": b"application/json", **headers}
    with client.stream(method, path, headers=given, follow_redirects=False, **content) as response:
        refused = response.status_code in (401, 403)
        refused |= response.status_code == 303 and response.headers["location"] == "/login"
        if response.status_code == 404:
            refused = "No session widgets-1" in response.read().decode()
        assert response.status_code < 500
        signs_out = name == "POST /account/sign-out" and "set-cookie" in response.headers
        return str(response.status_code) if refused and not signs_out else ""


def may(role: Role, needs: Needs, name: str, *, bears: bool) -> bool:
    method, _, path = name.partition(" ")
    if path.startswith("/account/") and bears:
        return False  # A token changes no account.
    if path.startswith(API) and method != "GET" and not bears:
        return False  # A cookie changes nothing over the API.
    return role >= needs.role


def mismatches(
    client: httpx.Client, role: Role, headers: dict[bytes, bytes] | None = None
) -> dict[str, str]:
    """The routes that are open and should not be, or the other way round."""
    wrong = {}
    for name, needs in sorted(WANTED.items(), key=lambda one: "sign-out" in one[0]):
        refusal = asked(client, name, headers or {})
        if may(role, needs, name, bears=bool(headers)) is bool(refusal):
            wrong[name] = refusal or "allowed"
    return wrong


@pytest.mark.parametrize("level", LEVELS)
def test_a_role_opens_its_routes_in_a_browser(filled: People, level: str) -> None:
    with filled.signed_in(f"{level}-er") as client:
        assert mismatches(client, LEVELS[level]) == {}


@pytest.mark.parametrize("level", LEVELS)
def test_a_role_limits_the_tokens_of_its_person(filled: People, level: str) -> None:
    headers = filled.token(f"{level}-er", TokenScope.ADMIN)
    with filled.browser() as client:
        assert mismatches(client, LEVELS[level], headers) == {}


@pytest.mark.parametrize("scope", TokenScope)
def test_a_scope_limits_the_role_of_a_token(filled: People, scope: TokenScope) -> None:
    headers = filled.token("admin-er", scope)
    with filled.browser() as client:
        assert mismatches(client, ROLES[scope], headers) == {}


def test_the_page_token_opens_all_routes(filled: People) -> None:
    with filled.browser() as client:
        assert mismatches(client, ADMIN, bearer()) == {}


def test_without_a_sign_in_no_route_is_open(filled: People) -> None:
    with filled.browser() as client:
        assert [name for name in WANTED if not asked(client, name, {})] == []


@pytest.mark.parametrize(
    ("level", "kind", "status"),
    [
        ("read", "tell", 403),
        ("triage", "tell", 202),
        ("triage", "answer", 202),
        ("triage", "stop", 403),
        ("triage", "freeze", 403),
        ("write", "stop", 202),
        ("write", "pause", 202),
        ("admin", "stop", 202),
    ],
)
def test_a_command_passes_the_check_of_a_comment(
    filled: People, level: str, kind: str, status: int
) -> None:
    headers = filled.token(f"{level}-er", TokenScope.ADMIN)
    words = {"text": "Yes."} if kind in ("tell", "answer") else {}
    with filled.browser() as client:
        response = client.post(
            f"{API}/sessions/widgets-1/commands",
            json={"kind": kind, **words},
            headers={b"idempotency-key": b"k", **headers},
        )
    assert response.status_code == status
    session = filled.site.store.sessions.get("widgets-1")
    assert session is not None
    given = [(command.kind, command.actor) for command in session.commands]
    assert given == ([(kind, f"{level}-er")] if status == 202 else [])


def test_a_form_carries_the_persons_login_into_history(filled: People) -> None:
    with filled.signed_in("write-er") as client:
        fields = {"csrf": form_token(client), "kind": "pause"}
        client.post("/sessions/widgets-1/ask", data=fields)
        assert (
            "@write-er gave the command <code>pause</code>"
            in client.get("/sessions/widgets-1").text
        )
    with filled.signed_in("admin-er") as client:
        client.post("/freeze", data={"csrf": form_token(client), "scope": ""})
    assert [one.by for one in filled.site.store.freezes.all()] == ["admin-er"]


def test_a_session_is_opened_by_those_who_may_start_an_agent(filled: People) -> None:
    filled.may("dana", "write", "widgets")
    filled.may("dana", "triage", "gears")
    with filled.signed_in("triage-er") as client:
        assert 'action="/sessions"' not in client.get("/").text
    with filled.signed_in("dana") as client:
        board = client.get("/").text
        form = board.split('action="/sessions"', 1)[1].split("</form>", 1)[0]
        assert "<option>widgets</option>" in form
        assert "<option>gears</option>" not in form
        fields = {"csrf": form_token(client), "prompt": "Add a flag"}
        assert client.post("/sessions", data={**fields, "project": "gears"}).status_code == 403
        client.post("/sessions", data={**fields, "project": "widgets"})
    token = filled.token("dana", TokenScope.ADMIN)
    with filled.browser() as client:
        for project, status in (("gears", 403), ("widgets", 202)):
            headers = {b"idempotency-key": b"k", **token}
            wanted = {"project": project, "prompt": "Add a flag"}
            response = client.post(f"{API}/sessions", json=wanted, headers=headers)
            assert response.status_code == status
    asked = [
        (one.actor, one.spawn and one.spawn.session) for one in filled.site.store.commands.new()
    ]
    assert asked == [("dana", "widgets-p1"), ("dana", "widgets-p2")]


def test_a_session_that_is_not_open_yet_is_hidden_from_those_who_see_no_project_of_it(
    filled: People,
) -> None:
    filled.may("dana", "read", "gears")
    token = filled.token("write-er", TokenScope.ADMIN)
    with filled.browser() as client:
        headers = {b"idempotency-key": b"k", **token}
        wanted = {"project": "widgets", "prompt": "Add a flag"}
        key = client.post(f"{API}/sessions", json=wanted, headers=headers).json()["key"]
        for login, detail, status in (
            ("write-er", "No session widgets-p1 yet.", 200),
            ("dana", "No session widgets-p1.", 404),
        ):
            token = filled.token(login, TokenScope.ADMIN)
            found = client.get(f"{API}/sessions/widgets-p1", headers=token)
            assert (found.status_code, found.json()["detail"]) == (404, detail)
            assert client.get(f"{API}/commands/{key}", headers=token).status_code == status


def test_what_programs_change_carries_the_persons_login(
    filled: People, caplog: pytest.LogCaptureFixture
) -> None:
    with filled.browser() as client, caplog.at_level("INFO"):
        write, admin = (filled.token(f"{one}-er", TokenScope.ADMIN) for one in ("write", "admin"))
        client.patch(f"{API}/sessions/widgets-1/metadata", json={"ticket": "A-1"}, headers=write)
        (set_,) = client.get(f"{API}/sessions/widgets-1/history?limit=1", headers=write).json()[
            "items"
        ]
        assert (set_["kind"], set_["actor"], set_["text"]) == (
            "metadata",
            "write-er",
            "Metadata set: ticket",
        )
        assert (
            "@write-er set metadata: ticket"
            in client.get("/sessions/widgets-1", headers=write).text
        )
        client.put(f"{API}/freezes/project:widgets", headers=admin)
        assert [one.by for one in filled.site.store.freezes.all()] == ["admin-er"]
        filled.site.store.deliveries.mark_failed("d-1", "it is no JSON")
        client.put(f"{API}/deliveries/d-1/retry", headers=admin)
    assert "delivery d-1 is processed again, as admin-er asked" in caplog.text


def test_pages_have_the_buttons_of_the_role(filled: People) -> None:
    def buttons(login: str) -> tuple[bool, bool, bool]:
        with filled.signed_in(login) as client:
            page, board = client.get("/sessions/widgets-1").text, client.get("/").text
        return 'value="tell"' in page, 'value="stop"' in page, 'action="/freeze"' in board

    assert buttons("read-er") == (False, False, False)
    assert buttons("triage-er") == (True, False, False)
    assert buttons("write-er") == (True, True, False)
    assert buttons("admin-er") == (True, True, True)


def test_a_lost_permission_ends_access_within_the_time_it_is_kept(filled: People) -> None:
    token = filled.token("write-er", TokenScope.ADMIN)
    with filled.signed_in("write-er") as client:
        assert client.get("/sessions/widgets-1").status_code == 200
        filled.may("write-er", "none")
        filled.later += timedelta(seconds=100)
        assert client.get("/sessions/widgets-1").status_code == 200
        filled.later += timedelta(seconds=200)
        assert client.get("/sessions/widgets-1").status_code == 404
        assert client.get("/").status_code == 403
    with filled.browser() as client:
        assert client.get(f"{API}/sessions", headers=token).status_code == 403


def test_a_command_is_judged_by_a_permission_of_the_last_minute(filled: People) -> None:
    token = filled.token("write-er", TokenScope.ADMIN)

    def stop(key: bytes) -> int:
        return client.post(
            f"{API}/sessions/widgets-1/commands",
            json={"kind": "stop"},
            headers={b"idempotency-key": key, **token},
        ).status_code

    with filled.browser() as client:
        assert stop(b"1") == 202
        filled.may("write-er", "read")
        filled.later += timedelta(seconds=60)
        assert stop(b"2") == 403


def test_an_outage_of_github_opens_nothing(filled: People) -> None:
    filled.github.fail_next("GET", "permission$", 500, times=99)
    with filled.signed_in("write-er") as client:
        response = client.get("/sessions/widgets-1")
        assert response.status_code == 503
        assert "Try again in a minute" in response.text
        problem = client.get(f"{API}/sessions").json()
    assert problem["status"] == 503


def test_another_account_of_the_same_login_has_no_access(filled: People) -> None:
    with filled.browser() as client:
        taken = Visitor(login="write-er", user=1)
        put(client, filled.site.sign_ins.begin(taken))
        assert client.get("/sessions/widgets-1").status_code == 404
