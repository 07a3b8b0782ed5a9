"""What a program printed, for people: the last lines, going on while it runs."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from lifecycle.model.text import settled

_POLL_SECONDS = 0.2


def tail(path: Path, lines: int, redact: Callable[[str], str], *, follow: bool, ansi: bool) -> None:
    """Print the last lines of a file; with `follow`, every further one until interrupted.

    `redact` takes secrets out of each; with `ansi`, escape sequences stay in.
    """
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in deque(file, maxlen=lines):
            _print(line, redact, ansi)
        if follow:
            try:
                for line in _further(file):
                    _print(line, redact, ansi)
            except KeyboardInterrupt:
                return


def _further(file: IO[str]) -> Iterator[str]:
    """Whole lines as they come: half an escape sequence could not be recognised."""
    begun = ""
    while True:
        begun += file.readline()
        if begun.endswith("\n"):
            yield begun
            begun = ""
        else:
            time.sleep(_POLL_SECONDS)


def _print(line: str, redact: Callable[[str], str], ansi: bool) -> None:
    sys.stdout.write(redact(line if ansi else settled(line.rstrip("\n")) + "\n"))
    sys.stdout.flush()
