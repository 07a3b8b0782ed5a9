"""Reading usage from responses of every model API."""

import gzip
import json
import sys
from collections.abc import Mapping, Sequence

import pytest

from bot.model_proxy.usage_meter import MOST_BYTES, UsageMeter
from lifecycle.model.facts import Usage

STREAM = {"content-type": "text/event-stream; charset=utf-8"}
WHOLE = {"content-type": "application/json"}
USED = Usage(input=70, output=20, cache_read=30, reasoning=5)
WRITTEN = Usage(input=70, output=25, cache_read=30, cache_write=4)
ANTHROPIC = {
    "input_tokens": 70,
    "output_tokens": 25,
    "cache_read_input_tokens": 30,
    "cache_creation_input_tokens": 4,
    "cache_creation": {"ephemeral_5m_input_tokens": 4},
}
CHAT = {
    "prompt_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens": 25,
    "completion_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 125,
}
RESPONSES = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 30},
    "output_tokens": 25,
    "output_tokens_details": {"reasoning_tokens": 5},
}
GOOGLE = {
    "promptTokenCount": 90,
    "toolUsePromptTokenCount": 10,
    "cachedContentTokenCount": 30,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
}


def streamed(*pieces: object) -> bytes:
    return b"".join(b"event: one\r\ndata: %s\r\n\r\n" % json.dumps(one).encode() for one in pieces)


def read(headers: Mapping[str, str], *pieces: bytes) -> tuple[str, Usage] | None:
    meter = UsageMeter(headers)
    for piece in pieces:
        meter.feed(piece)
    return meter.total()


APIS: Sequence[tuple[object, tuple[object, ...], Usage]] = (
    (
        {"model": "m", "content": [{"text": "hi"}], "usage": ANTHROPIC},
        (
            {"message": {"model": "m", "usage": {**ANTHROPIC, "output_tokens": 1}}},
            {"delta": {"text": '"usage": {"output_tokens": 999}'}},
            {"delta": {}, "usage": {"output_tokens": 25, "input_tokens": None}},
        ),
        WRITTEN,
    ),
    (
        {"model": "m", "choices": [{"message": {"content": "hi"}}], "usage": CHAT},
        ({"model": "m", "usage": None}, {"model": "m", "choices": [], "usage": CHAT}),
        USED,
    ),
    (
        {"model": "m", "output": [], "usage": RESPONSES},
        (
            {"response": {"model": "m", "usage": None}},
            {"type": "response.completed", "response": {"model": "m", "usage": RESPONSES}},
        ),
        USED,
    ),
    (
        {"modelVersion": "m", "usageMetadata": GOOGLE},
        (
            {"modelVersion": "m", "usageMetadata": {"promptTokenCount": 90}},
            {"modelVersion": "m", "usageMetadata": GOOGLE},
        ),
        USED,
    ),
)


@pytest.mark.parametrize(("whole", "pieces", "used"), APIS)
def test_usage_of_every_api_is_read_streamed_and_whole(
    whole: object, pieces: tuple[object, ...], used: Usage
) -> None:
    body = json.dumps(whole).encode()
    assert read(WHOLE, body) == ("m", used)
    stream = streamed(*pieces)
    assert read(STREAM, stream) == ("m", used)
    assert read(STREAM, *(bytes([byte]) for byte in stream)) == ("m", used)
    packed = gzip.compress(stream)
    assert read({**STREAM, "content-encoding": "gzip"}, packed[:9], packed[9:]) == ("m", used)


def test_a_whole_response_may_have_many_lines() -> None:
    body = json.dumps({"model": "m", "usage": ANTHROPIC}, indent=2).encode()
    usage = read({"content-type": "application/json"}, body)
    assert usage is not None
    assert usage == read({}, json.dumps({"model": "m", "usage": ANTHROPIC}).encode())


def test_a_list_of_pieces_is_one_response() -> None:
    pieces = [{"usageMetadata": {"promptTokenCount": 90}}, {"usageMetadata": GOOGLE}]
    assert read(WHOLE, json.dumps(pieces).encode()) == ("", USED)


def test_usage_before_an_abort_counts() -> None:
    begun = {"message": {"model": "m", "usage": {"input_tokens": 70, "output_tokens": 1}}}
    assert read(STREAM, streamed(begun) + b"data: {") == ("m", Usage(input=70, output=1))


def test_an_incomplete_last_line_counts() -> None:
    assert read(STREAM, streamed({"usage": ANTHROPIC}).rstrip()) == ("", WRITTEN)


def test_deeply_nested_responses_are_ignored() -> None:
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        assert read(WHOLE, b'{"message":' * depth + b"{}" + b"}" * depth) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"input_tokens": 70}',
        b'{"usage": {"input_tokens": -1, "output_tokens": true, "prompt_tokens": 1e99}}',
        b'{"usage": {"input_tokens": 100000000001}}',
        b'{"usage": {"other": 3}}',
        b'{"error": {"message": "no"}, "message": "no"}',
        b"[" * 100_000,
        b"\xff",
        b"",
    ],
)
def test_a_response_without_usage_counts_nothing(body: bytes) -> None:
    assert read(WHOLE, body) is None
    assert read(STREAM, b"data: " + body + b"\n\n") is None


def test_the_buffer_is_limited() -> None:
    whole = json.dumps({"text": "x" * MOST_BYTES, "usage": ANTHROPIC}).encode()
    for headers, body in (
        (WHOLE, whole),
        (STREAM, b"data: " + whole),
        ({**WHOLE, "content-encoding": "gzip"}, gzip.compress(whole)),
        ({**WHOLE, "content-encoding": "br"}, b"what is it"),
    ):
        meter = UsageMeter(headers)
        for start in range(0, len(body), 1 << 20):
            meter.feed(body[start : start + (1 << 20)])
        assert meter.lost
        assert meter.total() is None
        assert not meter._held
    meter = UsageMeter(STREAM)
    meter.feed(b"data: " + b"x" * MOST_BYTES + b"\n" + streamed({"usage": ANTHROPIC}))
    assert meter.total() == ("", WRITTEN)


def test_a_long_model_name_is_shortened() -> None:
    usage = read(WHOLE, json.dumps({"model": "m" * 1000, "usage": ANTHROPIC}).encode())
    assert usage
    assert len(usage[0]) == 200
