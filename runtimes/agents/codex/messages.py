"""Parses the messages in a rollout of Codex."""

from collections.abc import Iterator, Mapping

from msgspec import Raw
from msgspec.structs import replace

from runtimes.agents.codex.files import CodexRecord, CodexTurnContext, CodexUsage
from runtimes.agents.shared.files import decode_json
from runtimes.agents.shared.messages import Message, MessageKind, as_text, text_parts


class CodexMessageParser:
    """Parses one rollout, line by line: an earlier line names the model of a response."""

    def __init__(self) -> None:
        self._model = ""

    def __call__(self, line: str) -> Iterator[Message]:
        """Yield the message of the next line."""
        record = decode_json(line, CodexRecord)
        if record is None:
            return
        if record.type == "turn_context":
            context = decode_json(record.payload, CodexTurnContext)
            self._model = context.model if context else ""
        elif found := _message(record.type, record.payload):
            kinds = (MessageKind.PROMPT, MessageKind.RESULT, MessageKind.NOTE)
            model = "" if found.kind in kinds else self._model
            yield replace(found, at=record.timestamp, model=model)


def _message(kind: str, payload: Raw) -> Message | None:
    if kind == "token_usage_record":
        used = decode_json(payload, CodexUsage)
        if used is None:
            return None
        return Message(kind=MessageKind.USAGE, answer=used.response_id, used=used.usage.usage())
    fields = decode_json(payload, dict[str, object]) or {}
    if kind == "event_msg":
        return _from_event(fields)
    return _from_item(fields) if kind == "response_item" else None


def _from_event(event: Mapping[str, object]) -> Message | None:
    """Return a person's prompt, or the end of a turn.

    Unlike the prompts among the items, those among the events contain nothing that the program
    added.
    """
    match event:
        case {"type": "item_completed", "item": {"type": "UserMessage", "content": content}}:
            return Message(kind=MessageKind.PROMPT, text="\n".join(text_parts(content)))
        case {"type": "task_complete", "error": {"message": str(text)}}:
            return Message(kind=MessageKind.NOTE, text=text)
        case {"type": "turn_aborted"}:
            return Message(kind=MessageKind.NOTE, text=f"turn aborted: {event.get('reason', '')}")
    return None


def _from_item(item: Mapping[str, object]) -> Message | None:
    call, kind = str(item.get("call_id", "")), str(item.get("type"))
    match item:
        case {"type": "message", "role": "assistant", "content": content}:
            return Message(kind=MessageKind.ANSWER, text="\n".join(text_parts(content)))
        case {"type": "reasoning", "summary": list(summary)} if summary:
            return Message(kind=MessageKind.THOUGHT, text="\n".join(text_parts(summary)))
        case {"output": output} if kind.endswith("_call_output"):
            return Message(kind=MessageKind.RESULT, call=call, text=as_text(output))
    if not kind.endswith("_call"):
        return None
    arguments = item.get("arguments") or item.get("input") or item.get("action") or {}
    tool = str(item.get("name", kind))
    return Message(kind=MessageKind.CALL, call=call, tool=tool, text=as_text(arguments))
