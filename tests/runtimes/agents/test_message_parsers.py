"""Tests the parsers with single lines of transcripts, some of kinds that no recording contains."""

import json
from collections.abc import Callable, Iterable, Mapping

import pytest

from runtimes.agents.claude.files import parse_line
from runtimes.agents.codex.files import CodexMessageParser
from runtimes.agents.gemini.files import GeminiMessageParser
from runtimes.agents.shared.messages import Message, MessageKind

Expected = list[tuple[MessageKind, str]]
_AT = "2026-11-21T01:00:00Z"


def messages_of(parse: Callable[[str], Iterable[Message]], *lines: object) -> Expected:
    found = [each for line in lines for each in parse(json.dumps(line))]
    return [(each.kind, each.text) for each in found]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"type": "assistant", "message": {"content": [{"type": "image"}]}}, []),
        (
            {"type": "assistant", "message": {"content": [{"type": "text", "text": "Fine."}]}},
            [(MessageKind.ANSWER, "Fine.")],
        ),
        (
            {
                "type": "user",
                "promptSource": "system",
                "message": {
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": "made"},
                        {"type": "image"},
                        {"type": "text", "text": "It is over."},
                    ]
                },
            },
            [(MessageKind.RESULT, "made"), (MessageKind.NOTE, "It is over.")],
        ),
    ],
)
def test_a_claude_record_yields_its_messages(
    record: Mapping[str, object], expected: Expected
) -> None:
    assert messages_of(parse_line, {"timestamp": _AT, **record}) == expected


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("token_usage_record", {}, []),
        ("event_msg", 7, []),
        ("response_item", 7, []),
        ("odd", {"type": "message", "role": "assistant", "content": [{"text": "x"}]}, []),
        ("response_item", {"type": "odd", "output": "x"}, []),
        ("response_item", {"type": "reasoning", "summary": []}, []),
        ("response_item", {"type": "a_call", "input": "patch"}, [(MessageKind.CALL, "patch")]),
        ("response_item", {"type": "a_call", "action": {"a": 1}}, [(MessageKind.CALL, '{"a": 1}')]),
        ("response_item", {"type": "a_call"}, [(MessageKind.CALL, "{}")]),
    ],
)
def test_a_codex_record_yields_its_messages(kind: str, payload: object, expected: Expected) -> None:
    assert (
        messages_of(CodexMessageParser(), {"timestamp": _AT, "type": kind, "payload": payload})
        == expected
    )


def test_a_codex_message_follows_malformed_lines() -> None:
    payload = {"type": "message", "role": "assistant", "content": [{"text": "Fine."}]}
    lines = (
        "no record",
        {"timestamp": _AT, "type": "turn_context", "payload": 7},
        {"timestamp": _AT, "type": "response_item", "payload": payload},
    )
    assert messages_of(CodexMessageParser(), *lines) == [(MessageKind.ANSWER, "Fine.")]


def _call(**more: object) -> Mapping[str, object]:
    return {"toolCalls": [{"id": "c1", "name": "run", "args": {}, **more}]}


def _back(response: object) -> Mapping[str, object]:
    return {"functionResponse": {"response": response}}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"content": "Fine."}, [(MessageKind.ANSWER, "Fine.")]),
        ({"content": [{"text": "Fine."}]}, []),
        (_call(), [(MessageKind.CALL, "{}")]),
        (
            _call(result=[_back({"output": "a"})]),
            [(MessageKind.CALL, "{}"), (MessageKind.RESULT, "a")],
        ),
        (
            _call(result=[_back({"e": 1})]),
            [(MessageKind.CALL, "{}"), (MessageKind.RESULT, '{"e": 1}')],
        ),
    ],
)
def test_a_gemini_record_yields_its_messages(
    record: Mapping[str, object], expected: Expected
) -> None:
    line = {"id": "m1", "timestamp": _AT, "type": "gemini", **record}
    assert messages_of(GeminiMessageParser(), line) == expected
