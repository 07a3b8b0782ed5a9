"""Hooks: commands that a program calls, which append its JSON payloads to the run's spool file."""

from collections.abc import Iterator
from shlex import quote
from typing import Generic, TypeVar

from msgspec import Struct

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Seconds, decode_json, decode_lines, last_line_with
from runtimes.agents.shared.line_tail import LineTail

_P = TypeVar("_P")


class HookCall(Struct, Generic[_P], frozen=True):
    """One line of the spool. A hook of an earlier run may be late: compare `run`."""

    run: int
    hook: _P  #: The payload.
    at: Seconds = 0.0  #: Time of the call, in whole seconds since 1970.


def last_call(files: RunFiles, event: str, kind: type[HookCall[_P]]) -> HookCall[_P] | None:
    """Return the run's last call for an event, such as `PreToolUse`; None if there is none."""
    # Quotes within the payload's strings are escaped, so they never match.
    call = decode_json(last_line_with(files.spool, f'"{event}"'), kind)
    return call if call is not None and call.run == files.run else None


def spool_command(files: RunFiles) -> str:
    """Return a shell command that appends its input to the run's spool and always succeeds."""
    line = f'{{"run":{files.run},"at":%s,"hook":%s}}\\n'
    # A single `printf`, so that the lines of concurrent hooks do not interleave.
    return silenced(f'p=$(cat); printf \'{line}\' "$(date +%s)" "$p" >> {quote(str(files.spool))}')


def silenced(command: str) -> str:
    """Return a shell command without error output that always exits with 0."""
    return f"{{ {command}; }} 2>/dev/null; exit 0"


class HookTail(Generic[_P]):
    """The hook calls of one run, each once and in order."""

    def __init__(self, files: RunFiles, kind: type[HookCall[_P]]) -> None:
        self._run = files.run
        self._kind = kind
        self._spool = LineTail(files.spool)

    def new(self) -> Iterator[HookCall[_P]]:
        """Yield the calls since the last time; those of other runs are left out."""
        for call in decode_lines(self._spool.to_end(), self._kind):
            if call.run == self._run:
                yield call
