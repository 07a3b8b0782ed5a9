"""`mergewright doctor`: what it finds at GitHub and at the server's own addresses."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
import respx

from bot.cli.doctor import OF_GITHUB
from tests.cli.conftest import API, GRAPHQL, Deployment, LineTail, configured, hook


def test_a_rejected_token_fails(lines: LineTail, github: respx.MockRouter) -> None:
    github.post("https://github.example/api/graphql").respond(
        401, json={"message": "Bad credentials"}
    )
    found = lines()["GitHub"]
    assert found.startswith("fail ")
    assert "Bad credentials" in found


def test_an_inaccessible_repository_fails(lines: LineTail, github: respx.MockRouter) -> None:
    github.get(f"{API}repos/acme/widgets").respond(404, json={"message": "Not Found"})
    found = lines()["GitHub"]
    assert found.startswith("fail ")
    assert "acme/widgets" in found


def test_an_unreachable_github_fails(lines: LineTail, github: respx.MockRouter) -> None:
    for route in github.routes:
        route.side_effect = httpx.ConnectError("refused")
    found = lines()
    assert found["GitHub"].startswith("fail ")
    assert "Nothing else about GitHub was checked. -> check the network" in found["GitHub"]
    assert not found.keys() & OF_GITHUB, "one outage is one line"


@pytest.mark.parametrize(
    ("status", "headers", "ends"),
    [
        (502, {}, "-> check the network and github.api-url, then run `mergewright doctor` again"),
        (429, {"retry-after": "60"}, "-> run `mergewright doctor` again after this time"),
    ],
)
def test_what_doctor_does_not_retry_is_not_announced(
    lines: LineTail,
    github: respx.MockRouter,
    status: int,
    headers: dict[str, str],
    ends: str,
) -> None:
    github.post(GRAPHQL).respond(status, headers=headers, json={"message": "Sorry"})
    found = lines()
    assert found["GitHub"].endswith(ends)
    assert not found.keys() & OF_GITHUB
    assert not [text for text in found.values() if "later" in text]


def test_a_clock_that_cannot_be_compared_fails(lines: LineTail, github: respx.MockRouter) -> None:
    github.head(API).side_effect = httpx.ConnectError("refused")
    assert lines()["clock"].startswith(f"fail {API} does not answer: refused")


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ([], "fail acme/widgets: the webhook is missing or inactive -> in the "),
        ([hook(active=False)], "fail acme/widgets: the webhook is missing or inactive"),
        ([hook(config={"url": "https://else.example/"})], "fail acme/widgets: the webhook is mis"),
        ([hook(events=["push"])], "fail acme/widgets: the webhook does not send check_run, "),
        (None, "warn not visible to this token: acme/widgets -> if missing, in the "),
    ],
)
def test_a_missing_webhook_is_found(
    lines: LineTail, github: respx.MockRouter, hooks: list[Any] | None, expected: str
) -> None:
    route = github.get(f"{API}repos/acme/widgets/hooks")
    if hooks is None:
        route.respond(404, json={"message": "Not Found"})
    else:
        route.respond(json=hooks)
    assert lines()["webhook"].startswith(expected)


def test_a_missing_label_is_found(lines: LineTail, deployment: Deployment) -> None:
    configured(deployment, "[projects.widgets]", 'label = "agents"')
    assert lines()["labels"].startswith("fail acme/widgets has no label `agents` -> create it")


@contextmanager
def http_server(port: int, says: bytes) -> Iterator[None]:
    """A program that answers every request with these bytes."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(says)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", port), Answer) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield
        server.shutdown()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as there:
        return int(there.getsockname()[1])


def test_a_taken_port_is_found(lines: LineTail, deployment: Deployment) -> None:
    taken = free_port()
    deployment.file.write_text(deployment.file.read_text().replace("port = 0", f"port = {taken}"))
    with http_server(taken, b"someone else"):
        found = lines()
    expected = f"fail 127.0.0.1:{taken}: another program listens there -> stop that program, or"
    assert found["port"].startswith(expected)


def test_a_server_that_runs_already_is_recognized(lines: LineTail, deployment: Deployment) -> None:
    ours = free_port()
    deployment.file.write_text(
        deployment.file.read_text()
        .replace("port = 0", f"port = {ours}")
        .replace("https://bot.example/", f"http://127.0.0.1:{ours}/")
    )
    with http_server(ours, b'{"alive":true}'):
        found = lines()
    assert found["port"] == f"ok 127.0.0.1:{ours}: the server is running"
    assert found["public URL"] == f"ok http://127.0.0.1:{ours}/ leads to this server"


def test_a_public_url_is_tried_before_the_server_runs(
    lines: LineTail, deployment: Deployment
) -> None:
    ours, elsewhere = free_port(), free_port()
    text = deployment.file.read_text().replace("port = 0", f"port = {ours}")
    deployment.file.write_text(text.replace("https://bot.example/", f"http://127.0.0.1:{ours}/"))
    found = lines()
    assert found["port"] == f"ok 127.0.0.1:{ours} is free"
    assert found["public URL"] == f"ok http://127.0.0.1:{ours}/ leads to this server"
    other = f"http://127.0.0.1:{elsewhere}/"
    deployment.file.write_text(text.replace("https://bot.example/", other))
    says = lines()["public URL"]
    assert says.startswith(f"fail {other} cannot be reached from here: ")
    assert f"-> make it lead to 127.0.0.1:{ours}, for example" in says
    with http_server(elsewhere, b"someone else"):
        says = lines()["public URL"]
    assert says.startswith(f"fail {other} does not lead to this server: it answers 200")


def test_webhooks_need_a_public_url(lines: LineTail, deployment: Deployment) -> None:
    text = deployment.file.read_text().replace('public-url = "https://bot.example/"', "")
    deployment.file.write_text(text)
    assert lines()["public URL"].startswith("fail not set: GitHub cannot send webhooks")
    configured(deployment, "[github]", 'events = "polling"')
    assert lines()["public URL"].startswith("ok not set: links lead to http://127.0.0.1:0/")


def test_a_wrong_clock_fails(lines: LineTail, github: respx.MockRouter) -> None:
    then = datetime.now(UTC) - timedelta(minutes=5)
    github.head(API).respond(headers={"Date": format_datetime(then)})
    assert lines()["clock"].endswith("s off GitHub's clock -> set the clock with NTP")


def test_a_response_without_a_date_is_a_warning(lines: LineTail, github: respx.MockRouter) -> None:
    github.head(API).respond()
    assert lines()["clock"].startswith("warn ")


SIGN_IN = '[sign-in]\nmethod = "github"\nclient-id = "Iv1.1"\n'
TOKENS = "https://github.example/login/oauth/access_token"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            "bad_verification_code",
            "ok with GitHub; the App needs the callback URL https://bot.example/login/callback",
        ),
        ("incorrect_client_credentials", "fail GitHub refused the sign-in: incorrect_client"),
    ],
)
def test_the_client_secret_is_tried(
    lines: LineTail,
    deployment: Deployment,
    github: respx.MockRouter,
    monkeypatch: pytest.MonkeyPatch,
    error: str,
    expected: str,
) -> None:
    with deployment.file.open("a") as file:
        file.write(SIGN_IN)
    monkeypatch.setenv("MERGEWRIGHT_GITHUB_CLIENT_SECRET", "s" * 40)
    asked = github.post(TOKENS).respond(json={"error": error})
    found = lines()
    assert found["sign-in"].startswith(expected)
    assert found["page token"] == "ok neither needed nor accepted: people sign in with GitHub"
    assert b"s" * 40 in asked.calls[0].request.content


def test_a_missing_client_secret_fails_with_its_variable(
    lines: LineTail, deployment: Deployment
) -> None:
    with deployment.file.open("a") as file:
        file.write(SIGN_IN)
    found = lines()["sign-in"]
    assert found.startswith("fail no sign-in with GitHub")
    assert "-> set MERGEWRIGHT_GITHUB_CLIENT_SECRET" in found


def test_without_people_the_page_token_signs_in(lines: LineTail) -> None:
    assert lines()["sign-in"] == "ok with the page token, for one person"
