"""The model proxy over real connections: tokens, streaming and usage."""

import gzip
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from bot.decide.reconciler import Reconciler
from bot.model_proxy.proxy import UpstreamError
from bot.store import StoreFailure
from bot.system.crash_points import log_crash_point
from lifecycle.model.policy import Policy
from tests.harness.model_proxies import ASK, SECONDS, Agent, Provider, begin, piece, whole
from tests.world.waiting import eventually


def test_the_key_replaces_the_token_and_nothing_else_changes(
    agent: Agent, provider: Provider
) -> None:
    google = "/v1beta/models/pro-1.5:streamGenerateContent"
    for headers, query, shown in (
        ({"x-api-key": agent.key, "user-agent": "é".encode()}, "beta=true", "x-api-key"),
        ({"authorization": f"Bearer {agent.key}"}, "", "authorization"),
        ({"x-goog-api-key": agent.key}, "alt=sse", "x-goog-api-key"),
        ({}, f"alt=sse&key={agent.key}", "x-goog-api-key"),
    ):
        path = google if "goog" in shown else ASK
        answer = agent.asks(f"{path}?{query}", headers=headers, content=b'{"n": 1}' * 100_000)
        assert (answer.status_code, answer.content) == (200, b"{}")
        asked, response, body = provider.asked.get(timeout=SECONDS)
        assert asked.rstrip("?") == f"/gate{path}?{query.split('&key')[0]}".rstrip("?")
        assert response[shown] == ("Bearer the key" if shown == "authorization" else "the key")
        assert body == b'{"n": 1}' * 100_000
        assert agent.key not in response.as_string()
        assert response["host"] == provider.url.removeprefix("http://")
        if "user-agent" in headers:
            assert response["user-agent"].encode("latin-1").decode() == "é"


def test_usage_is_recorded_also_of_aborted_responses(
    scenario: Any, tmp_path: Path, provider: Provider
) -> None:
    begun = b'data: {"message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}'

    def breaks_off(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, begun + b"\n\n")
        request.close_connection = True

    with closing(Agent(scenario, tmp_path, provider)) as agent:
        packed = gzip.compress(b'{"model": "m", "usage": {"input_tokens": 3, "output_tokens": 2}}')
        provider.answers = lambda request: whole(request, packed, content_encoding="gzip")
        assert agent.asks(content=b"{}").json()["model"] == "m"
        assert provider.asked.get(timeout=SECONDS)[1]["accept-encoding"] == "gzip"
        eventually(lambda: agent.tokens() == 5, "what the answer used")
        provider.answers = breaks_off
        with pytest.raises(httpx.RemoteProtocolError), agent.listens() as answer:
            answer.read()
        eventually(lambda: agent.tokens() == 15, "what it used until then")


def counts(agent: Agent, tokens: int) -> bool:
    return agent.tokens() == tokens


def test_recorded_usage_exhausts_the_budget(
    scenario: Any, tmp_path: Path, provider: Provider
) -> None:
    used = b'{"model": "m", "usage": {"input_tokens": 90, "output_tokens": 10}}'
    provider.answers = partial(whole, body=used)
    policy = Policy(session_tokens=150)
    reconciler = Reconciler(
        scenario.store, lambda _: policy, scenario.clock, log_crash_point, lambda: None
    )
    with closing(Agent(scenario, tmp_path, provider)) as agent:
        for counted in (100, 200):
            assert agent.asks(content=b"{}").status_code == 200
            eventually(partial(counts, agent, counted), "what it used")
            reconciler.reconcile_due()
        refusal = agent.asks(content=b"{}")
    response = refusal.json()["error"]["message"]
    assert (refusal.status_code, provider.asked.qsize()) == (402, 2)
    assert response.startswith("the budget of widgets-12 is exhausted: ")


def test_only_readable_encodings_are_requested(agent: Agent, provider: Provider) -> None:
    agent.asks(content=b"{}", headers={"x-api-key": agent.key, "accept-encoding": "br, zstd"})
    assert provider.asked.get(timeout=SECONDS)[1]["accept-encoding"] == "identity"


def test_a_response_is_forwarded_even_if_its_usage_cannot_be_recorded(
    agent: Agent,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object) -> None:
        raise StoreFailure("the disk is full")

    monkeypatch.setattr(agent.models.store.usage, "record_response", full)
    provider.answers = lambda request: whole(request, b'{"usage": {"input_tokens": 3}}')
    assert agent.asks(content=b"{}").status_code == 200
    eventually(lambda: "not recorded: the disk is full" in caplog.text, "the log")
    provider.answers = lambda request: whole(request, b"what is it", content_encoding="br")
    with agent.listens() as answer:
        assert b"".join(answer.iter_raw()) == b"what is it"
    eventually(lambda: "could not be read to its end" in caplog.text, "the log")


def test_repeated_refusals_of_a_model_are_counted(agent: Agent, provider: Provider) -> None:
    place = provider.url.removeprefix("http://")
    for status, trouble in (
        (401, UpstreamError(place, 401)),
        (401, UpstreamError(place, 401, times=2)),
        (429, UpstreamError(place, 429)),
        (401, UpstreamError(place, 401)),
        (200, None),
        (401, UpstreamError(place, 401)),
    ):
        provider.answers = partial(whole, body=b"{}", status=status)
        agent.asks(content=b"{}")
        assert agent.proxy.last_error == trouble


def test_an_unknown_token_is_refused_without_a_request(agent: Agent, provider: Provider) -> None:
    for headers in (
        {},
        {"x-api-key": agent.key[:-1]},
        {"authorization": f"Basic {agent.key}"},
        {"x-api-key": f"widgets-12_r{'9' * 5000}.pass"},
    ):
        answer = agent.asks(headers=headers, content=b"{}")
        assert answer.status_code == 401
        assert answer.json()["error"]["message"] == "invalid run token"
        assert answer.headers["x-should-retry"] == "false"
    assert provider.asked.empty()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/files"),
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/models/mine"),
        ("GET", "/v1/models/../files/file-1/content"),
        ("POST", "/v1/models/x:generateContent/../../files"),
        ("POST", "/v1/messages/../files"),
        ("POST", "//elsewhere.example/v1/messages"),
        ("POST", "/v1/messages%3Fx"),
        ("GET", "/"),
    ],
)
def test_only_paths_of_model_apis_are_allowed(
    agent: Agent, provider: Provider, method: str, path: str
) -> None:
    # Unchanged: httpx would take `..` out of it before it is sent.
    with agent.connects() as asking:
        asking.request(method, path, headers={"x-api-key": agent.key})
        assert asking.getresponse().status == 403
    assert provider.asked.empty()


def test_models_are_listed(agent: Agent, provider: Provider) -> None:
    assert agent.asks("/v1/models?limit=2", "GET", content=b"{}").status_code == 200
    assert agent.proxy.last_error is None
    path, response, body = provider.asked.get(timeout=SECONDS)
    assert path == "/gate/v1/models?limit=2"
    assert "transfer-encoding" not in response
    assert "content-length" not in response
    assert not body


def test_a_response_is_streamed(agent: Agent, provider: Provider) -> None:
    disconnected = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        assert disconnected.wait(SECONDS)
        piece(request, b"data: two\n\n")
        piece(request, b"")

    provider.answers = answers
    with agent.listens() as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        response = answer.iter_raw()
        assert next(response) == b"data: one\n\n"
        disconnected.set()
        assert b"".join(response) == b"data: two\n\n"


def test_a_rate_limit_response_is_forwarded_unchanged(agent: Agent, provider: Provider) -> None:
    body = gzip.compress(b'{"type": "error"}')
    provider.answers = lambda request: whole(
        request, body, 429, retry_after="7", content_encoding="gzip", set_cookie="who=1"
    )
    answer = agent.asks(content=b"{}")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert agent.proxy.last_error == UpstreamError(provider.url.removeprefix("http://"), 429)
    assert answer.json() == {"type": "error"}
    agent.asks(content=b"{}")
    provider.asked.get(timeout=SECONDS)
    assert "cookie" not in provider.asked.get(timeout=SECONDS)[1]
    assert "set-cookie" not in answer.headers


def test_an_aborted_response_stays_incomplete(agent: Agent, provider: Provider) -> None:
    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        request.close_connection = True

    provider.answers = answers
    with pytest.raises(httpx.RemoteProtocolError), agent.listens() as answer:
        answer.read()


def test_a_response_is_aborted_when_the_agent_disconnects(agent: Agent, provider: Provider) -> None:
    noticed = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        assert request.rfile.read(1) == b""  # The connection is closed before the response ends.
        noticed.set()

    provider.answers = answers
    with agent.listens() as answer:
        assert next(answer.iter_raw()) == b"data: one\n\n"
    assert noticed.wait(SECONDS)


def test_an_internal_error_is_logged(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(agent.models, "keys", None)
    assert agent.asks(content=b"{}").status_code == 500
    assert "NoneType" in caplog.text


def test_the_next_bot_uses_the_same_port_and_accepts_the_token(
    agent: Agent, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    held = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        assert held.wait(SECONDS)

    provider.answers = answers
    with agent.listens() as answer:
        response = answer.iter_raw()
        assert next(response)
        agent.proxy.stop()  # It does not wait for the end of the response.
        with pytest.raises(httpx.RemoteProtocolError):
            next(response)
    assert "timeout graceful shutdown" not in caplog.text
    held.set()
    provider.answers = lambda request: whole(request, b"{}")
    agent.proxy = agent.another_proxy()
    agent.proxy.start()
    assert agent.asks(content=b"{}").status_code == 200
