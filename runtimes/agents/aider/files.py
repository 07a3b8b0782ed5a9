"""The files of Aider: chat histories, and an analytics log at the path `RunFiles.spool`.

A chat history is Markdown for people.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from lifecycle.model.facts import Usage
from lifecycle.model.times import from_text
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Dollars, Seconds
from runtimes.agents.shared.messages import Message, MessageKind

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
PROMPT, NOTE = "#### ", "> "  #: The beginnings of a prompt's lines, and of Aider's own.


class AiderProperties(Struct, frozen=True):
    """The usage of one request, or the exception that broke the request off.

    Aider estimates the usage of a streamed response.
    """

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Dollars = 0.0
    exception: str = ""

    def usage(self) -> Usage:
        """Convert to `Usage`.

        The cost is None if Aider reports 0, as it does when it knows no price.
        """
        return Usage(
            input=self.prompt_tokens,
            output=self.completion_tokens,
            cost_usd=self.cost or None,
        )


class AiderEvent(Struct, frozen=True):
    """One line of the analytics log: https://aider.chat/docs/more/analytics.html."""

    event: str
    time: Seconds
    properties: AiderProperties = AiderProperties()


def folder(files: RunFiles) -> Path:
    """Return the folder for chat histories and caches, which all runs of the session share."""
    return files.home / ".aider"


def history(files: RunFiles, native: str) -> Path:
    """Return the file with a conversation's chat history, which Aider appends to."""
    return folder(files) / f"{native}.chat.md"


class AiderMessageParser:
    """Parses one chat history. Each line of text is a message.

    The history has no times except those of Aider's starts, so a message gets the time of the last
    start above it.
    """

    def __init__(self) -> None:
        self._started: datetime | None = None

    def __call__(self, line: str) -> Iterator[Message]:
        text = line.rstrip()
        if started := _STARTED.fullmatch(text):
            at = from_text(f"{started[1]}Z")
            # It is a local time, without a zone.
            self._started = at.replace(tzinfo=None).astimezone() if at else None
        elif text.startswith(PROMPT):
            yield self._message(MessageKind.PROMPT, text.removeprefix(PROMPT))
        elif text.startswith(NOTE):
            yield self._message(MessageKind.NOTE, text.removeprefix(NOTE))
        elif text:
            yield self._message(MessageKind.ANSWER, text)

    def _message(self, kind: MessageKind, text: str) -> Message:
        return Message(kind=kind, text=text, at=self._started)
