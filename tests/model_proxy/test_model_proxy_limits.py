"""The model proxy over real connections: limits, timeouts and errors."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import httpx
import pytest

from bot.model_proxy import forwarding, proxy
from bot.model_proxy.proxy import ModelProxy, UpstreamError
from bot.system import http_server
from config.settings import AgentTypeSettings, Settings
from tests.harness.model_proxies import ASK, SECONDS, Agent, Provider, whole
from tests.world.waiting import eventually


def test_a_request_is_aborted_when_the_agent_disconnects(agent: Agent, provider: Provider) -> None:
    noticed = Event()

    def thinks(request: BaseHTTPRequestHandler) -> None:
        assert request.rfile.read(1) == b""
        noticed.set()

    provider.answers = thinks
    with agent.connects() as asking:
        asking.request("POST", ASK, b"{}", headers={"x-api-key": agent.key})
        provider.asked.get(timeout=SECONDS)
    assert noticed.wait(SECONDS)


def test_a_silent_model_times_out(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "_TIMEOUT", httpx.Timeout(0.05))
    provider.answers = lambda request: None
    answer = agent.asks(content=b"{}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (504, "true")
    assert "never responded" in answer.json()["error"]["message"]


def test_an_invalid_status_is_not_forwarded(agent: Agent, provider: Provider) -> None:
    provider.answers = lambda request: whole(request, b"{}", 799)
    answer = agent.asks(content=b"{}")
    assert answer.status_code == 502
    assert "answered with the invalid status 799" in answer.json()["error"]["message"]


def test_a_websocket_is_refused_without_a_warning(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"connection": "Upgrade", "upgrade": "websocket", "x-api-key": agent.key}
    with agent.connects() as asking:
        asking.request("GET", "/v1/responses", headers=headers)
        answer = asking.getresponse()
        assert (answer.status, b"use POST" in answer.read()) == (426, True)
    assert "upgrade" not in caplog.text  # Threads of earlier tests may log something else.


def test_concurrent_requests_are_limited(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Event()

    def holds(request: BaseHTTPRequestHandler) -> None:
        assert held.wait(SECONDS)
        whole(request, b"{}")

    provider.answers = holds
    with agent.connects() as first:
        first.request("POST", ASK, b"{}", headers={"x-api-key": agent.key})
        provider.asked.get(timeout=SECONDS)
        for limit, key, status in (("_MAX_PER_RUN", agent.key, 429), ("", "a stranger's", 503)):
            with monkeypatch.context() as patch:
                if limit:
                    patch.setattr(proxy, limit, 1)
                else:
                    patch.setattr(agent.streams, "_capacity", 1)
                answer = agent.asks(content=b"{}", headers={"x-api-key": key})
            assert (answer.status_code, answer.headers["retry-after"]) == (status, "1")
            assert answer.headers["x-should-retry"] == "true"
            assert "too many concurrent requests" in answer.json()["error"]["message"]
        held.set()
        assert first.getresponse().status == 200
    eventually(lambda: not agent.streams._active, "the end of all")


def test_the_size_of_requests_is_limited(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_MAX_BYTES", 1 << 20)
    answer = agent.asks(content=b" " * ((1 << 20) + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "the request body has more than 1 MB"


def test_a_stalled_request_times_out(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_CHUNK_SECONDS", 0.05)
    with agent.connects() as asking:
        asking.putrequest("POST", ASK)
        for name, value in (("x-api-key", agent.key), ("content-length", "9")):
            asking.putheader(name, value)
        asking.endheaders(b"{")
        answer = asking.getresponse()
        assert (answer.status, b"the request body stalled" in answer.read()) == (408, True)
        assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("response", [b"", b"POST /v1/mess"])
def test_a_connection_without_a_request_is_closed(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, response: bytes
) -> None:
    monkeypatch.setattr(http_server, "_HEADERS_SECONDS", 0.05)
    with agent.connects() as slow:
        slow.connect()
        slow.sock.sendall(response)
        assert slow.sock.recv(1) == b""


def test_an_unreachable_endpoint_is_a_retryable_error(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = AgentTypeSettings(program="shell", endpoint="http://me:word@127.0.0.1:1", key="KEY")
    monkeypatch.setattr(agent.models, "settings", Settings(agent_types={"shell": typed}))
    answer = agent.asks(content=b"{}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "true")
    response = answer.json()["error"]["message"]
    assert response == "127.0.0.1:1 cannot be reached: ConnectError"
    assert agent.proxy.last_error == UpstreamError("127.0.0.1:1", 0)


def test_a_proxy_whose_port_is_taken_uses_another_one(agent: Agent) -> None:
    other = agent.another_proxy()
    other.start()
    assert other.url not in ("", agent.proxy.url)
    (why,) = agent.lost
    assert f"port {agent.proxy.url.rpartition(':')[2]}: another program" in why
    other.stop()


def test_a_lost_port_is_reported_before_another_one_is_kept(agent: Agent, tmp_path: Path) -> None:
    kept = tmp_path / "model-port"
    kept.write_text(agent.proxy.url.rpartition(":")[2])
    before: list[str] = []
    other = ModelProxy(
        agent.models.of_token,
        agent.models.record_usage,
        kept,
        on_lost_port=lambda _: before.append(kept.read_text()),
    )
    other.start()
    other.stop()
    assert before == [agent.proxy.url.rpartition(":")[2]]
    assert kept.read_text() not in before


@pytest.mark.parametrize("place", ["no port", "65536", "-1", "9" * 5000])
def test_a_proxy_with_a_corrupt_port_file_uses_any_port(
    agent: Agent, tmp_path: Path, place: str
) -> None:
    kept = tmp_path / "model-port"
    kept.write_text(place)
    other = ModelProxy(agent.models.of_token, agent.models.record_usage, kept)
    other.start()
    assert kept.read_text() == other.url.rpartition(":")[2]
    other.stop()
