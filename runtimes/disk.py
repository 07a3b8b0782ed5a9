"""Checks whether the files of a session exceed its limits of size, number or nesting.

Agents make these files, so a measurement follows no link, opens only folders, ends at the limits
below, and rests most of the time, so that no session delays the others or the bot.
"""

import errno
import os
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from lifecycle.model.facts import DiskExcess
from lifecycle.model.status import DiskLimit
from runtimes.host import session_of

_MB = 1024 * 1024
#: The most files and folders of a session, and the most levels of nested folders. A measurement
#: holds two open descriptors for each level.
MOST_FILES, MOST_LEVELS = 2_000_000, 100
#: A measurement rests after this many files, nine times as long as these took.
_SLICE, _REST = 1000, 9.0
_BLOCK_BYTES = 512  #: Of `st_blocks`: stat(2).
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Errors of opening a folder that was removed or replaced meanwhile.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

#: Waits for some seconds; returns True to end a measurement early.
Wait = Callable[[float], bool]


class LocalDisk:
    """Finds and measures the folders of a host's sessions."""

    def __init__(self, places: Sequence[Path]) -> None:
        """`places` are the folders whose subfolders belong to sessions.

        `session_of` takes the session's name from the name of a subfolder.
        """
        self._places = places

    def folders(self) -> Mapping[str, Sequence[Path]]:
        """Return the folders of each session. Raises `OSError`."""
        found = defaultdict[str, list[Path]](list)
        for place in self._places:
            if place.is_dir():
                for folder in place.iterdir():
                    found[session_of(folder.name)].append(folder)
        return found

    def excess(self, folders: Iterable[Path], most_mb: int, wait: Wait) -> DiskExcess | None:
        """Return the limit that these folders exceed (of size, files or nesting), or None.

        The limit is `DiskLimit.READABLE` if a folder cannot be read. Also returns None if `wait`
        ends the measurement early. `most_mb` is in units of 1024 * 1024 bytes. Each of the N hard
        links of a file counts 1/N of its size. Raises `OSError` if the measurement fails.
        """
        return _Measurement(most_mb, wait).of(folders)


class _Measurement:
    def __init__(self, most_mb: int, wait: Wait) -> None:
        self._most_mb, self._wait = most_mb, wait
        self._bytes, self._files = 0.0, 0
        self._since = time.monotonic()

    def of(self, folders: Iterable[Path]) -> DiskExcess | None:
        """As `LocalDisk.excess`."""
        try:
            for folder in folders:
                if (top := _opened(folder)) is None:
                    continue
                if exceeded := self._below(top):
                    return exceeded
        except PermissionError:  # The agent's doing: these folders belong to the bot's user.
            return DiskExcess(limit=DiskLimit.READABLE)
        return None

    def _below(self, top: int) -> DiskExcess | None:
        """Return a limit that the files below the descriptor `top` exceed, or None; close `top`."""
        levels = [(top, os.scandir(top))]
        try:
            while levels:
                folder, entries = levels[-1]
                entry = next(entries, None)
                if entry is None:
                    entries.close()
                    os.close(folder)
                    levels.pop()
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if (exceeded := self._count(found)) or self._rests():
                    return exceeded
                if not stat.S_ISDIR(found.st_mode):
                    continue
                if len(levels) == MOST_LEVELS:
                    return DiskExcess(limit=DiskLimit.LEVELS, most=MOST_LEVELS)
                if (inner := _opened(entry.name, folder)) is not None:
                    levels.append((inner, os.scandir(inner)))
        finally:
            for folder, entries in levels:
                entries.close()
                os.close(folder)
        return None

    def _count(self, found: os.stat_result) -> DiskExcess | None:
        links = 1 if stat.S_ISDIR(found.st_mode) else found.st_nlink or 1
        self._bytes += found.st_blocks * _BLOCK_BYTES / links
        self._files += 1
        if self._bytes > self._most_mb * _MB:
            return DiskExcess(limit=DiskLimit.MEGABYTES, most=self._most_mb)
        if self._files > MOST_FILES:
            return DiskExcess(limit=DiskLimit.FILES, most=MOST_FILES)
        return None

    def _rests(self) -> bool:
        """Rest after each slice of files; return whether to end early."""
        if self._files % _SLICE:
            return False
        ended = self._wait(_REST * (time.monotonic() - self._since))
        self._since = time.monotonic()
        return ended


def _opened(folder: str | Path, within: int | None = None) -> int | None:
    """Open a folder; return None if it is gone or no longer a folder."""
    try:
        return os.open(folder, _FOLDER, dir_fd=within)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
