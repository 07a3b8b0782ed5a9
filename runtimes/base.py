"""The interface of a runtime, which starts, probes, messages and stops programs in terminals.

Runtimes know nothing of agents.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lifecycle.model.facts import Exit
from lifecycle.model.status import Probe

#: The name of a UNIX socket in a run's folder, through which the bot reaches the port of a program
#: in a sandbox.
PORT_SOCKET = "port.sock"


class Launch(Struct, frozen=True, kw_only=True):
    """One run of a program, ready to start."""

    name: str  #: Unique at the runtime, `[a-z0-9_-]`: `widgets-12_r1`.
    argv: tuple[str, ...]
    cwd: Path
    #: Complete: the runtime adds only `supervise.MARK`, and PATH, LANG and TERM if missing.
    env: Mapping[str, str]
    dir: Path  #: The run's own folder, 0700, for the supervisor's files and `output.log`.
    #: Whether `argv` is a sandbox. A sandbox reports the end of its program at the descriptor
    #: `supervise.REPORT` and is started with signals such as SIGTERM and SIGHUP ignored; when it
    #: ends, all processes in it end.
    contained: bool = False
    #: Files to open for a sandbox, by descriptor number: the path of each, or the content of a file
    #: to make in memory. Ignored unless `contained`, as is `listens`.
    opens: Mapping[int, Path | bytes] = {}
    #: Names of UNIX sockets to make in `dir`, by the number of the descriptor at which `argv`
    #: accepts connections. The bot connects to them by a path that no agent can replace.
    listens: Mapping[int, str] = {}
    #: Control groups (cgroups(7)) in which `argv` starts: the folders to make, each with the values
    #: to write into its files, by file name.
    groups: Mapping[str, Mapping[str, str]] = {}


class Seen(Struct, frozen=True, kw_only=True):
    """The result of probing one program."""

    runtime: Probe  #: The state of its terminal.
    program: Probe  #: The state of the program itself.
    exit: Exit | None = None  #: How the program ended; if None, nothing proves an end.
    output_at: datetime | None = None  #: When the program last printed; if None, unknown.


#: A key that people type: a character, or a key as tmux(1) names it, with or without `C-`
#: (Control), `M-` (Alt) or `S-` (Shift), such as `Enter`, `C-c` and `S-Up`.
KEY = re.compile(
    r"[^\x00-\x1f\x7f-\x9f]|C-[a-z@\[\\\]^_]|M-[!-~]"
    r"|([CMS]-){0,3}(Enter|Tab|BTab|Escape|BSpace|Space|Up|Down|Left|Right|Home|End|PageUp|PageDown"
    r"|IC|DC|F[1-9]|F1[0-2])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Remove control characters except newline and tab, because ESC[201~ would end a paste."""
    return _CONTROLS.sub("", text)


class RuntimeFailure(Exception):
    """A runtime failed; the message says what failed, where, and the remedy."""


class Unavailable(RuntimeFailure):
    """The runtime does not answer (tmux is missing, a server hangs). Programs may still run."""


class Gone(RuntimeFailure):
    """The program does not run any more."""


class Runtime(Protocol):
    """Runs programs in terminals. `Launch.name` addresses a program, also after the bot crashed.

    Every method may be called from any thread, and each one except `attach` may raise
    `Unavailable`.
    """

    def start(self, launch: Launch) -> None:
        """Start a program, unless one with this name was started before.

        The run's folder records the start and keeps the record after `stop`, so a name can be used
        only once. A program that cannot be executed counts as started, and ends at once. Raises
        `RuntimeFailure` if the runtime fails, and `OSError` if the run's folder cannot be written.
        """
        ...

    def look(self) -> Mapping[str, Seen]:
        """Probe every program that was started and not stopped, in one call.

        Returns the results by `Launch.name`; a program without a result does not run. Raises
        `Unavailable` if the probe itself failed.
        """
        ...

    def send(self, name: str, text: str, key: str, submit_seconds: float = 0.0) -> None:
        """Paste text into the program's terminal and press Enter `submit_seconds` later.

        Control characters other than newline and tab are removed. A second message with the same
        key to the same program is not sent. Returns after Enter was pressed, so that messages do
        not run into each other. Raises `Gone` if the program does not run, and `ValueError` if no
        text is left to send.
        """
        ...

    def press(self, name: str, keys: Sequence[str], key: str) -> None:
        """Press `keys` (letters, digits, names such as `Enter`) at the program's terminal.

        `key` is an idempotency key: once a call has pressed its keys, later calls for the same
        program with the same `key` press nothing. Raises `Gone` if the program does not run.
        """
        ...

    def type(self, name: str, keys: Sequence[str], paste: str = "") -> None:
        """Paste a text without submitting it, and press these keys (see `KEY`) after it.

        Unlike `press`, a repeated call types again. Control characters of the text other than
        newline and tab are removed. Raises `Gone` if the program does not run. If it raises
        `Unavailable`, the keys may have been typed all the same.
        """
        ...

    def screens(
        self, names: Iterable[str], *, coloured: bool = False, recent: bool = False
    ) -> Mapping[str, str]:
        """Return the visible text of these terminals by name, in one call; omit missing ones.

        Terminals that do not answer are omitted, too; `Unavailable` is raised only if there is such
        a terminal and no text at all. With `coloured`, escape sequences for colours and weights are
        kept (SGR of ECMA-48). With `recent`, a text may be up to 30 seconds old, and terminals that
        did not answer lately are omitted without an attempt, so do not use it to decide what to
        type.
        """
        ...

    def stop(self, name: str, grace_seconds: float = 5.0) -> None:
        """End the program and every process it left, then forget the program.

        SIGTERM comes first, SIGKILL after `grace_seconds`. Idempotent. Raises `RuntimeFailure` if a
        process cannot be ended.
        """
        ...

    def attach(self, name: str) -> tuple[str, ...]:
        """Return the command line with which a person opens the program's terminal."""
        ...


class Options(Struct, frozen=True, kw_only=True):
    """The settings of a runtime."""

    data: Path  #: The runtime's own folder, mode 0700.
    path: str = "/usr/local/bin:/usr/bin:/bin"  #: PATH of the programs.
