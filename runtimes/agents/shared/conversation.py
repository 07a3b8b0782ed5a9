"""Reads conversations that programs write down line by line."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.messages import Kind, Message

#: Makes messages of one line of a file, given every line of it in order.
Understanding = Callable[[str], Iterable[Message]]


class MessagesOfLines:
    """Messages of files that grow by lines, one file after the other."""

    def __init__(
        self, paths: Callable[[], Iterable[Path]], understands: Callable[[], Understanding]
    ) -> None:
        """`paths` in their order, asked for at each look; each file gets its own `understands`."""
        self._paths = paths
        self._understands = understands
        self._files: dict[Path, tuple[LineTail, Understanding]] = {}
        self._last: datetime | None = None  #: When the last one was said.

    def new(self) -> list[Message]:
        """The next of them; see `Messages`."""
        for path in self._paths():
            if path not in self._files:
                self._files[path] = LineTail(path), self._understands()
            lines, understands = self._files[path]
            offset = -1
            while offset != lines.offset:
                offset = lines.offset
                found = [each for line in lines.new() for each in understands(line)]
                if lines.left_out:
                    text = f"a line of {lines.left_out / 1_000_000:.1f} MB is left out here"
                    found.insert(0, Message(kind=Kind.NOTE, text=text, at=self._last))
                if found:
                    self._last = found[-1].at
                    return found
        return []


def texts(content: object) -> list[str]:
    """The texts among the parts of a message; of other parts, which agents may write, nothing."""
    parts = content if isinstance(content, list) else []
    return [str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part]


def shown(value: object) -> str:
    """What a tool was given, or gave back, as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
