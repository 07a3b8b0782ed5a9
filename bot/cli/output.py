"""What a program printed, for people: the last lines, going on while it runs."""

import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_POLL_SECONDS = 0.2

# In this order: control sequences, strings to the terminal (titles, the clipboard), other escapes,
# then whatever control character is left.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]",
)


def plain(text: str) -> str:
    """Text that cannot move the cursor, change the terminal, or hide itself."""
    return _ESCAPES.sub("", text)


def tail(path: Path, lines: int, *, follow: bool, ansi: bool) -> None:
    """Print the last lines of a file; with `follow`, every further one until interrupted."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in deque(file, maxlen=lines):
            _print(line, ansi)
        if follow:
            try:
                for line in _further(file):
                    _print(line, ansi)
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


def _print(line: str, ansi: bool) -> None:
    sys.stdout.write(line if ansi else plain(line.rstrip("\n")) + "\n")
    sys.stdout.flush()
