"""The Messages API of Anthropic, as used by Claude Code."""

import json
from collections.abc import Iterator

from bot.demo.model.script import Turn
from bot.demo.model.talk import USED, Api, Asked, Json, Reply, halves, name, texts

_USAGE = {
    "input_tokens": USED.input,
    "cache_creation_input_tokens": USED.cache_write,
    "cache_read_input_tokens": USED.cache_read,
    "output_tokens": USED.output + USED.reasoning,
}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _read(path: str, body: Json) -> Asked:
    tools = frozenset(tool["name"] for tool in body.get("tools", ()))
    return Asked(
        model=body["model"],
        turns=(Turn("system", texts(body.get("system"))), *_turns(body)),
        tools=tools,
        stream=body.get("stream", False),
        aside="" if tools else json.dumps({"isNewTopic": True, "title": "Scripted title"}),
    )


def _turns(body: Json) -> Iterator[Turn]:
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            yield Turn(message["role"], content)
            continue
        for block in content:
            if block["type"] == "text":
                yield Turn(message["role"], block["text"])
            elif block["type"] == "tool_result":
                yield Turn("tool")


def _whole(asked: Asked, reply: Reply) -> Json:
    thought = {"type": "thinking", "thinking": reply.think, "signature": "c2lnbmVk"}
    content: list[Json] = [thought] if reply.think else []
    content.append({"type": "text", "text": reply.say})
    content += [
        {"type": "tool_use", "id": name("toolu"), "name": call.name, "input": call.arguments}
        for call in reply.calls
    ]
    return {
        "id": name("msg"),
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": _USAGE,
    }


def _pieces(asked: Asked, reply: Reply) -> list[str]:
    whole = _whole(asked, reply)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**_USAGE, "output_tokens": 1}}
    pieces = [_event("message_start", message=begun)]
    for index, block in enumerate(whole["content"]):
        empty, deltas = _grown(block)
        pieces.append(_event("content_block_start", index=index, content_block=empty))
        pieces += [_event("content_block_delta", index=index, delta=delta) for delta in deltas]
        pieces.append(_event("content_block_stop", index=index))
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    used = {"output_tokens": _USAGE["output_tokens"]}
    return [*pieces, _event("message_delta", delta=end, usage=used), _event("message_stop")]


def _grown(block: Json) -> tuple[Json, list[Json]]:
    """Return the start of a content block, and the deltas that complete it."""
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": half} for half in halves(block["text"])]
            return {**block, "text": ""}, deltas
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [thought, signed]
        case _:
            given = json.dumps(block["input"])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": given}]


def _event(kind: str, **more: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"


def _refusal(status: int) -> Json:
    error = {"type": _ERRORS.get(status, "api_error"), "message": f"scripted {status}"}
    return {"type": "error", "error": error, "request_id": name("req")}


ANTHROPIC = Api(read=_read, whole=_whole, pieces=_pieces, refusal=_refusal)
