"""What was said in a conversation of Claude Code, from its transcript."""

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from runtimes.agents.claude import files as its
from runtimes.agents.shared.conversation import shown, texts
from runtimes.agents.shared.files import understood
from runtimes.agents.shared.messages import Kind, Message

#: How a long paste comes into its prompt.
_PASTED = re.compile(
    r'\s*<pasted_content id="\d+">\n(.*)\n</pasted_content id="\d+">\s*', re.DOTALL
)
_SAID = ("user", "assistant")
_INTERRUPTED = "[Request interrupted by user"


def messages(line: str) -> Iterator[Message]:
    """The messages of one line of the transcript."""
    record = understood(line, its.Record)
    if record is None or record.message is None or record.is_meta or record.type not in _SAID:
        return
    said, content = record.message, record.message.content
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if record.type == "user":
            found = _of_user(block, by_system=record.prompt_source == "system")
        elif record.is_api_error_message:
            found = Message(kind=Kind.NOTE, text=str(block.get("text", "")))
        elif found := _of_model(block):
            used = its.used(said.usage) if said.usage else None
            found = replace(found, answer=said.id, model=said.model, used=used)
        if found is not None:
            yield replace(found, at=record.timestamp)


def _of_user(block: Mapping[str, object], by_system: bool) -> Message | None:
    match block:
        case {"type": "text", "text": str(text)} if text.startswith(_INTERRUPTED):
            return Message(kind=Kind.NOTE, text=text)
        case {"type": "text", "text": str(text)}:
            pasted = _PASTED.fullmatch(text)
            kind = Kind.NOTE if by_system else Kind.PROMPT
            return Message(kind=kind, text=pasted[1] if pasted else text)
        case {"type": "tool_result", "tool_use_id": str(call)}:
            given = block.get("content", "")
            text = "\n".join(texts(given)) or shown(given)
            return Message(kind=Kind.RESULT, call=call, text=text)
    return None


def _of_model(block: Mapping[str, object]) -> Message | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return Message(kind=Kind.ANSWER, text=text)
        case {"type": "thinking", "thinking": str(text)}:
            return Message(kind=Kind.THOUGHT, text=text)
        case {"type": "tool_use", "id": str(call), "name": str(tool)}:
            text = shown(block.get("input", {}))
            return Message(kind=Kind.CALL, call=call, tool=tool, text=text)
    return None
