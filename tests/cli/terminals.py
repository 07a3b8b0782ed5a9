"""The command line at a real terminal, which it controls."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

from tests.cli.results import MERGEWRIGHT
from tests.world.waiting import PATIENCE


class Terminal:
    """A terminal in which a person answers questions."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._read = 0  #: The length of what the person has read.
        self.shown = ""

    def reads(self, text: str) -> None:
        """Wait until a text follows what was read before."""
        while (place := self.shown.find(text, self._read)) < 0:
            assert select([self._handle], [], [], PATIENCE)[0], f"{text!r} follows:\n{self.shown}"
            self.shown += os.read(self._handle, 10_000).decode()
        self._read = place + len(text)

    def types(self, line: str) -> None:
        os.write(self._handle, f"{line}\n".encode())


@contextmanager
def at_a_terminal(*words: str, folder: Path, code: int = 0) -> Iterator[Terminal]:
    """Run a command, which must end with an exit code."""
    handle, inner = os.openpty()
    try:
        with subprocess.Popen(
            ["setsid", "--ctty", "--wait", MERGEWRIGHT, *words],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=folder,
            env={**os.environ, "TERM": "xterm"},
        ) as running:
            os.close(inner)
            try:
                yield Terminal(handle)
            except BaseException:
                running.kill()
                raise
        assert running.returncode == code
    finally:
        os.close(handle)
