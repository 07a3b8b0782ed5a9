"""What every route of the API has in common: its documentation, access and errors."""

import json
import subprocess
import sys
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar.handlers import HTTPRouteHandler

from bot.intake.local_commands import LOCAL_COMMANDS
from bot.show.run_log import LogPage
from bot.store import Delivery
from bot.web.api.command_schema import schema_name
from bot.web.api.commands import CommandRequest, SessionRequest
from bot.web.api.router import PATH, ROUTES, document
from bot.web.terminal_keys import KeysRequest
from tests.web.conftest import Site, bearer, sign_in

#: A body for each route that takes one.
BODIES: dict[str, Any] = {
    "start_session": {"project": "widgets", "issue": 12},
    "give_command": {"kind": "stop"},
    "press_keys": {"keys": ["y"]},
    "set_metadata": {"ticket": "A-1"},
}
PATHS = {
    "{id:str}": "widgets-1",
    "{name:str}": "ada",
    "{target:str}": "all",
    "{project:str}": "widgets",
    "{key:str}": "api:widgets-1:k-1",
}
READS = [route for route in ROUTES if "GET" in route.http_methods]
WRITES = [route for route in ROUTES if "GET" not in route.http_methods]


def name(route: HTTPRouteHandler) -> str:
    return str(route.operation_id)


every = pytest.mark.parametrize("route", ROUTES, ids=name)
reads = pytest.mark.parametrize(
    "route", [route for route in READS if not name(route).startswith("follow_")], ids=name
)
writes = pytest.mark.parametrize("route", WRITES, ids=name)


def sent(site: Site, route: HTTPRouteHandler, **headers: str) -> httpx.Response:
    """A request for this route that is valid but for access."""
    (path,), (method,) = route.paths, sorted(route.http_methods - {"HEAD", "OPTIONS"})
    for part, value in PATHS.items():
        path = path.replace(part, value)
    given = {"idempotency-key": "k-1", **headers}
    encoded = {key.encode(): value.encode() for key, value in given.items()}
    return site.http.request(method, PATH + path, json=BODIES.get(name(route)), headers=encoded)


def checked_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """The problem in a response, as RFC 9457 has it."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert problem["remedy"]
    return problem


def described(route: HTTPRouteHandler) -> dict[str, Any]:
    operations = [
        operation
        for path in json.loads(document())["paths"].values()
        for operation in path.values()
        if operation["operationId"] == name(route)
    ]
    assert len(operations) == 1
    return dict(operations[0])


@every
def test_a_route_is_documented(route: HTTPRouteHandler) -> None:
    operation = described(route)
    assert operation["summary"]
    assert operation["description"].startswith(operation["summary"])
    assert operation["tags"]
    assert operation["security"] == [{"bearer": []}]
    for status in ("400", "401", "403", "500"):
        (media,) = operation["responses"][status]["content"]
        assert media == "application/problem+json"


@every
def test_a_route_requires_the_token(site: Site, route: HTTPRouteHandler) -> None:
    site.session(1)
    for headers in ({}, {"authorization": "Bearer of ill news"}, {"authorization": "Basic dTpw"}):
        response = sent(site, route, **headers)
        problem = checked_problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"
        assert problem["detail"] == "The page token is missing or wrong."
    assert site.store.sessions.get("widgets-1").commands == ()  # type: ignore[union-attr]


@writes
def test_a_cookie_is_not_enough_to_write(site: Site, route: HTTPRouteHandler) -> None:
    """A browser sends it with requests that other sites make."""
    session = site.session(1)
    sign_in(site)
    problem = checked_problem(sent(site, route), 403)
    assert problem["detail"] == "A cookie is not enough to change anything here."
    found = site.store.sessions.get(session)
    assert found is not None
    assert (found.commands, found.metadata) == ((), {})
    assert site.store.freezes.all() == []
    assert site.store.commands.new() == []


@reads
def test_a_read_has_the_documented_type(site: Site, route: HTTPRouteHandler) -> None:
    session = site.session(1)
    site.log_page = lambda *_: LogPage(lines=("Done.",), cursor=6, more=False)
    site.store.db.write(
        lambda connection: connection.execute("UPDATE sessions SET agent_name = 'ada'")
    )
    assert session == PATHS["{id:str}"]
    delivery = Delivery(id=session, event="issues", at=site.store.clock(), body=b"{}")
    site.store.deliveries.add([delivery]).result()
    (gives,) = [one for one in WRITES if name(one) == "give_command"]
    sent(site, gives, authorization=bearer()[b"authorization"].decode())
    sign_in(site)
    response = sent(site, route)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    annotation = route.parsed_fn_signature.return_type.annotation
    msgspec.json.decode(response.content, type=annotation)


@writes
def test_a_write_can_be_repeated(site: Site, route: HTTPRouteHandler) -> None:
    site.session(1)
    failed = Delivery(id="widgets-1", event="issues", at=site.store.clock(), body=b"{")
    site.store.deliveries.add([failed]).result()
    token = bearer()[b"authorization"].decode()
    first, again = (sent(site, route, authorization=token) for _ in range(2))
    assert first.status_code == route.status_code, first.text
    assert again.status_code == 200
    if "POST" in route.http_methods:
        assert {**first.json(), "new": False} == again.json()
    else:
        assert first.json() == again.json()


def test_an_unknown_route_and_method_are_problems(site: Site) -> None:
    assert checked_problem(site.seen("/api/v1/nothing"), 404)["title"] == "Not Found"
    assert checked_problem(site.seen("/api/nothing"), 404)
    response = site.http.post("/api/v1/queue", headers=bearer())
    assert checked_problem(response, 405)["title"] == "Method Not Allowed"


@pytest.mark.parametrize("path", sorted({path for route in ROUTES for path in route.paths}))
def test_a_path_names_its_methods(site: Site, path: str) -> None:
    methods = {method for route in ROUTES if path in route.paths for method in route.http_methods}
    for part, value in PATHS.items():
        path = path.replace(part, value)
    response = site.http.options(PATH + path, headers=bearer())
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["allow"] == ", ".join(sorted({*methods, "OPTIONS"}))
    refused = site.http.request("TRACE", PATH + path, headers=bearer())
    assert set(refused.headers["allow"].split(", ")) == {*methods, "OPTIONS"}


def schemas() -> dict[str, Any]:
    return dict(json.loads(document())["components"]["schemas"])


def test_every_command_has_a_schema() -> None:
    parts = [one["$ref"].rpartition("/")[2] for one in schemas()["CommandRequest"]["oneOf"]]
    kinds = [schemas()[part]["properties"]["kind"]["const"] for part in parts]
    assert kinds == list(LOCAL_COMMANDS)


@pytest.mark.parametrize("kind", LOCAL_COMMANDS)
@settings(deadline=None, derandomize=True)
@given(data=st.data())
def test_a_text_that_the_document_allows_is_accepted(kind: str, data: st.DataObject) -> None:
    text = schemas()[schema_name(kind)]["properties"].get("text", {"const": ""})
    allowed = (
        st.from_regex(text["pattern"])
        if "pattern" in text
        else st.sampled_from(text.get("enum", [""]))
    )
    LOCAL_COMMANDS[kind].parse_argument(data.draw(allowed).strip())


def test_bodies_with_unknown_fields_are_not_allowed() -> None:
    bodies = (CommandRequest, KeysRequest, SessionRequest)
    assert all(one.__struct_config__.forbid_unknown_fields for one in bodies)
    closed = [name for name, schema in schemas().items() if "additionalProperties" in schema]
    commands = {schema_name(kind) for kind in LOCAL_COMMANDS}
    assert set(closed) == {*commands, "KeysRequest", "SessionRequest"}


def test_the_document_is_served_to_those_with_access(site: Site) -> None:
    checked_problem(site.http.get("/api/v1/openapi.json"), 401)
    response = site.seen("/api/v1/openapi.json")
    assert response.headers["content-type"] == "application/json"
    found = response.json()
    assert found["openapi"].startswith("3.1")
    assert found["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"}
    }
    operations = [one for path in found["paths"].values() for one in path]
    assert len(operations) == len(ROUTES)


def test_the_document_needs_no_generator_of_examples() -> None:
    """Litestar needs polyfactory and faker only to invent examples; requirements.txt omits both."""
    blocked = "import sys; sys.modules.update(polyfactory=None, faker=None)"
    made = "from bot.web.api.router import document; print(len(document()))"
    done = subprocess.run(
        [sys.executable, "-c", f"{blocked}; {made}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
