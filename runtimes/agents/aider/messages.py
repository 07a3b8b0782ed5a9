"""Parses the messages in a chat history of Aider, which is Markdown for people."""

import re
from collections.abc import Iterator
from datetime import datetime

from runtimes.agents.shared.messages import Message, MessageKind

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
PROMPT, NOTE = "#### ", "> "  #: How lines of a prompt and of Aider itself begin.


class AiderMessageParser:
    """Parses one chat history: each line is a message, with the time of the last start."""

    def __init__(self) -> None:
        self._started: datetime | None = None

    def __call__(self, line: str) -> Iterator[Message]:
        """Yield the message of the next line."""
        text = line.rstrip()
        if started := _STARTED.fullmatch(text):
            # A local time without a zone.
            self._started = datetime.fromisoformat(started[1]).astimezone()
        elif text.startswith(PROMPT):
            yield self._message(MessageKind.PROMPT, text.removeprefix(PROMPT))
        elif text.startswith(NOTE):
            yield self._message(MessageKind.NOTE, text.removeprefix(NOTE))
        elif text:
            yield self._message(MessageKind.ANSWER, text)

    def _message(self, kind: MessageKind, text: str) -> Message:
        return Message(kind=kind, text=text, at=self._started)
