"""Parses the messages in a transcript of Gemini CLI."""

from collections.abc import Iterator

from msgspec.structs import replace

from runtimes.agents.gemini.files import GeminiRecord
from runtimes.agents.shared.files import decode_json
from runtimes.agents.shared.messages import Message, MessageKind, as_text, text_parts


class GeminiMessageParser:
    """Parses one transcript, line by line.

    The program appends a response again whenever it has grown; each part is yielded once.
    """

    def __init__(self) -> None:
        self._yielded: set[tuple[str, str]] = set()

    def __call__(self, line: str) -> Iterator[Message]:
        """Yield the messages of the next line that no earlier line had."""
        record = decode_json(line, GeminiRecord)
        if record is None:
            return
        for part, message in _messages(record):
            if (record.id, part) not in self._yielded:
                self._yielded.add((record.id, part))
                yield replace(message, at=message.at or record.timestamp)


def _messages(record: GeminiRecord) -> Iterator[tuple[str, Message]]:
    """Yield the record's messages, each with a name that is unique within the record."""
    match record.type:
        case "user":
            texts = text_parts(record.content)
            if texts:  # Records without text repeat tool results.
                yield "", Message(kind=MessageKind.PROMPT, text="\n".join(texts))
        case "gemini":
            used = record.tokens.usage() if record.tokens else None
            for part, message in _response(record):
                yield part, replace(message, answer=record.id, model=record.model, used=used)
        case "info" | "error":
            yield "", Message(kind=MessageKind.NOTE, text=str(record.content))


def _response(record: GeminiRecord) -> Iterator[tuple[str, Message]]:
    for number, thought in enumerate(record.thoughts):
        text = f"{thought.subject}: {thought.description}"
        yield f"thought {number}", Message(kind=MessageKind.THOUGHT, text=text)
    if isinstance(record.content, str) and record.content:
        yield "", Message(kind=MessageKind.ANSWER, text=record.content)
    for call in record.tool_calls:
        text = as_text(call.args)
        made = Message(kind=MessageKind.CALL, call=call.id, tool=call.name, text=text)
        yield f"call {call.id}", made
        if call.result:
            text = "\n".join(map(_result_text, call.result))
            done = Message(kind=MessageKind.RESULT, call=call.id, text=text, at=call.timestamp)
            yield f"result {call.id}", done


def _result_text(part: object) -> str:
    match part:
        case {"functionResponse": {"response": {"output": output}}}:
            return as_text(output)
        case {"functionResponse": {"response": response}}:
            return as_text(response)
    return as_text(part)
