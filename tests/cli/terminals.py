"""The command line at a real terminal, and the terminals of agents."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

from runtimes.base import Launch, Options
from runtimes.tmux import Tmux
from tests.cli.results import MERGEWRIGHT
from tests.runtimes.stages import end_terminals
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
    """Run mergewright at a terminal; after the block, check that its exit code is `code`."""
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


@contextmanager
def agents_terminals(data: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that starts `cat` in place of a run's agent, given the name of the run.

    Each `cat` is ended at the end of the `with` block.
    """
    runtime = Tmux(Options(data=data))

    def run(name: str) -> None:
        folder = data / "runs" / name
        folder.mkdir(parents=True, mode=0o700)
        runtime.start(Launch(name=name, argv=("cat",), cwd=folder, env={}, dir=folder))

    try:
        yield run
    finally:
        end_terminals(data)
