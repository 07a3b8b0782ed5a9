"""The files of Codex: rollouts and hook payloads.

The program appends a conversation to its rollout (`sessions/YYYY/MM/DD/rollout-*-ID.jsonl`), which
it creates at the first prompt. The rollout is the source of turns, words and tokens. Permission
requests and the conversation's id are known from hooks only.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Raw, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Seconds


class CodexHook(Struct, frozen=True):
    """A hook's payload: https://developers.openai.com/codex/hooks."""

    session_id: str
    hook_event_name: str
    turn_id: str = ""
    tool_name: str = ""
    tool_input: object = None
    tool_use_id: str = ""


class CodexRecord(Struct, frozen=True):
    """One line of a rollout."""

    timestamp: Annotated[datetime, Meta(tz=True)]
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
        return next(iter(info), "") if isinstance(info, dict) else str(info)

    @property
    def code(self) -> object:
        """The HTTP status of the provider's response; None if there was none."""
        info = self.codex_error_info
        more = info.get(self.word) if isinstance(info, dict) else None
        return more.get("http_status_code") if isinstance(more, dict) else None


class CodexTokens(Struct, frozen=True):
    """Tokens of one response: cached ones are part of the input, reasoning of the output."""

    input_tokens: Count = 0
    cached_input_tokens: Count = 0
    cache_write_input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_output_tokens: Count = 0

    def usage(self) -> Usage:
        """Return them as usage, without a cost: the program knows no prices."""
        cached, written = self.cached_input_tokens, self.cache_write_input_tokens
        return Usage(
            input=max(0, self.input_tokens - cached - written),
            output=max(0, self.output_tokens - self.reasoning_output_tokens),
            cache_read=cached,
            cache_write=written,
            reasoning=self.reasoning_output_tokens,
        )


class CodexTurnContext(Struct, frozen=True):
    """What a turn begins with: payload of a `turn_context`."""

    model: str = ""


class CodexUsage(Struct, frozen=True):
    """The usage of one response: payload of a `token_usage_record`."""

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


class CodexEvent(Struct, frozen=True):
    """A turn began or ended, or limits were reported: payload of an `event_msg`."""

    type: str
    turn_id: str = ""
    last_agent_message: str | None = None
    error: CodexError | None = None
    rate_limits: CodexLimits | None = None


class CodexItem(Struct, frozen=True):
    """A tool call or its output, among others: payload of a `response_item`."""

    type: str
    call_id: str = ""
    name: str = ""
    arguments: object = None


def folder(files: RunFiles) -> Path:
    """The program's folder, its CODEX_HOME."""
    return files.home / ".codex"


def rollout(files: RunFiles, native: str) -> Path | None:
    """The rollout of a conversation; None if there is none yet."""
    found = (folder(files) / "sessions").glob(f"*/*/*/rollout-*-{native}.jsonl") if native else ()
    return next(iter(found), None)
