"""The files of Codex: rollouts, as it calls its transcripts, and their messages.

The program appends a conversation to its rollout (`sessions/YYYY/MM/DD/rollout-*-ID.jsonl`), which
it creates at the first prompt. The rollout is the source of turns, texts and tokens. Permission
requests and the id of a new conversation are known from hooks only.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Raw, Struct
from msgspec.structs import replace

from lifecycle.model.facts import Usage
from lifecycle.model.times import from_seconds
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Seconds, Time, TimedRecord, decode_json
from runtimes.agents.shared.messages import Message, MessageKind, as_text, text_parts
from runtimes.files import matching

#: The percentage from which a usage limit counts as reached, because the program rounds.
_FULL = 99.0


class CodexRecord(TimedRecord, frozen=True):
    """One line of a rollout."""

    timestamp: Time
    type: str
    payload: Raw


class CodexError(Struct, frozen=True):
    """The error that ended a turn."""

    message: str = ""
    codex_error_info: object = None  #: A word, or an object: `{word: {"http_status_code": 429}}`.

    @property
    def word(self) -> str:
        """The kind of error, such as `usage_limit_exceeded`."""
        info = self.codex_error_info
        return next(iter(info), "") if isinstance(info, dict) else str(info or "")

    @property
    def code(self) -> object:
        """The HTTP status of the provider's response; None if there was none."""
        info = self.codex_error_info
        more = info.get(self.word) if isinstance(info, dict) else None
        return more.get("http_status_code") if isinstance(more, dict) else None


class CodexTokens(Struct, frozen=True):
    """Tokens of one response: input includes cached tokens, output includes reasoning tokens."""

    input_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_write_input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_output_tokens: Count = 0

    def usage(self) -> Usage:
        """Convert to `Usage`, without a cost: the program knows no prices."""
        cached, written = self.cached_input_tokens, self.cache_write_input_tokens
        return Usage(
            input=max(0, self.input_tokens - cached - written),
            output=max(0, self.output_tokens - self.reasoning_output_tokens),
            cache_read=cached,
            cache_write=written,
            reasoning=self.reasoning_output_tokens,
        )


class CodexTurnContext(Struct, frozen=True):
    """The payload of a `turn_context`, the record that names the model of a turn."""

    model: str = ""


class CodexUsage(Struct, frozen=True):
    """The payload of a `token_usage_record`: the usage of one response."""

    response_id: str
    usage: CodexTokens


class CodexLimitWindow(Struct, frozen=True):
    """One usage limit of a subscription."""

    used_percent: float = 0.0
    resets_at: Seconds | None = None


class CodexLimits(Struct, frozen=True):
    """The usage limits of a subscription, as of the last response."""

    primary: CodexLimitWindow | None = None
    secondary: CodexLimitWindow | None = None

    def reset(self) -> datetime | None:
        """Return when the last of the exhausted limits resets.

        Returns None if no limit is exhausted, or if the time is unknown.
        """
        windows = [window for window in (self.primary, self.secondary) if window is not None]
        full = [each.resets_at for each in windows if each.used_percent >= _FULL]
        until = max((at for at in full if at is not None), default=None)
        return None if until is None else from_seconds(until)


class CodexEvent(Struct, frozen=True):
    """The payload of an `event_msg`: a turn began or ended, or limits were reported."""

    type: str
    turn_id: str = ""
    last_agent_message: str | None = None
    error: CodexError | None = None
    rate_limits: CodexLimits | None = None


class CodexItem(Struct, frozen=True):
    """The payload of a `response_item`, such as a tool call or its output."""

    type: str
    call_id: str = ""
    name: str = ""
    arguments: object = None


def folder(files: RunFiles) -> Path:
    """Return the program's folder, its CODEX_HOME."""
    return files.home / ".codex"


def rollout(files: RunFiles, native: str) -> Path | None:
    """Return the path of the transcript ("rollout") of the conversation with the id `native`.

    None if `native` is empty, or if Codex has not created the transcript yet.
    """
    found = matching(folder(files), f"sessions/*/*/*/rollout-*-{native}.jsonl") if native else ()
    return next(iter(found), None)


class CodexMessageParser:
    """Parses one rollout, line by line. The model of a response is named in an earlier line."""

    def __init__(self) -> None:
        self._model = ""

    def __call__(self, line: str) -> Iterator[Message]:
        record = decode_json(line, CodexRecord)
        if record is None:
            return
        if record.type == "turn_context":
            context = decode_json(record.payload, CodexTurnContext)
            self._model = context.model if context else ""
        elif found := _message(record.type, record.payload):
            by_model = found.kind not in (MessageKind.PROMPT, MessageKind.RESULT, MessageKind.NOTE)
            yield replace(found, at=record.timestamp, model=self._model if by_model else "")


def _message(kind: str, payload: Raw) -> Message | None:
    if kind == "token_usage_record":
        used = decode_json(payload, CodexUsage)
        if used is None:
            return None
        return Message(kind=MessageKind.USAGE, answer=used.response_id, used=used.usage.usage())
    fields = decode_json(payload, dict[str, object]) or {}
    if kind == "event_msg":
        return _from_event(fields)
    return _from_item(fields) if kind == "response_item" else None


def _from_event(event: Mapping[str, object]) -> Message | None:
    """Return a person's prompt, or why a turn failed or was aborted; None for other events.

    Prompts are taken from events, because `response_item` records also have prompts that the
    program added.
    """
    match event:
        case {"type": "item_completed", "item": {"type": "UserMessage", "content": content}}:
            return Message(kind=MessageKind.PROMPT, text="\n".join(text_parts(content)))
        case {"type": "task_complete", "error": {"message": str(text)}}:
            return Message(kind=MessageKind.NOTE, text=text)
        case {"type": "turn_aborted"}:
            return Message(kind=MessageKind.NOTE, text=f"turn aborted: {event.get('reason', '')}")
    return None


def _from_item(item: Mapping[str, object]) -> Message | None:
    call, kind = str(item.get("call_id", "")), str(item.get("type"))
    match item:
        case {"type": "message", "role": "assistant", "content": content}:
            return Message(kind=MessageKind.ANSWER, text="\n".join(text_parts(content)))
        case {"type": "reasoning", "summary": list(summary)} if summary:
            return Message(kind=MessageKind.THOUGHT, text="\n".join(text_parts(summary)))
        case {"output": output} if kind.endswith("_call_output"):
            return Message(kind=MessageKind.RESULT, call=call, text=as_text(output))
    if not kind.endswith("_call"):
        return None
    arguments = item.get("arguments") or item.get("input") or item.get("action") or {}
    tool = str(item.get("name", kind))
    return Message(kind=MessageKind.CALL, call=call, tool=tool, text=as_text(arguments))
