"""Parses the messages in a transcript of Claude Code."""

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from runtimes.agents.claude.files import ClaudeRecord
from runtimes.agents.shared.files import decode_json
from runtimes.agents.shared.messages import Message, MessageKind, as_text, text_parts

#: How the program wraps a pasted prompt of more than three lines.
_PASTED = re.compile(
    r'\s*<pasted_content id="\d+">\n(.*)\n</pasted_content id="\d+">\s*', re.DOTALL
)
_CONVERSATION = ("user", "assistant")
_INTERRUPTED = "[Request interrupted by user"


def parse_line(line: str) -> Iterator[Message]:
    """Yield the messages of one line; none for records of the program itself."""
    record = decode_json(line, ClaudeRecord)
    if record is None or record.message is None or record.is_meta:
        return
    if record.type not in _CONVERSATION:
        return
    message, content = record.message, record.message.content
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if record.type == "user":
            found = _from_user(block, by_system=record.prompt_source == "system")
        elif record.is_api_error_message:
            found = Message(kind=MessageKind.NOTE, text=str(block.get("text", "")))
        elif found := _from_model(block):
            used = message.usage.usage() if message.usage else None
            found = replace(found, answer=message.id, model=message.model, used=used)
        if found is not None:
            yield replace(found, at=record.timestamp)


def _from_user(block: Mapping[str, object], by_system: bool) -> Message | None:
    match block:
        case {"type": "text", "text": str(text)} if text.startswith(_INTERRUPTED):
            return Message(kind=MessageKind.NOTE, text=text)
        case {"type": "text", "text": str(text)}:
            pasted = _PASTED.fullmatch(text)
            kind = MessageKind.NOTE if by_system else MessageKind.PROMPT
            return Message(kind=kind, text=pasted[1] if pasted else text)
        case {"type": "tool_result", "tool_use_id": str(call)}:
            content = block.get("content", "")
            text = "\n".join(text_parts(content)) or as_text(content)
            return Message(kind=MessageKind.RESULT, call=call, text=text)
    return None


def _from_model(block: Mapping[str, object]) -> Message | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return Message(kind=MessageKind.ANSWER, text=text)
        case {"type": "thinking", "thinking": str(text)}:
            return Message(kind=MessageKind.THOUGHT, text=text)
        case {"type": "tool_use", "id": str(call), "name": str(tool)}:
            text = as_text(block.get("input", {}))
            return Message(kind=MessageKind.CALL, call=call, tool=tool, text=text)
    return None
