"""What was said in a conversation of Gemini CLI, from its transcript."""

from collections.abc import Iterator

from msgspec.structs import replace

from runtimes.agents.gemini import files as its
from runtimes.agents.shared.conversation import shown, texts
from runtimes.agents.shared.files import understood
from runtimes.agents.shared.messages import Kind, Message


class GeminiMessages:
    """The messages of one transcript, line by line."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()  #: An answer is written again when it has grown.

    def __call__(self, line: str) -> Iterator[Message]:
        """The messages of the next line that no line before had."""
        record = understood(line, its.Record)
        if record is None:
            return
        for place, message in _messages(record):
            if (record.id, place) not in self._told:
                self._told.add((record.id, place))
                yield replace(message, at=message.at or record.timestamp)


def _messages(record: its.Record) -> Iterator[tuple[str, Message]]:
    """Each with what tells it from the others of its record."""
    match record.type:
        case "user":
            said = texts(record.content)
            if said:  # Otherwise it is what tools gave back, which stands with their calls too.
                yield "", Message(kind=Kind.PROMPT, text="\n".join(said))
        case "gemini":
            used = its.used(record.tokens) if record.tokens else None
            for place, message in _answer(record):
                yield place, replace(message, answer=record.id, model=record.model, used=used)
        case "info" | "error":
            yield "", Message(kind=Kind.NOTE, text=str(record.content))


def _answer(record: its.Record) -> Iterator[tuple[str, Message]]:
    for number, thought in enumerate(record.thoughts):
        text = f"{thought.subject}: {thought.description}"
        yield f"thought {number}", Message(kind=Kind.THOUGHT, text=text)
    if isinstance(record.content, str) and record.content:
        yield "", Message(kind=Kind.ANSWER, text=record.content)
    for call in record.tool_calls:
        made = Message(kind=Kind.CALL, call=call.id, tool=call.name, text=shown(call.args))
        yield f"call {call.id}", made
        if call.result:
            text = "\n".join(map(_given_back, call.result))
            done = Message(kind=Kind.RESULT, call=call.id, text=text, at=call.timestamp)
            yield f"result {call.id}", done


def _given_back(part: object) -> str:
    match part:
        case {"functionResponse": {"response": {"output": output}}}:
            return shown(output)
        case {"functionResponse": {"response": response}}:
            return shown(response)
    return shown(part)
