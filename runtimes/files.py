"""Opens files that an agent may have replaced, without following links or waiting at named pipes.

Agents write to their checkout, repository, home and run folder, also while the bot reads. So
symbolic links anywhere in a path are refused: by openat2(2) in one step or, where it is missing,
part by part. Files must be regular, and must have no more hard links than expected, because a
further name may be that of another session's file. Reads are bounded. Such files are never mapped
into memory, because an agent that truncates a mapped file kills the process that reads it.

Paths are absolute, and the folder that holds all sessions has been resolved by the caller.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import BinaryIO

#: Errors that a file does not cause: the machine lacks descriptors or memory, or its disk fails.
_UNRELATED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
_FILE_BYTES = 4 * 1024 * 1024
_LISTED = 10_000  #: The most entries of folders that `matching` examines.

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = _READ | os.O_DIRECTORY
_OPENAT2 = 437  #: The number of the system call, the same on every architecture.
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08


class _How(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _Kernel:
    """Opens paths below the root folder without following a link."""

    def __init__(self) -> None:
        self._root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        try:  # The kernel may be older than 5.6, or a filter may forbid the call.
            os.close(self._openat2("", os.O_PATH))
            self.open = self._openat2
        except OSError:
            self.open = self._walk

    def _openat2(self, path: str, flags: int) -> int:
        how = _How(flags, 0, _BENEATH | _NO_LINKS | _NO_MAGIC_LINKS)
        name = os.fsencode(path.lstrip("/") or ".")
        found: int = self._call(_OPENAT2, self._root, name, ctypes.byref(how), ctypes.sizeof(how))
        if found < 0:
            number = ctypes.get_errno()
            words = "a symbolic link leads there" if number == errno.ELOOP else os.strerror(number)
            raise OSError(number, words, path)
        sys.audit("open", path, None, flags)  # As `os.open` does.
        return found

    def _walk(self, path: str, flags: int) -> int:
        """Do the same as `_openat2`, with one call for each part of the path."""
        *folders, last = path.lstrip("/").split("/")
        here = os.dup(self._root)
        try:
            for name in folders:
                inner = os.open(name, os.O_PATH | _FOLDER, dir_fd=here)
                os.close(here)
                here = inner
            return os.open(last or ".", flags | os.O_NOFOLLOW, dir_fd=here)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        finally:
            os.close(here)


_kernel = cache(_Kernel)


@contextmanager
def open_regular(path: Path | str, names: int = 1) -> Iterator[BinaryIO]:
    """Open a regular file for reading, without following links.

    Raises `OSError` for links, pipes, missing files and files with more hard links than `names`.
    """
    with os.fdopen(_kernel().open(os.fspath(path), _READ), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if status.st_nlink > names:
            raise OSError(f"{path} is a hard link")
        yield file


def is_about_file(error: OSError) -> bool:
    """Whether the file, not the machine (disk, memory), caused an error of opening or reading."""
    return error.errno not in _UNRELATED


def read_bytes(path: Path | str, most: int = _FILE_BYTES) -> bytes:
    """Read at most `most` bytes of a file. Raises `OSError`."""
    with open_regular(path) as file:
        return file.read(most)


def read_text(path: Path) -> str:
    """Read at most 4 MiB of a file as stripped text; empty if the file cannot be read.

    Raises `OSError` if the machine, not the file, is the cause.
    """
    try:
        return read_bytes(path).decode(errors="replace").strip()
    except OSError as error:
        if is_about_file(error):
            return ""
        raise


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700; follow no link. Raises `OSError`."""
    os.close(_made(path))


def _made(path: Path) -> int:
    """Return the descriptor of a folder, which is created if it is missing."""
    try:
        return _kernel().open(os.fspath(path), _FOLDER)
    except FileNotFoundError:
        above = _made(path.parent)
    try:
        with suppress(FileExistsError):
            os.mkdir(path.name, 0o700, dir_fd=above)
        return os.open(path.name, _FOLDER, dir_fd=above)
    finally:
        os.close(above)


@contextmanager
def replacing(path: Path, suffix: str = ".new") -> Iterator[BinaryIO]:
    """Open a new file with mode 0600 that replaces `path` when the block ends without an error.

    Until then the new file has the name of `path` with the suffix. A missing folder of `path` is
    created with mode 0700. Raises `OSError`, also if the folder's path contains a symbolic link.
    """
    folder, new = _made(path.parent), f"{path.name}{suffix}"
    try:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(new, flags, 0o600, dir_fd=folder), "wb") as file:
            yield file
        os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 atomically, and create its folder with mode 0700.

    Raises `OSError`, also if the path of the folder contains a symbolic link.
    """
    with replacing(path) as file:
        file.write(text.encode())


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths below a folder that match a pattern such as `*/a.jsonl`; follow no link.

    At most 10,000 entries of all folders are examined. An unreadable folder counts as empty.
    """
    return list(_matching(folder, pattern, iter(range(_LISTED))))


def _matching(folder: Path, pattern: str, tickets: Iterator[int]) -> Iterator[Path]:
    """Yield the paths that match; each folder entry that is examined uses up one of `tickets`."""
    name, _, rest = pattern.partition("/")
    names = [name]
    if "*" in name or not rest:  # Only the folder shows whether the last part exists.
        names = []
        with suppress(OSError), _entries(folder) as entries:
            some = (entry.name for _, entry in zip(tickets, entries, strict=False))
            names = [each for each in some if fnmatchcase(each, name)]
    for each in names:
        if rest:
            yield from _matching(folder / each, rest, tickets)
        else:
            yield folder / each


def walk(folder: Path, without: str = "") -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every entry below a folder, except folders, with its `lstat` result; follow no link.

    Omits unreadable entries, such as folders with a path of more than 4096 bytes. Omits entries
    with the name `without`, too, and everything below them.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        place = waiting.pop()
        with suppress(OSError), _entries(place) as entries:
            for entry in entries:
                if entry.name == without:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{place}/{entry.name}")
                else:
                    with suppress(OSError):
                        yield Path(place, entry.name), entry.stat(follow_symlinks=False)


@contextmanager
def _entries(folder: Path | str) -> Iterator[Iterator[os.DirEntry[str]]]:
    handle = _kernel().open(os.fspath(folder), _FOLDER)
    try:
        with os.scandir(handle) as entries:
            yield entries
    finally:
        os.close(handle)
