"""Finds files in a checkout that would block git (named pipes) or are too large to preserve."""

import os
import stat
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from runtimes.workspaces.git import GitFailure, nested_repositories, readable
from runtimes.workspaces.repositories import pipe_of_git

#: The most bytes that are preserved, of a file and of all together. Git would take hours for more.
FILE_BYTES, ALL_BYTES = 1024**3, 8 * 1024**3
_REMEDY = "remove it, or have the agent remove it"
_LESS = "remove files that are not needed, or have the agent remove them"


def check_pipes(*places: Path) -> None:
    """Raise `GitFailure` if git would wait at a pipe in one of these folders until its time-out.

    Also raises it if there are too many files to look for pipes.
    """
    try:
        name = pipe_of_git(*places)
    except subprocess.TimeoutExpired:
        words = "the workspace has too many files to look for pipes"
        raise GitFailure("status", str(places[0]), words, _LESS) from None
    if name:
        raise GitFailure("status", str(places[0]), f"{name} is a pipe, not a file", _REMEDY)


def check_sizes(checkout: Path, names: Iterable[str]) -> None:
    """Raise `GitFailure` if these files are too large to be preserved."""
    total = 0
    for name in names:
        status = _status(checkout, name)
        if status is None or not stat.S_ISREG(status.st_mode):
            continue
        total += status.st_size
        if status.st_size > FILE_BYTES or total > ALL_BYTES:
            words = f"the uncommitted files together have more than {ALL_BYTES // 10**9} GB"
            if status.st_size > FILE_BYTES:
                words = f"{readable(name)} has {status.st_size / 1e9:,.1f} GB"
            raise GitFailure("add", str(checkout), f"{words}, too much to preserve", _LESS)


def what_to_add(checkout: Path, status: Sequence[str]) -> tuple[list[str], str]:
    """Return a checkout's nested repositories, and the pathspecs with which git adds the rest.

    The pathspecs, each ended by a NUL, are `.` and exclusions: of the nested repositories, and of
    named pipes and other special files, because git adds no file at all if a pipe replaces a
    tracked file. `status` has the entries of `git status --porcelain --untracked-files=all`. Raises
    `GitFailure`.
    """
    check_sizes(checkout, (entry[3:] for entry in status))
    nested = nested_repositories(status)
    special = [entry[3:] for entry in status if _is_special(_status(checkout, entry[3:]))]
    left_out = (f":(exclude,literal){name}" for name in (*nested, *special))
    return nested, "".join(f"{spec}\0" for spec in (".", *left_out))


def _is_special(status: os.stat_result | None) -> bool:
    kinds = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
    return status is not None and stat.S_IFMT(status.st_mode) not in kinds


def _status(checkout: Path, name: str) -> os.stat_result | None:
    try:
        return os.lstat(checkout / name)
    except OSError:
        return None
