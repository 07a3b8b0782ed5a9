"""Gives a session's home a person's own conversation, so that its first run goes on there.

What is copied is theirs already: a file of the user who runs this, where their program keeps it.
"""

import os
import re
import shutil
import stat
from pathlib import Path

from runtimes.agents.shared.files import holds, opened

_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class NotAdopted(Exception):
    """A conversation cannot be taken over; the message says why, and what to do about it."""


def their_folder(variable: str, name: str) -> Path:
    """Where a person's program keeps what is theirs: as its variable says, or in their home."""
    return Path(os.environ.get(variable) or Path.home() / name)


def adopt(theirs: Path, pattern: str, native: str, ours: Path) -> Path:
    """Copy the transcript of a conversation to the same place below the session's folder.

    `pattern` finds it below `theirs`, with `{id}` for its name. Returns the copy. Raises
    `NotAdopted` where it is not there or not this user's, `OSError` where it cannot be copied.
    """
    if not _NAME.fullmatch(native):
        raise NotAdopted(
            f"{native!r} is no id of a conversation, such as 4bb28834-d7d9-428f-9c9f-9179ca24a4f5:"
            " a program tells it when it ends, with the command that goes on there"
        )
    place = pattern.format(id=native)
    found = [path for path in theirs.glob(place) if _is_own(path) and holds(path, native)]
    if not found:
        raise NotAdopted(
            f"there is no conversation {native} of yours: no file of your own at {theirs / place}"
        )
    source = max(found, key=lambda path: path.stat().st_size)  # Others are beginnings of it.
    copy = ours / source.relative_to(theirs)
    copy.parent.mkdir(mode=0o700, parents=True)
    new = copy.with_name(f"{copy.name}.new")
    with opened(source) as file, open(new, "xb", opener=_private) as out:
        shutil.copyfileobj(file, out)
    new.rename(copy)
    return copy


def _is_own(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
