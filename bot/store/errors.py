"""Exceptions of the store. Their messages name the fault and, where there is one, the remedy."""

import sqlite3
from pathlib import Path
from typing import Final


class StoreFailure(Exception):
    """Base of all exceptions of the store."""


class StoreUnusable(StoreFailure):
    """The file cannot be used, such as when it is missing, not accessible or of another version."""


class StoreDamaged(StoreUnusable):
    """The file is damaged or was moved away: the bot must stop, because data may be missing."""

    EXIT_CODE: Final = 3  #: The exit code of a process that stops because of this exception.


class StoreFull(StoreFailure):
    """The disk is full. Nothing was written; later writes may succeed."""


class StoreBusy(StoreFailure):
    """Another process locked the database for longer than the timeout."""


class StoreClosed(StoreFailure):
    """The store was closed, or was opened for reading only."""


class Fenced(StoreFailure):
    """This bot has lost its lease, so nothing was written."""


class SessionChanged(StoreFailure):
    """The session changed since it was loaded; nothing was written."""


class CorruptRow(StoreFailure):
    """A row has content that Mergewright never writes. The message names the row and column."""


_DAMAGED = (
    StoreDamaged,
    "it is damaged: stop the bot, move the file away and restore it from a backup"
    " (docs/running.md, Backups)",
)
#: Extended result codes whose failure differs from that of their low byte, the primary code.
_EXTENDED: dict[int, tuple[type[StoreFailure], str]] = {
    sqlite3.SQLITE_IOERR_SHORT_READ: _DAMAGED,
    sqlite3.SQLITE_IOERR_CORRUPTFS: _DAMAGED,
}
_STORAGE: dict[int, tuple[type[StoreFailure], str]] = {
    sqlite3.SQLITE_FULL: (StoreFull, "the disk is full: free some space; nothing was written"),
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "another process has locked it: find it with `fuser` and let it finish",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreFailure,
        "the disk failed: check the disk, its quota and the system's log",
    ),
    sqlite3.SQLITE_READONLY: (
        StoreUnusable,
        "it cannot be written: give this user write access to the file and to its folder",
    ),
    sqlite3.SQLITE_PERM: (StoreUnusable, "access is denied: give this user access to the file"),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnusable,
        "it cannot be opened: check that the folder exists and that this user may write to it",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreDamaged,
        "it is not a database, or its first page is damaged: stop the bot, move the file away"
        " and restore it from a backup (docs/running.md, Backups)",
    ),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
}


def explained(error: sqlite3.Error, path: Path) -> StoreFailure | None:
    """Convert a storage error to a failure with its remedy; None for any other error.

    https://www.sqlite.org/rescode.html
    """
    if str(error).startswith("no such table:"):
        # The schema was checked when the file was opened; SQLite reads an empty file as a database.
        return damaged(path, str(error))
    code = getattr(error, "sqlite_errorcode", 0)
    found = _EXTENDED.get(code) or _STORAGE.get(code & 0xFF)  # extended codes refine the low byte
    if found is None:
        return None
    kind, remedy = found
    return kind(f"the database {path}: {remedy} (SQLite says: {error})")


def damaged(path: Path, what: str) -> StoreDamaged:
    """Return the failure for a damaged file. `what` describes the damage."""
    return StoreDamaged(f"the database {path}: {_DAMAGED[1]} (found: {what})")
