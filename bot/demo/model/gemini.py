"""The API of Gemini, as used by Gemini CLI."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.demo.model.script import Turn
from bot.demo.model.talk import USED, Api, Asked, Json, Reply, halves, name

_INPUT = USED.input + USED.cache_read
_USAGE = {
    "promptTokenCount": _INPUT,
    "cachedContentTokenCount": USED.cache_read,
    "candidatesTokenCount": USED.output,
    "thoughtsTokenCount": USED.reasoning,
    "totalTokenCount": _INPUT + USED.output + USED.reasoning,
}
_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_MODEL = re.compile(r"/models/([^:]+):")
_VALUES: Mapping[str, object] = {
    "number": 0.5,
    "integer": 1,
    "boolean": False,
    "array": [],
    "object": {},
}


def _read(path: str, body: Json) -> Asked:
    model = _MODEL.search(path)
    tools = frozenset(
        function["name"]
        for tool in body.get("tools", ())
        for function in tool.get("functionDeclarations", ())
    )
    wanted = body.get("generationConfig", {}).get("responseJsonSchema")
    aside = json.dumps(_filled(wanted)) if wanted else "" if tools else "Scripted summary"
    return Asked(
        model=model[1] if model else "",
        turns=tuple(_turns(body)),
        tools=tools,
        stream="streamGenerateContent" in path,
        aside=aside,
    )


def _turns(body: Json) -> Iterator[Turn]:
    for content in (body.get("systemInstruction", {}), *body["contents"]):
        who = "assistant" if content.get("role") == "model" else content.get("role", "system")
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                yield Turn("tool")
            elif "text" in part:
                yield Turn(who, part["text"])


def _filled(schema: Mapping[str, Any]) -> Json:
    """Return a response that fits the requested JSON schema."""
    fields = schema.get("properties", {}).items()
    return {
        field: kind["enum"][0] if kind.get("enum") else _VALUES.get(kind["type"], "scripted")
        for field, kind in fields
    }


def _whole(asked: Asked, reply: Reply) -> Json:
    thought = [{"text": reply.think, "thought": True}] if reply.think else []
    texts = [{"text": half} for half in halves(reply.say)]
    calls = [
        {"functionCall": {"id": name("fc"), "name": call.name, "args": call.arguments}}
        for call in reply.calls
    ]
    return _answer(asked, [*thought, *texts, *calls], finishReason="STOP")


def _pieces(asked: Asked, reply: Reply) -> list[str]:
    whole = _whole(asked, reply)
    *parts, last = whole["candidates"][0]["content"]["parts"]
    answers = [_answer(asked, [part]) for part in parts]
    answers.append(_answer(asked, [last], finishReason="STOP"))
    return [f"data: {json.dumps(answer)}\r\n\r\n" for answer in answers]


def _answer(asked: Asked, parts: list[Json], **end: str) -> Json:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **end}
    used = {"usageMetadata": _USAGE} if end else {}
    named = {"modelVersion": asked.model, "responseId": name("r")}
    return {"candidates": [candidate], **used, **named}


def _refusal(status: int) -> Json:
    error = {"code": status, "message": f"scripted {status}"}
    return {"error": {**error, "status": _ERRORS.get(status, "UNKNOWN")}}


GEMINI = Api(read=_read, whole=_whole, pieces=_pieces, refusal=_refusal)
