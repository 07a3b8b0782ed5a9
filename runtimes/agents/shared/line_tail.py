"""Reads files that programs append to, each line once."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from runtimes.files import open_regular


class LineTail:
    """The complete lines of a growing file, each returned once and in order.

    A truncated or replaced file is read from its beginning. A line longer than `most` bytes may
    be skipped. An unreadable file has no lines.
    """

    def __init__(self, path: Path, most: int = 4 * 1024 * 1024) -> None:
        self._path = str(path)
        self._most = most
        #: Modification time at the last `new`, in seconds since 1970; None: the file is missing.
        self.modified: float | None = None
        self.offset = 0  #: How many bytes were read.
        self.restarts = 0  #: How often reading began at the file's beginning.
        self._inode = 0
        self._size = 0
        #: Length of the line that the last `new` skipped before those it returned; 0: none.
        self.skipped_bytes = 0
        self._partial = b""
        self._skipping = 0  #: Bytes skipped so far of a line that is too long.

    def new(self) -> list[str]:
        """Return the lines completed since the last call, without line ends.

        Reads at most `most` bytes: the next call continues in a longer file.
        """
        self.skipped_bytes = 0
        try:
            status = os.lstat(self._path)
        except OSError:
            self.modified = None
            return []
        self.modified = status.st_mtime
        if (status.st_ino, status.st_size) == (self._inode, self.offset):
            return []
        with suppress(OSError), open_regular(self._path) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self.offset:
                self._inode, self.offset = status.st_ino, 0
                self.restarts += 1
                self._partial, self._skipping = b"", 0
            self._size = status.st_size
            file.seek(self.offset)
            data = file.read(self._most)
            self.offset += len(data)
            return self._complete(data)
        return []

    def to_end(self) -> Iterator[str]:
        """Return the lines completed since the last call, up to the file's present end."""
        return chain(self.new(), self._more(self._size))

    def _more(self, end: int) -> Iterator[str]:
        offset = -1
        while offset < self.offset < end:
            offset = self.offset
            yield from self.new()

    def _complete(self, data: bytes) -> list[str]:
        lines, end, self._partial = (self._partial + data).rpartition(b"\n")
        if end and self._skipping:
            rest, _, lines = (lines + end).partition(b"\n")
            self.skipped_bytes, self._skipping = self._skipping + len(rest), 0
            lines, end, _ = lines.rpartition(b"\n")
        if len(self._partial) > self._most:
            self._skipping += len(self._partial)
            self._partial = b""
        # Decoded as one block: decoding line by line takes as long as parsing the JSON.
        return lines.decode(errors="replace").split("\n") if end else []
