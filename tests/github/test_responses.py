"""Error responses, and which failure each means."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import respx

from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import LIMIT_PAUSE, Refused, TryLater
from tests.github.conftest import API, GRAPHQL, NOW, REPO

RESET = int((NOW + timedelta(minutes=9)).timestamp())
PAST = int((NOW - timedelta(minutes=9)).timestamp())
LATER = {
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": str(RESET),
}
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."


@pytest.mark.parametrize(
    ("status", "headers", "body", "at"),
    [
        (500, {}, b"", None),
        (502, {}, b"<html>Unicorn!</html>", None),
        (503, {}, b"<html>Unicorn!</html>", None),
        (503, {"retry-after": "30"}, b"", NOW + timedelta(seconds=30)),
        (503, {"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, b"", None),
        (504, {}, b"", None),
        (408, {}, b"", None),
        (429, {}, b"", None),
        (429, {"retry-after": "7"}, b"", NOW + timedelta(seconds=7)),
        (403, {"retry-after": "60"}, b"{}", NOW + timedelta(seconds=60)),
        (403, {"retry-after": "soon"}, b"{}", NOW + LIMIT_PAUSE),
        (403, {"retry-after": "²"}, b"{}", NOW + LIMIT_PAUSE),
        (403, {"retry-after": "9" * 40}, b"{}", NOW + LIMIT_PAUSE),
        (403, LATER, b"{}", datetime.fromtimestamp(RESET, UTC)),
        (429, LATER, b"{}", datetime.fromtimestamp(RESET, UTC)),
        (403, {**LATER, "x-ratelimit-reset": str(PAST)}, b"{}", NOW),
        (429, {**LATER, "x-ratelimit-reset": str(PAST)}, b"", NOW),
        (403, {"x-ratelimit-remaining": "0"}, b"{}", NOW + LIMIT_PAUSE),
        (403, {}, json.dumps({"message": SECONDARY}).encode(), NOW + LIMIT_PAUSE),
        (
            403,
            {},
            b'{"message":"You have triggered an abuse detection mechanism."}',
            NOW + LIMIT_PAUSE,
        ),
        (200, {}, b"", None),
        (200, {}, b"not JSON", None),
        (200, {}, b'{"default_branch": "main", "private": fal', None),
        (200, {}, b'{"default_branch": null, "private": false, "clone_url": ""}', None),
        (200, {}, b"[" * 100_000, None),
        (200, {}, b'{"skipped": ' + b"[" * 100_000, None),
        (200, {}, b'{"default_branch": "\xff"}', None),
    ],
)
def test_temporary_failures_are_retried_later(
    github: GitHub,
    respx_mock: respx.MockRouter,
    status: int,
    headers: dict[str, str],
    body: bytes,
    at: datetime | None,
) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    respx_mock.get(REPO).respond(status, headers=encoded, content=body)
    with pytest.raises(TryLater) as failure:
        github.read.repository("acme/widgets")
    assert failure.value.at == at
    assert "repos/acme/widgets" in str(failure.value)
    assert len(respx_mock.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b'{"message":"Bad credentials"}', "Bad credentials. Check that the token"),
        (403, b'{"message":"Resource not accessible by integration"}', "permission it lacks"),
        (404, b'{"message":"Not Found"}', "Not Found. Check that what the request names exists"),
        (410, b'{"message":"Issues are disabled"}', "Issues are disabled"),
        (422, b'{"message":"Validation Failed","errors":["a","b"]}', "Validation Failed; a; b"),
        (422, b'{"message":"Validation Failed","errors":"a"}', "Validation Failed; a"),
        (422, b'{"errors":[{"resource":"X","field":"head","code":"invalid"}]}', "head invalid"),
        (422, b'{"errors":[{"field":null,"code":"custom","message":"No."}]}', "No."),
        (451, b"<html>", "legal"),
        (400, b"", "400"),
        (304, b"", "304"),
    ],
)
def test_permanent_failures_are_refused(
    github: GitHub, respx_mock: respx.MockRouter, status: int, body: bytes, says: str
) -> None:
    respx_mock.get(REPO).respond(status, content=body)
    with pytest.raises(Refused, match=says) as refusal:
        github.read.repository("acme/widgets")
    assert refusal.value.status == status


def test_githubs_error_message_is_one_short_line(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(REPO).respond(422, json={"message": "\x1b[31mno\n" + "x" * 5000})
    with pytest.raises(Refused) as refusal:
        github.read.repository("acme/widgets")
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    "kind", [httpx.ConnectTimeout, httpx.ReadTimeout, httpx.PoolTimeout, httpx.ReadError]
)
def test_a_broken_connection_is_retried_later(
    github: GitHub, respx_mock: respx.MockRouter, kind: type[Exception]
) -> None:
    respx_mock.get(REPO).mock(side_effect=kind)
    with pytest.raises(TryLater) as failure:
        github.read.repository("acme/widgets")
    assert failure.value.at is None


def test_an_error_in_our_request_is_not_retried(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(REPO).mock(side_effect=KeyError("ours"))
    with pytest.raises(Exception, match="ours") as failure:
        github.read.repository("acme/widgets")
    assert not isinstance(failure.value, TryLater | Refused)


# On real sockets


Talk = Callable[[socket.socket, threading.Event], None]


@contextmanager
def server(talk: Talk) -> Iterator[str]:
    """Run a server that reads one request, then calls `talk`; yield its URL.

    `talk` gets the connection, and an event that is set when the test leaves the context.
    """
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            talk(connection, over)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        over.set()
        thread.join(10)
        listening.close()


@contextmanager
def client(url: str, seconds: float = 5.0) -> Iterator[GitHub]:
    github = GitHub(url, Credentials(token="s3cret"), timeout_seconds=seconds)
    try:
        yield github
    finally:
        github.close()


def test_a_refused_connection_is_retried_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with client(url) as github, pytest.raises(TryLater, match="cannot be reached"):
        github.read.repository("acme/widgets")


def test_threads_share_one_connection_pool() -> None:
    said = b'{"permission": "write"}'
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(said)}\r\n\r\n".encode()

    def answer_twice(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(head + said)
        connection.recv(65536)
        connection.sendall(head + said)

    with server(answer_twice) as url, client(url) as github:
        assert github.read.may_write("acme/widgets", "ada")
        with ThreadPoolExecutor(1) as another:
            assert another.submit(github.read.may_write, "acme/widgets", "ada").result()


def test_a_silent_server_times_out() -> None:
    def wait(_: socket.socket, over: threading.Event) -> None:
        over.wait(10)

    with server(wait) as url, client(url, 0.2) as github, pytest.raises(TryLater, match="in time"):
        github.read.repository("acme/widgets")


@pytest.mark.parametrize("status", [200, 502])
def test_a_body_that_never_ends_times_out(status: int) -> None:
    def drip(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 %d So\r\nContent-Length: 100000\r\n\r\n" % status)
        with suppress(OSError):
            while not over.wait(0.02):
                connection.sendall(b" ")

    with server(drip) as url, client(url, 0.2) as github, pytest.raises(TryLater, match="in time"):
        github.read.repository("acme/widgets")


def test_a_truncated_body_is_retried_later() -> None:
    def cut(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")

    with server(cut) as url, client(url) as github, pytest.raises(TryLater, match="be reached"):
        github.read.repository("acme/widgets")


# GraphQL


def problem(kind: str | None, *path: str | int, message: str = "No.") -> dict[str, Any]:
    return {"type": kind, "path": list(path), "message": message} if kind else {"message": message}


def answer(*problems: dict[str, Any], data: object = None) -> dict[str, Any]:
    return {"data": data, "errors": list(problems)}


@pytest.mark.parametrize("kind", ["RATE_LIMITED", "RATE_LIMIT"])
@pytest.mark.parametrize(
    ("headers", "at"),
    [
        ({"x-ratelimit-reset": str(RESET)}, datetime.fromtimestamp(RESET, UTC)),
        ({"x-ratelimit-reset": str(PAST)}, NOW),
        ({}, NOW + LIMIT_PAUSE),
    ],
)
def test_a_rate_limit_in_graphql_says_when_to_come_back(
    github: GitHub,
    respx_mock: respx.MockRouter,
    kind: str,
    headers: dict[str, str],
    at: datetime,
) -> None:
    respx_mock.post(GRAPHQL).respond(headers=headers, json=answer(problem(kind)))
    with pytest.raises(TryLater) as failure:
        github.read.pull("acme/widgets", 34)
    assert failure.value.at == at


@pytest.mark.parametrize(
    ("read", "field"), [("pull", "pullRequest"), ("issue", "issueOrPullRequest")]
)
def test_missing_subjects_read_as_none(
    github: GitHub, respx_mock: respx.MockRouter, read: str, field: str
) -> None:
    missing = answer(problem("NOT_FOUND", "repository", field), data={"repository": {field: None}})
    respx_mock.post(GRAPHQL).respond(json=missing)
    assert getattr(github.read, read)("acme/widgets", 34) is None


def test_an_unreadable_repository_is_not_a_missing_subject(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    missing = answer(problem("NOT_FOUND", "repository"), data={"repository": None})
    respx_mock.post(GRAPHQL).respond(json=missing)
    with pytest.raises(Refused) as refusal:
        github.read.pull("acme/widgets", 34)
    assert refusal.value.status == 404


@pytest.mark.parametrize(
    ("kind", "status"),
    [("FORBIDDEN", 403), ("INSUFFICIENT_SCOPES", 403), ("UNPROCESSABLE", 422)],
)
def test_graphql_errors_are_refusals(
    github: GitHub, respx_mock: respx.MockRouter, kind: str, status: int
) -> None:
    respx_mock.post(GRAPHQL).respond(json=answer(problem(kind, "repository", "pullRequest")))
    with pytest.raises(Refused) as refusal:
        github.read.pull("acme/widgets", 34)
    assert refusal.value.status == status


def test_a_field_unknown_to_the_server_is_refused(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    unknown = {"message": "Field 'rules' doesn't exist", "extensions": {"code": "undefinedField"}}
    respx_mock.post(GRAPHQL).respond(json={"errors": [unknown]})
    with pytest.raises(Refused, match="too old"):
        github.read.pull("acme/widgets", 34)


@pytest.mark.parametrize(
    "said",
    [
        answer(problem(None, message="Something went wrong while executing your query.")),
        answer(problem("SERVICE_UNAVAILABLE")),
        answer(problem("NOT_FOUND", "repository", "pullRequest", "reviews", "nodes", 0, "author")),
        answer(problem("NOT_FOUND", "repository", "pullRequest"), problem(None)),
        {"data": None},
        {"data": {"repository": None}},
        {"data": {"repository": {"pullRequest": None}}},
        {"data": {"repository": {"pullRequest": {"number": 34}}}},
        {},
        [],
    ],
)
def test_partial_data_is_not_used(
    github: GitHub, respx_mock: respx.MockRouter, said: object
) -> None:
    respx_mock.post(GRAPHQL).respond(json=said)
    with pytest.raises((TryLater, Refused)):
        github.read.pull("acme/widgets", 34)


# Redirects and logs


class Broken(httpx.SyncByteStream):
    """A body whose connection breaks off."""

    def __iter__(self) -> Iterator[bytes]:
        yield b"line 1"
        raise httpx.RemoteProtocolError("gone")


def test_a_read_follows_the_redirect_of_a_renamed_repository(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(REPO).respond(301, headers={"Location": f"{API}/repositories/7"})
    moved = respx_mock.get(f"{API}/repositories/7", headers={"Authorization": "Bearer s3cret"})
    moved.respond(json={"default_branch": "main", "private": False, "clone_url": "there"})
    assert github.read.repository("acme/widgets").clone_url == "there"


def test_circular_redirects_end(github: GitHub, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(REPO).respond(302, headers={"Location": REPO})
    with pytest.raises(TryLater, match="redirected"):
        github.read.repository("acme/widgets")


def test_a_log_on_another_host_is_fetched_without_credentials(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    job = {"id": 9, "output": {"title": None, "summary": None, "text": None}}
    respx_mock.get(f"{REPO}/check-runs/9").respond(json={**job, "app": {"slug": "github-actions"}})
    respx_mock.get(f"{REPO}/actions/jobs/9/logs").respond(
        302, headers={"Location": "https://logs.example/9?sig=x"}
    )
    store = respx_mock.get("https://logs.example/9")
    respx_mock.get(f"{REPO}/actions/jobs/9").respond(json={"run_id": 1})
    store.respond(text="2026-11-21T12:00:00.1234567Z \x1b[31mexpected 2, got 3\x1b[0m\n")
    assert github.read.report("acme/widgets", 9).log == "expected 2, got 3"
    assert "authorization" not in store.calls[0].request.headers


def test_a_truncated_log_is_retried_later(github: GitHub, respx_mock: respx.MockRouter) -> None:
    job = {"id": 9, "output": {"title": None, "summary": None, "text": None}}
    respx_mock.get(f"{REPO}/check-runs/9").respond(json={**job, "app": {"slug": "github-actions"}})
    respx_mock.get(f"{REPO}/actions/jobs/9/logs").respond(stream=Broken())
    with pytest.raises(TryLater, match="broke off"):
        github.read.report("acme/widgets", 9)


@pytest.mark.parametrize("status", [403, 404, 410])
def test_without_a_log_the_output_of_the_check_is_shown(
    github: GitHub, respx_mock: respx.MockRouter, status: int
) -> None:
    job = {"id": 9, "output": {"title": "Failed", "summary": "2 of 9", "text": None}}
    respx_mock.get(f"{REPO}/check-runs/9").respond(json={**job, "app": {"slug": "github-actions"}})
    respx_mock.get(f"{REPO}/actions/jobs/9/logs").respond(status)
    assert github.read.report("acme/widgets", 9).log == "2 of 9"


def test_the_end_of_a_long_log_is_kept(github: GitHub, respx_mock: respx.MockRouter) -> None:
    respx_mock.get(f"{REPO}/check-runs/9").respond(
        json={"id": 9, "output": {}, "app": {"slug": "github-actions"}}
    )
    lines = b"".join(b"line %d\n" % number for number in range(200_000))
    respx_mock.get(f"{REPO}/actions/jobs/9/logs").respond(content=lines)
    respx_mock.get(f"{REPO}/actions/jobs/9").respond(json={"run_id": 1})
    assert github.read.report("acme/widgets", 9).log.endswith("line 199998\nline 199999")
