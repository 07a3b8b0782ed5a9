"""Files that an agent may have replaced: nothing here follows a link or waits at a named pipe."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

#: Errors that say nothing about a file: the machine lacks descriptors or memory, or its disk fails.
_UNRELATED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
_FILE_BYTES = 4 * 1024 * 1024


@contextmanager
def open_regular(path: Path | str) -> Iterator[BinaryIO]:
    """Open a regular file for reading. Raises `OSError` for links, pipes and missing files."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        yield file


def is_about_file(error: OSError) -> bool:
    """Whether an error of opening or reading a file comes from the file, not from the machine."""
    return error.errno not in _UNRELATED


def read_text(path: Path) -> str:
    """Read at most 4 MiB of a file as stripped text; empty if the file cannot be read.

    Raises `OSError` where the machine, not the file, is the reason.
    """
    try:
        with open_regular(path) as file:
            return file.read(_FILE_BYTES).decode(errors="replace").strip()
    except OSError as error:
        if is_about_file(error):
            return ""
        raise


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 atomically, and create its folder with mode 0700."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
