"""The files of Claude Code: status file, transcripts with their messages, and status line.

- `sessions/PID.json`: the status file of a running program. Its status is `idle`, `busy`,
  `waiting`, or `shell` (idle, with a command in the background). It is the source of the activity.
- `projects/*/ID.jsonl`: the transcript. With the hooks, it is the source of texts and tokens.
- The first and the last input of its status line (https://code.claude.com/docs/en/statusline),
  which the adapter keeps in the run's folder: the source of costs and usage limits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import (
    Count,
    Dollars,
    Seconds,
    Time,
    TimedRecord,
    decode_json,
    decode_lines,
)
from runtimes.agents.shared.messages import Message, MessageKind, as_text, text_parts
from runtimes.files import matching, read_bytes
from runtimes.processes import is_running

_HEAD_LINES = 20  #: A transcript's first prompt, which has a time, is within these.
#: How the program wraps a pasted prompt of more than three lines.
_PASTED = re.compile(
    r'\s*<pasted_content id="\d+">\n(.*)\n</pasted_content id="\d+">\s*', re.DOTALL
)
_INTERRUPTED = "[Request interrupted by user"


class ClaudeStatus(Struct, frozen=True, rename="camel"):
    """The status file `sessions/PID.json` of a running program."""

    pid: int
    session_id: str
    proc_start: str
    status: str = ""
    waiting_for: str = ""
    status_updated_at: Annotated[float, Meta(ge=0, le=4e12)] = 0.0  #: Milliseconds since 1970.


class ClaudeTokens(Struct, frozen=True):
    """Tokens of one model response; every part of the response repeats them."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    cache_read_input_tokens: Count = 0

    def usage(self) -> Usage:
        read, written = self.cache_read_input_tokens, self.cache_creation_input_tokens
        tokens = Usage(input=self.input_tokens, output=self.output_tokens)
        return replace(tokens, cache_read=read, cache_write=written)


class ClaudeMessage(Struct, frozen=True):
    """The message in a transcript record, as in Anthropic's Messages API."""

    id: str = ""
    model: str = ""
    content: str | list[dict[str, object]] = ""
    usage: ClaudeTokens | None = None


class ClaudeRecord(TimedRecord, frozen=True, rename="camel"):
    """One line of a transcript."""

    type: str
    subtype: str = ""  #: Of a `system` record; `turn_duration` ends a turn.
    timestamp: Time | None = None
    message: ClaudeMessage | None = None
    is_api_error_message: bool = False
    is_meta: bool = False  #: Whether the program itself inserted it.
    prompt_source: str = ""  #: `system` for prompts that no person wrote.
    error: object = ""  #: One word beside an error message, such as `rate_limit`.


class ClaudeCost(Struct, frozen=True):
    """The cost of the whole conversation, at the program's own prices."""

    total_cost_usd: Dollars = 0.0


class ClaudeLimitWindow(Struct, frozen=True):
    """One usage limit of a subscription."""

    used_percentage: float
    resets_at: Seconds


class ClaudeStatusLine(Struct, frozen=True):
    """The input of the status line."""

    cost: ClaudeCost = ClaudeCost()
    rate_limits: dict[str, ClaudeLimitWindow] = {}


def is_interruption(content: str | list[dict[str, object]]) -> bool:
    """Whether the content of a user's record says that a person interrupted the turn."""
    texts = [content] if isinstance(content, str) else text_parts(content)
    return any(text.startswith(_INTERRUPTED) for text in texts)


def folder(files: RunFiles) -> Path:
    """Return the program's folder, its CLAUDE_CONFIG_DIR."""
    return files.home / ".claude"


def status_lines(files: RunFiles) -> tuple[Path, Path]:
    """Return the files with the first and the last input of the run's status line.

    The first input has the cost of the conversation before the run.
    """
    return files.outputs / "claude-line.first", files.outputs / "claude-line.last"


def transcript(files: RunFiles, native: str) -> Path | None:
    """Return the transcript of the conversation `native`, or None if it has no transcript yet."""
    found = matching(folder(files), f"projects/*/{native}.jsonl") if native else ()
    return next(iter(found), None)


def transcripts(files: RunFiles) -> list[Path]:
    """Return the transcripts of all conversations, unordered."""
    return matching(folder(files), "projects/*/*.jsonl")


def subagent_transcripts(transcript: Path) -> Sequence[Path]:
    """Return the transcripts of the subagents that a conversation started."""
    return sorted(matching(transcript.with_suffix(""), "subagents/*.jsonl"))


def started_at(transcript: Path) -> datetime:
    """Return the first time in a transcript's first 20 lines.

    If these lines have no time, returns the latest possible time.
    """
    with suppress(OSError):
        head = read_bytes(transcript).decode(errors="replace").split("\n", _HEAD_LINES)
        for record in decode_lines(head[:_HEAD_LINES], ClaudeRecord):
            if record.timestamp is not None:
                return record.timestamp
    return datetime.max.replace(tzinfo=UTC)


def is_alive(status: ClaudeStatus) -> bool:
    """Whether the process of a status file still runs. A killed program leaves its file behind."""
    return is_running(status.pid, status.proc_start)


def parse_line(line: str) -> Iterator[Message]:
    """Yield the messages of one line of a transcript.

    Records that the program itself inserted (`is_meta`) have no messages.
    """
    record = decode_json(line, ClaudeRecord)
    if record is None or record.message is None or record.is_meta:
        return
    message, content = record.message, record.message.content
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if record.type == "user":
            found = _from_user(block, by_system=record.prompt_source == "system")
        elif record.type != "assistant":
            return
        elif record.is_api_error_message:
            found = Message(kind=MessageKind.NOTE, text=str(block.get("text", "")))
        elif found := _from_model(block):
            used = message.usage.usage() if message.usage else None
            found = replace(found, answer=message.id, model=message.model, used=used)
        if found is not None:
            yield replace(found, at=record.timestamp)


def _from_user(block: Mapping[str, object], by_system: bool) -> Message | None:
    match block:
        case {"type": "text", "text": str(text)} if text.startswith(_INTERRUPTED):
            return Message(kind=MessageKind.NOTE, text=text)
        case {"type": "text", "text": str(text)}:
            pasted = _PASTED.fullmatch(text)
            kind = MessageKind.NOTE if by_system else MessageKind.PROMPT
            return Message(kind=kind, text=pasted[1] if pasted else text)
        case {"type": "tool_result", "tool_use_id": str(call)}:
            content = block.get("content", "")
            text = "\n".join(text_parts(content)) or as_text(content)
            return Message(kind=MessageKind.RESULT, call=call, text=text)
    return None


def _from_model(block: Mapping[str, object]) -> Message | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return Message(kind=MessageKind.ANSWER, text=text)
        case {"type": "thinking", "thinking": str(text)}:
            return Message(kind=MessageKind.THOUGHT, text=text)
        case {"type": "tool_use", "id": str(call), "name": str(tool)}:
            text = as_text(block.get("input", {}))
            return Message(kind=MessageKind.CALL, call=call, tool=tool, text=text)
    return None
