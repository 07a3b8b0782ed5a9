"""Messages of a conversation, in one form for every agent type."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lifecycle.model.facts import Usage
from runtimes.agents.shared.files import NEW_BYTES, LineTail


class MessageKind(StrEnum):
    """What a message is, such as a prompt, a tool call or a note."""

    PROMPT = "prompt"
    THOUGHT = "thought"
    ANSWER = "answer"
    CALL = "call"  #: A call of a tool.
    RESULT = "result"  #: The result of the tool call with the same `Message.call`.
    NOTE = "note"  #: From the program itself: an error, an interruption.
    USAGE = "usage"  #: Usage of the preceding response, for programs that record it afterwards.


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, a part of a model response or its usage, a tool's call or result, or a note."""

    kind: MessageKind
    text: str = ""
    at: datetime | None = None  #: If None, the program records no time.
    tool: str = ""  #: The called tool's name.
    call: str = ""  #: Id of the tool call.
    answer: str = ""  #: Id of the model response that this message is part of.
    model: str = ""
    used: Usage | None = None  #: The whole response's usage, which each part may repeat.


class MessageReader(Protocol):
    """Reads messages incrementally: a call of `new` reads only what is new."""

    def new(self) -> list[Message]:
        """Return the next messages since the last call, in order; empty if none are found.

        A long conversation takes several calls.
        """
        ...


#: Parses the messages of one line. A parser gets the lines of one file, in order.
LineParser = Callable[[str], Iterable[Message]]


class LineMessageReader:
    """Reads messages from files that grow by lines, one file after the other."""

    def __init__(
        self, paths: Callable[[], Iterable[Path]], parser: Callable[[], LineParser]
    ) -> None:
        """`paths` lists the files in order at each call; `parser` makes a parser for one file."""
        self._paths = paths
        self._parser = parser
        self._files: dict[Path, tuple[LineTail, LineParser]] = {}
        self._last: datetime | None = None  #: Time of the last message.

    def new(self) -> list[Message]:
        """Return the next messages; see `MessageReader`. A skipped line becomes a note.

        After about 128 MiB of lines without messages, returns an empty list; the next call reads on
        from there.
        """
        left = NEW_BYTES
        for path in self._paths():
            if path not in self._files:
                self._files[path] = LineTail(path), self._parser()
            lines, parse = self._files[path]
            offset = -1
            while offset != lines.offset and left > 0:
                offset = lines.offset
                found = [each for line in lines.new() for each in parse(line)]
                if lines.skipped_bytes:
                    text = f"a line of {lines.skipped_bytes / 1_000_000:.1f} MB is left out here"
                    found.insert(0, Message(kind=MessageKind.NOTE, text=text, at=self._last))
                if found:
                    self._last = found[-1].at
                    return found
                left -= abs(lines.offset - offset)
        return []


def text_parts(content: object) -> list[str]:
    """Return the texts in a list of content parts; empty if `content` is not a list.

    Parts without a text are ignored.
    """
    parts = content if isinstance(content, list) else []
    return [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]


def as_text(value: object) -> str:
    """Format a tool's arguments or result: strings as they are, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
