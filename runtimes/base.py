"""What every runtime offers: start, look at all, send, stop. Runtimes know nothing of agents."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NewType, Protocol

from msgspec import Struct

from lifecycle.model.facts import Exit
from lifecycle.model.status import Probe

#: A runtime's opaque name for a running thing; the same for the same `Launch.name`, so it can be
#: worked out again after a crash.
Handle = NewType("Handle", str)


class Launch(Struct, frozen=True, kw_only=True):
    """One run of a program, ready to start."""

    name: str  #: Unique for session and run, `[a-z0-9_-]`: `widgets-12_r1`.
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]  #: All of it: nothing is inherited but PATH, LANG, TERM of the server.
    dir: Path  #: The run's own folder, 0700: supervisor files and `output.log` go there.


class Seen(Struct, frozen=True, kw_only=True):
    """What one look saw of one handle."""

    runtime: Probe
    program: Probe
    exit: Exit | None = None  #: The supervisor's record: proof.
    output_at: datetime | None = None  #: When the program last printed.


class Send(Struct, frozen=True, kw_only=True):
    """Text for a running program's input."""

    text: str  #: Control characters but newline and tab are stripped before it goes out.
    key: str  #: A second send with the same key to the same handle does nothing.
    submit_seconds: float = 0.0  #: The pause between the paste and Enter.


class Press(Struct, frozen=True, kw_only=True):
    """Keys for a running program's terminal."""

    keys: tuple[str, ...]  #: Letters, digits, and names such as `Enter`.
    key: str  #: As of a `Send`.


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Text without control characters but newline and tab: ESC[201~ would end a paste."""
    return _CONTROLS.sub("", text)


class RuntimeFailure(Exception):
    """A runtime could not do what was asked; the message names what, where and the remedy."""


class Unavailable(RuntimeFailure):
    """The runtime itself does not answer (tmux missing, engine down): nothing is known."""


class Gone(RuntimeFailure):
    """The handle's program does not run any more."""


class Runtime(Protocol):
    """A place where programs live. Every method may be called from any thread."""

    def handle(self, name: str) -> Handle:
        """The handle a launch of this name has, running or not."""
        ...

    def start(self, launch: Launch) -> Handle:
        """Start a program, unless a launch of this name was started before: then do nothing.

        A run's folder remembers that it was started, also after `stop`: a name is used once.
        Raises `RuntimeFailure` where it cannot be started.
        """
        ...

    def look(self) -> Mapping[Handle, Seen]:
        """Everything that lives or died here, in one look whatever the number.

        A handle that is missing is gone. Raises `Unavailable` where the look itself failed.
        """
        ...

    def send(self, handle: Handle, send: Send) -> None:
        """Paste text into the program's terminal and submit it, once for a key.

        Returns once Enter went out too, so a next send does not run into this one. Raises `Gone`
        where the program does not run, and `ValueError` where there is nothing to send.
        """
        ...

    def press(self, handle: Handle, press: Press) -> None:
        """Press keys at the program's terminal, once for a key. Raises `Gone` as `send` does."""
        ...

    def screens(self, handles: Iterable[Handle]) -> Mapping[Handle, str]:
        """What the terminals show now, in one call."""
        ...

    def stop(self, handle: Handle, grace_seconds: float = 5.0) -> None:
        """End the program and every process it left, then forget the handle.

        It gets `grace_seconds` after a polite signal. Stopping what is gone does nothing.
        """
        ...

    def attach(self, handle: Handle) -> tuple[str, ...]:
        """The command line with which a person looks at the program's terminal."""
        ...


class Options(Struct, frozen=True, kw_only=True):
    """What a runtime is made with."""

    data: Path  #: A folder of its own, 0700.
    path: str = "/usr/local/bin:/usr/bin:/bin"  #: PATH of the programs.
    lang: str = "C.UTF-8"
