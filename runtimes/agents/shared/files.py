"""Reads files in folders that agents can write to.

An agent may replace a file by a link or a named pipe, or write anything into it, even a hole of
terabytes. These functions never follow a link, wait at a pipe, read without a bound or raise on
unexpected content.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from heapq import nlargest
from itertools import chain
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct

from lifecycle.model.times import is_plausible
from runtimes.files import open_regular, read_text

_T = TypeVar("_T")
Time = Annotated[datetime, Meta(tz=True)]  #: Used in a `TimedRecord`.
TEXT = 2000  #: Questions, errors and summaries are cut to this number of characters.
# Bounds of what programs report: every accepted value fits into a column of the store.
Count = Annotated[int, Meta(ge=0, le=10**11)]
Dollars = Annotated[float, Meta(ge=0, le=1e6)]
Seconds = Annotated[float, Meta(ge=0, le=4e9)]  #: Since 1970.

#: The most bytes of a file that one search reads, and the size of its steps.
_LOOK_BYTES, _STEP_BYTES = 64 * 1024 * 1024, 4 * 1024 * 1024
#: About the most bytes of new lines that one call reads; the next call reads on from there.
NEW_BYTES = 128 * 1024 * 1024
#: File timestamps have a resolution of some milliseconds: two changes within one step look alike.
_TIMESTAMP_STEP_NS = 1_000_000_000


_Key = TypeVar("_Key")


class Newest(dict[_Key, _T]):
    """A dictionary that forgets its oldest entry when a new one exceeds `most`.

    Readers use it for entries whose end an agent may never report, such as running tool calls.
    """

    def __init__(self, most: int = 100) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: _Key, value: _T) -> None:
        """Set an entry. If its key is known, the entry keeps its age."""
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]


def digest(*parts: object) -> str:
    """Return a hash of JSON values, to compare them without keeping them."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def newest_files(paths: Iterable[Path], most: int) -> list[Path]:
    """Return the `most` files that changed last, the newest first."""
    return nlargest(most, paths, key=_changed_at)


def _changed_at(path: Path) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


class TimedRecord(Struct, frozen=True):
    """A record with a `timestamp`; decoding one with an implausible time fails."""

    def __post_init__(self) -> None:
        at: datetime | None = getattr(self, "timestamp", None)
        if at is not None and not is_plausible(at):
            raise ValueError(f"the timestamp {at} is not plausible")


def contains(path: Path, text: str) -> bool:
    """Whether the last 64 MiB of a file contain a text; False if the file cannot be read."""
    wanted = text.encode()
    return any(wanted in part for _, part in _parts_from_end(path, len(wanted)))


def last_line_with(path: Path, text: str) -> str:
    """Return a file's last complete line that contains a text; empty if there is none.

    A line of more than 4 MiB may be missed. Only the file's last 64 MiB are searched.
    """
    wanted = text.encode()
    for start, part in _parts_from_end(path, _STEP_BYTES):
        if (place := part.rfind(wanted, 0, part.rfind(b"\n") + 1)) >= 0:
            begin = part.rfind(b"\n", 0, place) + 1
            if not begin and start:
                continue  # The line begins in the part before, which has all of it.
            return part[begin : part.find(b"\n", place)].decode(errors="replace")
    return ""


def _parts_from_end(path: Path, overlap: int) -> Iterator[tuple[int, bytes]]:
    """Yield the last 64 MiB of a file in parts, each with its offset, the last one first.

    Each part ends with the first `overlap` bytes of the part that follows it in the file. An
    unreadable file has no parts.
    """
    with suppress(OSError), open_regular(path) as file:
        end = size = os.fstat(file.fileno()).st_size
        while end > max(0, size - _LOOK_BYTES):
            start = max(0, end - _STEP_BYTES)
            yield start, os.pread(file.fileno(), end - start + overlap, start)
            end = start


def decode_json(text: str | msgspec.Raw, kind: type[_T]) -> _T | None:
    """Decode one JSON value. Return None if it is malformed or of another type than `kind`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def decode_lines(lines: Iterable[str], kind: type[_T]) -> Iterator[_T]:
    """Decode lines of JSON. Lines that are malformed or of another type are left out."""
    values = (decode_json(line, kind) for line in lines)
    return (value for value in values if value is not None)


def decode_rows(rows: Iterable[object], kind: type[_T]) -> Iterator[_T]:
    """Yield the rows of a database that have this type; in SQLite, a column may hold any type."""
    for row in rows:
        with suppress(msgspec.ValidationError):
            yield msgspec.convert(row, kind)


class WatchedFile(Generic[_T]):
    """A small JSON file that its program replaces as a whole.

    It is decoded only after a change; within a second of a change, each `read` decodes it.
    """

    def __init__(self, path: Path, kind: type[_T]) -> None:
        self._path = path
        self._name = str(path)
        self._kind = kind
        self._state: tuple[int, int, int] | None = None
        self._value: _T | None = None
        #: Whether the last `read` that found the file decoded it, because it may have changed.
        self.changed = False

    def read(self) -> _T | None:
        """Return the file's value; None if it is missing, malformed or of another type."""
        try:
            status = os.lstat(self._name)
        except OSError:
            self._state, self._value = None, None
            return None
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        self.changed = state != self._state
        if self.changed:
            self._value = decode_json(read_text(self._path), self._kind)
            recent = time.time_ns() - status.st_mtime_ns <= _TIMESTAMP_STEP_NS
            self._state = None if recent else state
        return self._value


class LineTail:
    """The complete lines of a growing file, each returned once and in order.

    A truncated or replaced file is read from its beginning. A line longer than `most` bytes may
    be skipped. An unreadable file has no lines.
    """

    def __init__(self, path: Path, most: int = 4 * 1024 * 1024) -> None:
        self.path = path
        self._name = str(path)
        self._most = most
        #: The modification time at the last `new`, in seconds since 1970; None if the file was
        #: missing.
        self.modified: float | None = None
        self.offset = 0  #: How many bytes of the present file were read.
        self.taken = 0  #: How many bytes were read, those before a restart included.
        self.restarts = 0  #: How often reading began at the file's beginning.
        self._inode = 0
        self._size = 0
        #: The length of the line that the last `new` skipped before the lines it returned; 0 if it
        #: skipped none.
        self.skipped_bytes = 0
        self._partial = b""
        self._skipping = 0  #: Bytes skipped so far of a line that is too long.

    def new(self) -> list[str]:
        """Return the lines completed since the last call, without line ends.

        Reads at most `most` bytes; the next call reads the rest of a longer file.
        """
        self.skipped_bytes = 0
        try:
            status = os.lstat(self._name)
        except OSError:
            self.modified = None
            return []
        self.modified = status.st_mtime
        if (status.st_ino, status.st_size) == (self._inode, self.offset):
            return []
        with suppress(OSError), open_regular(self._name) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self.offset:
                self._inode, self.offset = status.st_ino, 0
                self.restarts += 1
                self._partial, self._skipping = b"", 0
            self._size = status.st_size
            file.seek(self.offset)
            data = file.read(self._most)
            self.offset += len(data)
            self.taken += len(data)
            return self._complete(data)
        return []

    def to_end(self, most: int = NEW_BYTES) -> Iterator[str]:
        """Return the lines completed since the last call, up to the file's present end.

        Reads about `most` bytes at most, by default 128 MiB: the first block at once, the others
        while the iterator is consumed. The next call reads the rest of a longer file.
        """
        lines = self.new()
        more = self._more(min(self._size, self.offset + most))
        return chain(lines, chain.from_iterable(more))

    def _more(self, end: int) -> Iterator[list[str]]:
        offset = -1
        while offset < self.offset < end:
            offset = self.offset
            yield self.new()

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


def new_lines(tails: Iterable[LineTail]) -> Iterator[Iterator[str]]:
    """Yield each file's new lines, about 128 MiB at most in total; the next call yields the rest.

    Consume the lines of one file before those of the next.
    """
    left = NEW_BYTES
    for tail in tails:
        before = tail.taken
        yield tail.to_end(left)
        left -= tail.taken - before
        if left <= 0:
            return
