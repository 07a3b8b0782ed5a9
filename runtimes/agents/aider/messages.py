"""What was said in a conversation of Aider, from what it writes down for people to read."""

import re
from collections.abc import Iterator
from datetime import datetime

from runtimes.agents.shared.messages import Kind, Message

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_PROMPT, _NOTE = "#### ", "> "


class AiderMessages:
    """The messages of one conversation: each line is one."""

    def __init__(self) -> None:
        self._began: datetime | None = None  #: Of the lines it tells no other time.

    def __call__(self, line: str) -> Iterator[Message]:
        """The message of the next line."""
        text = line.rstrip()
        if started := _STARTED.fullmatch(text):
            # It writes the time of this machine, without saying so.
            self._began = datetime.fromisoformat(started[1]).astimezone()
        elif text.startswith(_PROMPT):
            yield self._said(Kind.PROMPT, text.removeprefix(_PROMPT))
        elif text.startswith(_NOTE):
            yield self._said(Kind.NOTE, text.removeprefix(_NOTE))
        elif text:
            yield self._said(Kind.ANSWER, text)

    def _said(self, kind: Kind, text: str) -> Message:
        return Message(kind=kind, text=text, at=self._began)
