"""Hooks: commands that a program calls, which append its JSON payloads to the run's spool file."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from shlex import quote

from msgspec import Struct

from lifecycle.model.times import from_seconds
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import (
    LineTail,
    Seconds,
    Time,
    TimedRecord,
    decode_json,
    decode_lines,
    last_line_with,
)


class HookPayload(TimedRecord, frozen=True):
    """The payload of a hook. All programs with hooks use the same names of fields."""

    hook_event_name: str
    session_id: str = ""
    turn_id: str = ""
    timestamp: Time | None = None
    tool_name: str = ""
    tool_input: object = None
    tool_use_id: str = ""
    notification_type: str = ""
    last_assistant_message: str = ""
    error: str = ""

    @property
    def arguments(self) -> Mapping[str, object]:
        """The arguments of the tool call by name; empty if there are none."""
        return self.tool_input if isinstance(self.tool_input, dict) else {}


class HookCall(Struct, frozen=True):
    """One line of the spool. Check its `run`: a hook of an earlier run may be late."""

    run: int
    hook: HookPayload
    at: Seconds = 0.0  #: Time of the call, in whole seconds since 1970.

    @property
    def time(self) -> datetime:
        """The time in the payload, or the time of the call if the payload has none."""
        return self.hook.timestamp or from_seconds(self.at)


def last_call(files: RunFiles, event: str) -> HookCall | None:
    """Return the last call for an event, such as `PreToolUse`.

    Returns None if there is none, or if the last one is another run's.
    """
    # Quotes within the payload's strings are escaped, so they never match.
    call = decode_json(last_line_with(files.spool, f'"{event}"'), HookCall)
    return call if call is not None and call.run == files.run else None


def spool_command(files: RunFiles) -> str:
    """Return a shell command that appends its input to the run's spool as a `HookCall`.

    The command always succeeds.
    """
    line = f'{{"run":{files.run},"at":%s,"hook":%s}}\\n'
    # A single `printf`, so that the lines of concurrent hooks do not interleave.
    return silenced(f'p=$(cat); printf \'{line}\' "$(date +%s)" "$p" >> {quote(str(files.spool))}')


def silenced(command: str) -> str:
    """Return a shell command without error output that always exits with 0."""
    return f"{{ {command}; }} 2>/dev/null; exit 0"


class HookTail:
    """The hook calls of one run, each once and in order."""

    def __init__(self, files: RunFiles) -> None:
        self._run = files.run
        self._spool = LineTail(files.spool)

    def new(self) -> Iterator[HookCall]:
        """Return the run's hook calls since the last `new`; those of other runs are left out."""
        calls = decode_lines(self._spool.to_end(), HookCall)
        return (call for call in calls if call.run == self._run)
