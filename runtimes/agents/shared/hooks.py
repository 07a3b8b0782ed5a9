"""Hooks: what a program tells of itself, kept line by line in the run's spool."""

from shlex import quote
from typing import Generic, TypeVar

from msgspec import Struct

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Seconds, last_line, understood

_P = TypeVar("_P")


class Hook(Struct, Generic[_P], frozen=True):
    """One line of the spool. A hook of an earlier run may be late: see `run`."""

    run: int
    hook: _P  #: What the program gave its hook.
    at: Seconds = 0.0  #: When it was called, in whole seconds.


def last(files: RunFiles, event: str, kind: type[Hook[_P]]) -> Hook[_P] | None:
    """The last line of the run's spool about an event; None: there is none."""
    # Within text that was given to a hook, the quotes would be escaped.
    said = understood(last_line(files.spool, f'"{event}"'), kind)
    return said if said is not None and said.run == files.run else None


def spooling(files: RunFiles) -> str:
    """A shell command that appends its input to the run's spool; it cannot fail the agent."""
    line = f'{{"run":{files.run},"at":%s,"hook":%s}}\\n'
    # One `printf`, so that lines of hooks that run at once do not mix.
    return harmless(f'p=$(cat); printf \'{line}\' "$(date +%s)" "$p" >> {quote(str(files.spool))}')


def harmless(command: str) -> str:
    """The command, neither heard nor failing."""
    return f"{{ {command}; }} 2>/dev/null; exit 0"
