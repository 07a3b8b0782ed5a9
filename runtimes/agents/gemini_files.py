"""Where Gemini CLI keeps what it says of itself, and what of it is used.

It appends to a transcript (`tmp/*/chats/session-*-ID.jsonl`, of which a resumed conversation may
have two).
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from lifecycle.facts import Usage
from runtimes.agents.base import RunFiles

_Count = Annotated[int, Meta(ge=0)]
_Time = Annotated[datetime, Meta(tz=True)]


class Tokens(Struct, frozen=True):
    """What one answer used; what was cached is part of the input."""

    input: _Count = 0
    output: _Count = 0
    cached: _Count = 0
    thoughts: _Count = 0
    tool: _Count = 0  #: Of results of tools, beside the input.


class Thought(Struct, frozen=True):
    """What it thought of aloud."""

    subject: str = ""
    description: str = ""


class ToolCall(Struct, frozen=True):
    """A tool it called, and what that gave back once it has returned."""

    id: str
    name: str = ""
    args: object = None
    result: list[object] | None = None
    timestamp: _Time | None = None


class Record(Struct, frozen=True, rename="camel"):
    """One line of the transcript; an answer is written again when it has grown."""

    id: str
    timestamp: _Time
    type: str
    content: object = None
    model: str = ""
    tokens: Tokens | None = None
    thoughts: tuple[Thought, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()


def used(tokens: Tokens) -> Usage:
    return Usage(
        input=max(0, tokens.input - tokens.cached) + tokens.tool,
        output=tokens.output,
        cache_read=tokens.cached,
        reasoning=tokens.thoughts,
    )


def folder(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".gemini"


def transcripts(files: RunFiles, native: str) -> list[Path]:
    """The transcripts of a conversation: they carry the beginning of its name."""
    return sorted((folder(files) / "tmp").glob(f"*/chats/session-*-{native[:8]}.jsonl"))
