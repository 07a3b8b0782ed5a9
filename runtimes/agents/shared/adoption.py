"""Copies a user's own conversation into a session's home, where its first run resumes it.

Only regular files that belong to the user who runs the bot are copied, from where the user's own
program keeps them.
"""

import os
import re
import shutil
import stat
from pathlib import Path

from runtimes.agents.shared.files import contains
from runtimes.files import open_regular

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class NotAdopted(Exception):
    """A conversation cannot be copied; the message says why and what to do."""


def user_folder(variable: str, name: str) -> Path:
    """The program's folder of the user who runs this: by its variable, or `name` in their home."""
    return Path(os.environ.get(variable) or Path.home() / name)


def copy_transcript(source: Path, pattern: str, native: str, target: Path) -> Path:
    """Copy the transcript of a conversation from one program folder to the same path in another.

    `pattern` is a glob pattern below `source`, with `{id}` for the conversation's id. Returns the
    copy's path. Raises `NotAdopted` if the user has no such transcript, and `OSError` if it cannot
    be copied.
    """
    if not _ID.fullmatch(native):
        raise NotAdopted(
            f"{native!r} is not a conversation id such as 4bb28834-d7d9-428f-9c9f-9179ca24a4f5:"
            " the agent's program prints the id when it exits, with the command to resume it"
        )
    place = pattern.format(id=native)
    found = [path for path in source.glob(place) if _is_own(path) and contains(path, native)]
    if not found:
        raise NotAdopted(
            f"you have no conversation {native}: no file of yours matches {source / place}"
        )
    original = max(found, key=lambda path: path.stat().st_size)  # Stubs are shorter.
    copy = target / original.relative_to(source)
    copy.parent.mkdir(mode=0o700, parents=True)
    new = copy.with_name(f"{copy.name}.new")
    with open_regular(original) as file, open(new, "xb", opener=_private) as out:
        shutil.copyfileobj(file, out)
    new.rename(copy)
    return copy


def _is_own(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
