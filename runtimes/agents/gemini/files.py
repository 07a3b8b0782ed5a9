"""The files of Gemini CLI: transcripts and hook payloads.

A conversation is in `tmp/*/chats/session-*-ID.jsonl`; a resumed one may have two such files,
because the program creates a stub at each start in another minute (measured).
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count

_Time = Annotated[datetime, Meta(tz=True)]


class GeminiHook(Struct, frozen=True):
    """A hook's payload: https://geminicli.com/docs/hooks/reference."""

    session_id: str
    hook_event_name: str
    timestamp: _Time
    tool_name: str = ""
    tool_input: object = None
    notification_type: str = ""


class GeminiTokens(Struct, frozen=True):
    """Tokens of one response: cached ones are part of the input."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0
    thoughts: Count = 0
    tool: Count = 0  #: Tool results, beside the input.

    def usage(self) -> Usage:
        """Return them as usage, without a cost: the program knows no prices."""
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


class GeminiToolCall(Struct, frozen=True):
    """A tool call, and its result once the tool has returned."""

    id: str
    name: str = ""
    args: object = None
    result: list[object] | None = None
    timestamp: _Time | None = None


class GeminiRecord(Struct, frozen=True, rename="camel"):
    """One line of a transcript; a response is appended again whenever it has grown."""

    id: str
    timestamp: _Time
    type: str
    content: object = None
    model: str = ""
    tokens: GeminiTokens | None = None
    thoughts: tuple[GeminiThought, ...] = ()
    tool_calls: tuple[GeminiToolCall, ...] = ()


def folder(files: RunFiles) -> Path:
    """The folder in which the program keeps its settings and transcripts."""
    return files.home / ".gemini"


def transcripts(files: RunFiles, native: str) -> Sequence[Path]:
    """The transcripts of a conversation: their names end with the beginning of its id."""
    return sorted((folder(files) / "tmp").glob(f"*/chats/session-*-{native[:8]}.jsonl"))
