"""The Chat Completions API of OpenAI, as used by OpenCode and Aider."""

import json
import time

from msgspec.structs import replace

from bot.demo.model.script import Turn
from bot.demo.model.talk import USED, Api, Asked, Json, Reply, halves, name, texts

_INPUT, _OUTPUT = USED.input + USED.cache_read, USED.output + USED.reasoning
_USAGE = {
    "prompt_tokens": _INPUT,
    "prompt_tokens_details": {"cached_tokens": USED.cache_read},
    "completion_tokens": _OUTPUT,
    "completion_tokens_details": {"reasoning_tokens": USED.reasoning},
    "total_tokens": _INPUT + _OUTPUT,
}


def _read(path: str, body: Json) -> Asked:
    asked = Asked(
        model=body["model"],
        turns=tuple(Turn(one["role"], texts(one.get("content"))) for one in body["messages"]),
        tools=frozenset(tool["function"]["name"] for tool in body.get("tools", ())),
        stream=body.get("stream", False),
        aside="Scripted title",
    )
    return replace(asked, aside="") if asked.tools or asked.edits else asked


def _whole(asked: Asked, reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.say}
    if reply.think:
        message["reasoning_content"] = reply.think
    if reply.calls:
        message["tool_calls"] = [
            {
                "index": index,
                "id": name("call"),
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for index, call in enumerate(reply.calls)
        ]
    finish = "tool_calls" if reply.calls else "stop"
    return {
        "id": name("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _USAGE,
    }


def _pieces(asked: Asked, reply: Reply) -> list[str]:
    whole = _whole(asked, reply)
    (choice,) = whole["choices"]
    message = choice["message"]
    first, second = halves(message.pop("content"))
    calls = {"tool_calls": message.pop("tool_calls")} if reply.calls else {}
    deltas = [{**message, "content": first}, {"content": second}, calls]
    chunk = {**whole, "object": "chat.completion.chunk", "usage": None}
    finishes = (None, None, choice["finish_reason"])
    pieces = [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in zip(deltas, finishes, strict=True)
    ]
    pieces.append({**chunk, "choices": [], "usage": _USAGE})
    return [*(f"data: {json.dumps(piece)}\n\n" for piece in pieces), "data: [DONE]\n\n"]


def _refusal(status: int) -> Json:
    kind = "rate_limit_error" if status == 429 else "server_error"
    return {"error": {"type": kind, "code": str(status), "message": f"scripted {status}"}}


CHAT = Api(read=_read, whole=_whole, pieces=_pieces, refusal=_refusal)
