"""How the model proxy changes requests, and how it estimates usage that no response reports."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from bot.model_proxy import proxy as model_proxy
from bot.model_proxy import request_bodies
from bot.system import http_server
from tests.harness.model_proxies import SECONDS, Agent, Provider, begin, piece, whole
from tests.world.waiting import eventually

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


@pytest.fixture
def agent(scenario: Any, tmp_path: Path, provider: Provider) -> Iterator[Agent]:
    with closing(Agent(scenario, tmp_path, provider)) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "sent", "received"),
    [
        (CHAT, '{"stream":true}', '{"stream":true,"stream_options":{"include_usage":true}}'),
        (
            *(CHAT, '{"stream": true, "stream_options": {"include_usage": false, "x": 1.50}}'),
            '{"stream":true,"stream_options":{"include_usage":true,"x":1.50}}',
        ),
        (
            *("/v1/completions", '{"stream": false, "stream": true, "stream_options": null}'),
            '{"stream":true,"stream_options":{"include_usage":true}}',
        ),
        (CHAT, '{"stream": 1}', '{"stream":1,"stream_options":{"include_usage":true}}'),
        (CHAT, '{"stream": false, "n": 1e2}', '{"stream":false,"n":1e2}'),
        (CHAT, '{"str\\u0065am": null}', '{"stream":null}'),
        (RESPONSES, '{"stream": true, "background": false}', '{"stream":true,"background":false}'),
    ],
)
def test_a_stream_of_completions_reports_its_usage(
    agent: Agent, provider: Provider, path: str, sent: str, received: str
) -> None:
    # Of each field that is there twice, the model sees what the proxy saw.
    assert agent.asks(path, content=sent.encode()).status_code == 200
    _, headers, body = provider.asked.get(timeout=SECONDS)
    assert body.decode() == received
    assert headers["content-length"] == str(len(received))


def test_a_request_in_pieces_is_changed_too(agent: Agent, provider: Provider) -> None:
    pieces = iter([b'{"stream":', b"true}"])
    assert agent.asks(CHAT, content=pieces).status_code == 200
    _, _, body = provider.asked.get(timeout=SECONDS)
    assert json.loads(body)["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        (RESPONSES, '{"background": true}', "background responses are not supported"),
        (RESPONSES, '{"background": false, "background": 1}', "background responses"),
        (f"{RESPONSES}/compact", '{"backgr\\u006fund": "yes"}', "background responses"),
        (CHAT, "[]", "not a JSON object"),
        (CHAT, '{"stream": true', "not a JSON object"),
        (CHAT, '{"stream": true, "stream_options": 1}', "not a JSON object"),
        (CHAT, "[" * 100_000, "not a JSON object"),
    ],
)
def test_a_request_whose_usage_cannot_be_counted_is_refused(
    agent: Agent, provider: Provider, path: str, body: str, why: str
) -> None:
    refusal = agent.asks(path, content=body.encode())
    assert refusal.status_code == 400
    assert why in refusal.json()["error"]["message"]
    assert provider.asked.empty()


def test_large_requests_at_once_are_limited(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_bodies, "_MAX_HELD_PER_RUN", 1000)
    large = json.dumps({"model": "m" * 600}).encode()
    for _ in range(3):  # One after the other they are not too many.
        assert agent.asks(CHAT, content=large).status_code == 200
    with agent.connects() as first:
        first.putrequest("POST", CHAT)
        for name, value in (("x-api-key", agent.key), ("content-length", str(len(large)))):
            first.putheader(name, value)
        first.endheaders(large[:-1])
        eventually(lambda: agent.streams._memory._held, "it is held")
        assert agent.asks(CHAT, content=large).status_code == 503
    eventually(lambda: agent.asks(CHAT, content=large).status_code == 200, "it is released")


def delta(text: str) -> bytes:
    value = {"choices": [{"delta": {"content": text}}]}
    return b"data: %s\n\n" % json.dumps(value).encode()


def used(agent: Agent) -> tuple[int, int]:
    """Input and output that were counted."""
    totals = agent.models.store.usage.totals("run")
    return sum(one.input for one in totals), sum(one.output for one in totals)


def is_used(agent: Agent, expected: tuple[int, int]) -> bool:
    return used(agent) == expected


def test_an_agent_that_hangs_up_early_is_charged_an_estimate(
    agent: Agent, provider: Provider
) -> None:
    done = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        for _ in range(7):
            piece(request, delta("word "))
        assert done.wait(SECONDS)

    provider.answers = answers
    body = json.dumps({"model": "m", "stream": True, "messages": "x" * 4000}).encode()
    headers = {"x-api-key": agent.key}
    with agent.http.stream("POST", CHAT, content=body, headers=headers) as answer:
        received, response = b"", answer.iter_raw()
        while received.count(b"data:") < 7:
            received += next(response)
    eventually(partial(is_used, agent, (len(body) // 4, 7)), "the estimate")
    done.set()
    (row,) = agent.models.store.usage.totals("run")
    assert row.unpriced == len(body) // 4 + 7


def test_an_agent_that_hangs_up_before_the_response_is_charged_its_request(
    agent: Agent, provider: Provider
) -> None:
    done = Event()

    def thinks(_: BaseHTTPRequestHandler) -> None:
        assert done.wait(SECONDS)

    provider.answers = thinks
    with agent.connects() as asking:
        body = b'{"input": "%s"}' % (b"x" * 4000)
        asking.request("POST", RESPONSES, body, headers={"x-api-key": agent.key})
        provider.asked.get(timeout=SECONDS)
    eventually(partial(is_used, agent, (len(body) // 4, 0)), "the estimate")
    done.set()


def test_names_of_models_are_short_and_few(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent chooses them, and all usage of a run is stored and read by model."""
    monkeypatch.setattr(model_proxy, "_MAX_MODELS", 2)
    recorded = list[str]()
    monkeypatch.setattr(
        agent.models.store.usage, "record_response", lambda *values: recorded.append(values[2])
    )
    provider.answers = partial(whole, body=b'{"text": "y"}')
    statuses = [
        agent.asks(RESPONSES, json={"model": name}).status_code
        for name in ("x" * 4000, "real", "another", "real")
    ]
    assert statuses == [200, 200, 429, 200]
    eventually(lambda: len(recorded) == 3, "the usage")
    assert sorted(recorded) == ["real", "real", "x" * 200]


@pytest.mark.parametrize("by", ["the agent", "the bot"])
def test_a_request_that_is_broken_off_is_not_charged(agent: Agent, by: str) -> None:
    with agent.connects() as asking:
        asking.putrequest("POST", "/v1/messages")
        for name, value in (("x-api-key", agent.key), ("content-length", "4000")):
            asking.putheader(name, value)
        asking.endheaders(b"x" * 2000)
        eventually(lambda: agent.streams._active, "it has begun")
        if by == "the bot":
            agent.proxy.stop()
    eventually(lambda: not agent.streams._active, "it has ended")
    agent.proxy.stop()
    assert used(agent) == (0, 0)


def test_a_request_is_released_where_its_end_is_cancelled(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends_late(*_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    agent.proxy.stop()
    monkeypatch.setattr(http_server, "_STOP_SECONDS", 0)
    proxy = agent.proxy = agent.another_proxy()
    monkeypatch.setattr(proxy, "_ask", ends_late)
    proxy.start()
    with agent.connects() as asking:
        asking.request("POST", "/v1/messages", b"x", headers={"x-api-key": agent.key})
        eventually(lambda: proxy._active, "it has begun")
        proxy.stop()
    assert not proxy._active


def test_a_response_without_usage_is_charged_an_estimate(agent: Agent, provider: Provider) -> None:
    provider.answers = partial(whole, body=b'{"model": "m", "text": "%s"}' % (b"y" * 400))
    path = "/v1beta/models/pro-1:generateContent"
    assert agent.asks(path, content=b"x" * 4000).status_code == 200
    eventually(partial(is_used, agent, (1000, 106)), "the estimate")


def test_what_a_model_reported_before_the_end_counts_at_least(
    agent: Agent, provider: Provider
) -> None:
    start = {"message": {"model": "m", "usage": {"input_tokens": 2, "output_tokens": 9}}}

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: %s\n\n" % json.dumps(start).encode())
        for _ in range(3):
            piece(request, b'data: {"type": "content_block_delta", "delta": {"text": "a"}}\n\n')
        request.close_connection = True

    provider.answers = answers
    with pytest.raises(httpx.RemoteProtocolError):
        agent.asks("/v1/messages", content=b"x" * 4000)
    eventually(partial(is_used, agent, (2, 9)), "what it reported")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/messages", 429),
        ("/v1/messages/count_tokens", 200),
        ("/v1beta/models/pro-1:countTokens", 200),
    ],
)
def test_what_costs_nothing_is_not_charged(
    agent: Agent, provider: Provider, path: str, status: int
) -> None:
    provider.answers = partial(whole, body=b'{"n": 1}', status=status)
    agent.asks(path, content=b"x" * 4000)
    agent.proxy.stop()
    assert used(agent) == (0, 0)


#: The headers that programs send, as recorded with their newest versions.
HEADERS = {
    "claude": {
        "accept": "application/json",
        "anthropic-beta": "interleaved-thinking-2025-05-14",
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
        "user-agent": "claude-cli/2.1.329 (external, sdk-cli)",
        "x-app": "cli",
        "x-claude-code-session-id": "a5f0139c",
    },
    "codex": {
        "accept": "text/event-stream",
        "originator": "codex_exec",
        "session-id": "01a205a5",
        "thread-id": "01a205a5",
        "user-agent": "codex_exec/0.169.0",
        "x-client-request-id": "01a205a5",
        "x-codex-beta-features": "remote_compaction_v2",
    },
    "gemini": {
        "accept": "*/*",
        "user-agent": "GeminiCLI-tui/0.61.0",
        "x-goog-api-client": "google-genai-sdk/1.30.0 gl-node/v20.20.2",
    },
    "opencode": {
        "user-agent": "opencode/1.18.33",
        "x-session-affinity": "ses_dfa5",
        "x-session-id": "ses_dfa5",
    },
}
STOPPED = {
    "x-goog-user-project": "another",
    "openai-organization": "another",
    "openai-project": "another",
    "x-http-method-override": "DELETE",
    "x-http-method": "DELETE",
    "x-original-url": "/v1/files",
    "x-forwarded-for": "10.0.0.1",
    "forwarded": "for=10.0.0.1",
    "anthropic-workspace-id": "another",
    "x-goog-request-params": "another",
    "x-other": "another",
    "x-codex-turn-metadata": "installation",
    "cookie": "who=1",
}


@pytest.mark.parametrize("program", HEADERS)
def test_only_headers_that_programs_need_are_forwarded(
    agent: Agent, provider: Provider, program: str
) -> None:
    sent = {"x-api-key": agent.key, **HEADERS[program], **STOPPED}
    assert agent.asks(headers=sent, content=b"{}").status_code == 200
    _, received, _ = provider.asked.get(timeout=SECONDS)
    assert {name: received[name] for name in HEADERS[program]} == HEADERS[program]
    assert [name for name in STOPPED if name in received] == []


def test_only_known_parameters_are_forwarded(agent: Agent, provider: Provider) -> None:
    stopped = "key=x&$userProject=another&access_token=y&$httpMethod=DELETE&quotaUser=z"
    path = "/v1beta/models/pro-1:streamGenerateContent"
    assert agent.asks(f"{path}?{stopped}&alt=sse", content=b"{}").status_code == 200
    asked, _, _ = provider.asked.get(timeout=SECONDS)
    assert asked == f"/gate{path}?alt=sse"


def test_a_compressed_request_is_refused(agent: Agent, provider: Provider) -> None:
    headers = {"x-api-key": agent.key, "content-encoding": "gzip"}
    assert agent.asks(headers=headers, content=b"packed").status_code == 415
    assert provider.asked.empty()
