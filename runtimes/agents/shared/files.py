"""What is read of programs and written for them: agents may have written it, or put links there."""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, BinaryIO, TypeVar

import msgspec
from msgspec import Meta

_T = TypeVar("_T")
_FILE_BYTES = 4 * 1024 * 1024
TEXT = 2000  #: No more characters of a question, an error or a summary are kept.
# What programs count: nothing that is read of it is too large for the database.
Count = Annotated[int, Meta(ge=0, le=10**11)]
Dollars = Annotated[float, Meta(ge=0, le=1e6)]
Seconds = Annotated[float, Meta(ge=0, le=4e9)]  #: Since 1970.


def last_line(path: Path, text: str) -> str:
    """The last whole line of a file that has this text somewhere; empty: there is none."""
    with (
        suppress(OSError, ValueError),  # An empty file cannot be mapped.
        opened(path) as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        end = content.rfind(b"\n") + 1
        place = content.rfind(text.encode(), 0, end)
        begin = content.rfind(b"\n", 0, max(place, 0)) + 1
        line = content[begin : content.find(b"\n", begin)] if place >= 0 else b""
        return line.decode(errors="replace")
    return ""


def read_text(path: Path) -> str:
    """A file's text; what cannot be read is empty."""
    with suppress(OSError), opened(path) as file:
        return file.read(_FILE_BYTES).decode(errors="replace").strip()
    return ""


@contextmanager
def opened(path: Path | str) -> Iterator[BinaryIO]:
    """A regular file for reading. Agents may have put links and pipes in its place: `OSError`."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        yield file


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user reads, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def holds(path: Path, key: str) -> bool:
    """Whether a file has this text anywhere."""
    with (
        suppress(OSError, ValueError),  # An empty file cannot be mapped.
        opened(path) as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(key.encode()) >= 0
    return False


def understood(text: str | msgspec.Raw, kind: type[_T]) -> _T | None:
    """One JSON value of a kind; None where it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
