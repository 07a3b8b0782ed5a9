"""What was said in a conversation of Codex, from its rollout."""

from collections.abc import Iterator, Mapping

from msgspec import Raw
from msgspec.structs import replace

from runtimes.agents.codex import files as its
from runtimes.agents.shared.conversation import shown, texts
from runtimes.agents.shared.files import understood
from runtimes.agents.shared.messages import Kind, Message


class CodexMessages:
    """The messages of one rollout, line by line."""

    def __init__(self) -> None:
        self._model = ""  #: Of the turn.

    def __call__(self, line: str) -> Iterator[Message]:
        """The messages of the next line."""
        record = understood(line, its.Record)
        if record is None:
            return
        if record.type == "turn_context":
            context = understood(record.payload, its.Context)
            self._model = context.model if context else ""
        elif found := _message(record.type, record.payload):
            of_model = found.kind not in (Kind.PROMPT, Kind.RESULT, Kind.NOTE)
            yield replace(found, at=record.timestamp, model=self._model if of_model else "")


def _message(kind: str, payload: Raw) -> Message | None:
    if kind == "token_usage_record":
        spent = understood(payload, its.Spent)
        if spent is None:
            return None
        return Message(kind=Kind.USAGE, answer=spent.response_id, used=its.used(spent.usage))
    given = understood(payload, dict[str, object]) or {}
    if kind == "event_msg":
        return _happened(given)
    return _said(given) if kind == "response_item" else None


def _happened(event: Mapping[str, object]) -> Message | None:
    """What people wrote, and how turns ended. What programs add to a prompt is no event."""
    match event:
        case {"type": "item_completed", "item": {"type": "UserMessage", "content": content}}:
            return Message(kind=Kind.PROMPT, text="\n".join(texts(content)))
        case {"type": "task_complete", "error": {"message": str(text)}}:
            return Message(kind=Kind.NOTE, text=text)
        case {"type": "turn_aborted"}:
            return Message(kind=Kind.NOTE, text=f"turn aborted: {event.get('reason', '')}")
    return None


def _said(item: Mapping[str, object]) -> Message | None:
    call, kind = str(item.get("call_id", "")), str(item.get("type"))
    match item:
        case {"type": "message", "role": "assistant", "content": content}:
            return Message(kind=Kind.ANSWER, text="\n".join(texts(content)))
        case {"type": "reasoning", "summary": list(summary)} if summary:
            return Message(kind=Kind.THOUGHT, text="\n".join(texts(summary)))
        case {"output": output} if kind.endswith("_call_output"):
            return Message(kind=Kind.RESULT, call=call, text=shown(output))
    if not kind.endswith("_call"):
        return None
    given = item.get("arguments") or item.get("input") or item.get("action") or {}
    return Message(kind=Kind.CALL, call=call, tool=str(item.get("name", kind)), text=shown(given))
