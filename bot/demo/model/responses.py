"""The Responses API of OpenAI, as used by Codex."""

import json
import time
from collections.abc import Iterator

from bot.demo.model.script import Turn
from bot.demo.model.talk import USED, Api, Asked, Json, Reply, halves, name, texts

_INPUT, _OUTPUT = USED.input + USED.cache_read, USED.output + USED.reasoning
_USAGE = {
    "input_tokens": _INPUT,
    "input_tokens_details": {"cached_tokens": USED.cache_read},
    "output_tokens": _OUTPUT,
    "output_tokens_details": {"reasoning_tokens": USED.reasoning},
    "total_tokens": _INPUT + _OUTPUT,
}
_ERRORS = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}


def _read(path: str, body: Json) -> Asked:
    tools = frozenset(tool.get("name", tool["type"]) for tool in body.get("tools", ()))
    return Asked(
        model=body["model"],
        turns=(Turn("system", body.get("instructions") or ""), *_turns(body)),
        tools=tools,
        stream=body.get("stream", False),
        aside="" if tools else "Scripted title",
    )


def _turns(body: Json) -> Iterator[Turn]:
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            yield Turn(item["role"], texts(item["content"]))
        elif kind.endswith("_output"):
            yield Turn("tool")


def _whole(asked: Asked, reply: Reply) -> Json:
    output: list[Json] = []
    if reply.think:
        summary = [{"type": "summary_text", "text": reply.think}]
        output.append({"type": "reasoning", "id": name("rs"), "summary": summary})
    content = [{"type": "output_text", "text": reply.say, "annotations": []}]
    done = {"status": "completed"}
    output.append(
        {"type": "message", "id": name("msg"), "role": "assistant", "content": content, **done}
    )
    for call in reply.calls:
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        names = {"id": name("fc"), "call_id": name("call")}
        output.append({"type": "function_call", **names, **function, **done})
    return {
        "id": name("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": asked.model,
        "output": output,
        "usage": _USAGE,
        **done,
    }


def _pieces(asked: Asked, reply: Reply) -> list[str]:
    whole = _whole(asked, reply)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    pieces = [_event("response.created", response=begun)]
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index}
        fresh = {**item, "status": "in_progress"}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            part = {**at, "item_id": item["id"], "content_index": 0}
            pieces.append(_event("response.output_item.added", item={**fresh, "content": []}, **at))
            pieces += [
                _event("response.output_text.delta", delta=half, **part) for half in halves(text)
            ]
            pieces.append(_event("response.output_text.done", text=text, **part))
        else:
            pieces.append(_event("response.output_item.added", item=fresh, **at))
        pieces.append(_event("response.output_item.done", item=item, **at))
    return [*pieces, _event("response.completed", response=whole)]


def _event(kind: str, **more: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"


def _refusal(status: int) -> Json:
    kind = _ERRORS.get(status, "server_error")
    return {"error": {"type": kind, "code": kind, "message": f"scripted {status}"}}


RESPONSES = Api(read=_read, whole=_whole, pieces=_pieces, refusal=_refusal)
