"""The files of Gemini CLI: transcripts, with their messages.

A conversation is in `tmp/*/chats/session-TIME-ID.jsonl`: TIME is the minute of the start, ID the
first 8 characters of its id. A resumed conversation may have a second such file, a stub, because
resuming it in a later minute creates one (measured).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Time, TimedRecord, decode_json
from runtimes.agents.shared.messages import Message, MessageKind, as_text, text_parts
from runtimes.files import matching


class GeminiTokens(Struct, frozen=True):
    """Tokens of one response: the input includes cached tokens."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0
    thoughts: Count = 0
    tool: Count = 0  #: Of tool results, which the input does not include.

    def usage(self) -> Usage:
        """Convert to `Usage`, without a cost: the program knows no prices."""
        return Usage(
            input=max(0, self.input - self.cached) + self.tool,
            output=self.output,
            cache_read=self.cached,
            reasoning=self.thoughts,
        )


class GeminiThought(Struct, frozen=True):
    """One thought of a response."""

    subject: str = ""
    description: str = ""


class GeminiToolCall(TimedRecord, frozen=True):
    """A tool call, and its result once the tool has returned."""

    id: str
    name: str = ""
    args: object = None
    result: list[object] | None = None
    timestamp: Time | None = None


class GeminiRecord(TimedRecord, frozen=True, rename="camel"):
    """One line of a transcript; a response is appended again whenever it has grown."""

    id: str
    timestamp: Time
    type: str
    content: object = None
    model: str = ""
    tokens: GeminiTokens | None = None
    thoughts: tuple[GeminiThought, ...] = ()
    tool_calls: tuple[GeminiToolCall, ...] = ()


def folder(files: RunFiles) -> Path:
    """Return the folder in which the program keeps its settings and transcripts."""
    return files.home / ".gemini"


def transcripts(files: RunFiles, native: str) -> Sequence[Path]:
    """Return a conversation's transcripts, whose names end with its id's first 8 characters."""
    return sorted(matching(folder(files), f"tmp/*/chats/session-*-{native[:8]}.jsonl"))


class GeminiMessageParser:
    """Parses one transcript, line by line.

    The program appends a response again whenever it has grown. Each message is returned once, as
    it is in the first line that has it.
    """

    def __init__(self) -> None:
        self._returned: set[tuple[str, str]] = set()

    def __call__(self, line: str) -> Iterator[Message]:
        """Yield the next line's messages that no earlier line had."""
        record = decode_json(line, GeminiRecord)
        if record is None:
            return
        for part, message in _messages(record):
            if (record.id, part) not in self._returned:
                self._returned.add((record.id, part))
                yield replace(message, at=message.at or record.timestamp)


def _messages(record: GeminiRecord) -> Iterator[tuple[str, Message]]:
    """Yield the record's messages, each with a name that is unique within the record."""
    match record.type:
        case "user":
            if texts := text_parts(record.content):  # Records without text repeat tool results.
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
