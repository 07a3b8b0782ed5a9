"""Files that programs append to: read line by line, each once."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from runtimes.agents.shared.files import opened


class LineTail:
    """The whole lines of a file that grows, each given once, in order.

    A file that was cut or replaced is read from its beginning. A line longer than `most` bytes may
    be left out. What cannot be read gives nothing.
    """

    def __init__(self, path: Path, most: int = 4 * 1024 * 1024) -> None:
        self._path = str(path)
        self._most = most
        #: When it was last written to, as seen by the last `new`; None: it is not there.
        self.written: float | None = None
        self.offset = 0  #: How far it was read.
        self.begun = 0  #: How often it was read from its beginning.
        self._inode = 0
        self._size = 0
        #: How many bytes the line had that the last `new` left out, before those it gave; 0: none.
        self.left_out = 0
        self._half = b""
        self._skipped = 0  #: Of a line too long, so far.

    def new(self) -> list[str]:
        """The lines that were finished since the last call, without their ends.

        At most `most` bytes are read: of a longer file the next call tells more.
        """
        self.left_out = 0
        try:
            status = os.lstat(self._path)
        except OSError:
            self.written = None
            return []
        self.written = status.st_mtime
        if (status.st_ino, status.st_size) == (self._inode, self.offset):
            return []
        with suppress(OSError), opened(self._path) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self.offset:
                self._inode, self.offset = status.st_ino, 0
                self.begun += 1
                self._half, self._skipped = b"", 0
            self._size = status.st_size
            file.seek(self.offset)
            data = file.read(self._most)
            self.offset += len(data)
            return self._whole(data)
        return []

    def to_end(self) -> Iterator[str]:
        """The same, but however much it is: on to where the file ends now."""
        return chain(self.new(), self._more(self._size))

    def _more(self, end: int) -> Iterator[str]:
        offset = -1
        while offset < self.offset < end:
            offset = self.offset
            yield from self.new()

    def _whole(self, data: bytes) -> list[str]:
        whole, end, self._half = (self._half + data).rpartition(b"\n")
        if end and self._skipped:
            rest, _, whole = (whole + end).partition(b"\n")
            self.left_out, self._skipped = self._skipped + len(rest), 0
            whole, end, _ = whole.rpartition(b"\n")
        if len(self._half) > self._most:
            self._skipped += len(self._half)
            self._half = b""
        # All at once: one by one takes as long as to understand them.
        return whole.decode(errors="replace").split("\n") if end else []
