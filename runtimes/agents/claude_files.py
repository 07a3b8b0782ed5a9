"""Where Claude Code keeps what it says of itself, and what of it is used.

It keeps a status file while it lives (`sessions/PID.json`: `idle`, `busy` or `waiting`), appends
everything said and done to a transcript (`projects/*/ID.jsonl`), calls hooks, which append their
payloads to the run's spool, and a status line, whose first and last input are kept in the run's
folder. Activity comes from the first, words and tokens from the next two, costs from the last.
"""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from runtimes.agents.base import RunFiles, opened

_T = TypeVar("_T")
_FILE_BYTES = 4 * 1024 * 1024
_Count = Annotated[int, Meta(ge=0)]


class Status(Struct, frozen=True, rename="camel"):
    """`sessions/PID.json`."""

    pid: int
    session_id: str
    proc_start: str
    status: str = ""
    waiting_for: str = ""
    status_updated_at: Annotated[float, Meta(ge=0, le=4e12)] = 0.0  #: Milliseconds.


class Payload(Struct, frozen=True):
    """What a hook is given."""

    session_id: str
    hook_event_name: str
    tool_name: str = ""
    tool_input: dict[str, object] = {}
    last_assistant_message: str = ""
    error: str = ""


class Hook(Struct, frozen=True):
    """One line of the spool."""

    run: int
    hook: Payload


class Tokens(Struct, frozen=True):
    """What one answer of the model used; it is repeated with every part of the answer."""

    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0


class Message(Struct, frozen=True):
    """What was said, by whom and at what expense."""

    id: str = ""
    content: str | list[dict[str, object]] = ""
    usage: Tokens | None = None


class Record(Struct, frozen=True, rename="camel"):
    """One line of the transcript."""

    type: str
    timestamp: Annotated[datetime, Meta(tz=True)] | None = None
    message: Message | None = None
    is_api_error_message: bool = False
    error: object = ""  #: A word beside an error message, e.g. `rate_limit`.


class Cost(Struct, frozen=True):
    """What the whole conversation has cost, by the program's own prices."""

    total_cost_usd: Annotated[float, Meta(ge=0)] = 0.0


class Window(Struct, frozen=True):
    """One usage limit of a subscription."""

    used_percentage: float
    resets_at: Annotated[float, Meta(ge=0, le=4e9)]  #: Seconds.


class Line(Struct, frozen=True):
    """What the status line is given."""

    cost: Cost = Cost()
    rate_limits: dict[str, Window] = {}


def folder(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".claude"


def first_line(files: RunFiles) -> Path:
    """What the status line was given first in this run: before anything was spent."""
    return files.dir / "claude-line.first"


def last_line(files: RunFiles) -> Path:
    """What the status line was given last."""
    return files.dir / "claude-line.last"


def conversation(files: RunFiles) -> Path:
    """The name of the run's conversation, written down before its program starts."""
    return files.dir / "conversation"


def transcript(files: RunFiles, native: str) -> Path | None:
    """The transcript of a conversation, where there is one."""
    found = (folder(files) / "projects").glob(f"*/{native}.jsonl") if native else ()
    return next(iter(found), None)


def began(files: RunFiles) -> datetime:
    """When the run was prepared: what the transcript says of earlier runs is not about it."""
    try:
        return datetime.fromtimestamp(conversation(files).stat().st_mtime, UTC)
    except OSError:
        return datetime.min.replace(tzinfo=UTC)


def text(path: Path) -> str:
    """A file's text; what cannot be read is empty."""
    with suppress(OSError), opened(path) as file:
        return file.read(_FILE_BYTES).decode(errors="replace").strip()
    return ""


def understood(line: str, kind: type[_T]) -> _T | None:
    """One JSON value of a kind; None where it is something else."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def lives(status: Status) -> bool:
    """Whether the file is of a living process, and not left by one whose pid was given away."""
    words = text(Path(f"/proc/{status.pid}/stat"))
    return words.rpartition(")")[2].split()[19:20] == [status.proc_start]
