"""Small files that programs rewrite as a whole: understood anew only where they were."""

import os
import time
from pathlib import Path
from typing import Generic, TypeVar

from runtimes.agents.shared.files import read_text, understood

_T = TypeVar("_T")
#: File systems tell the time in steps of some milliseconds: within one a file may change unseen.
_STEP_NS = 1_000_000_000


class WatchedFile(Generic[_T]):
    """One value in one file."""

    def __init__(self, path: Path, kind: type[_T]) -> None:
        self._path = path
        self._name = str(path)
        self._kind = kind
        self._state: tuple[int, int, int] | None = None
        self._value: _T | None = None
        self.fresh = False  #: Whether the file had changed at the last `read`.

    def read(self) -> _T | None:
        """What the file says; None where it is not there, or says something else."""
        try:
            status = os.lstat(self._name)
        except OSError:
            self._state, self._value = None, None
            return None
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        self.fresh = state != self._state
        if self.fresh:
            self._value = understood(read_text(self._path), self._kind)
            self._state = state if time.time_ns() - status.st_mtime_ns > _STEP_NS else None
        return self._value
