"""Failures of the store, each with a remedy."""

import sqlite3
from pathlib import Path


class StoreFailure(Exception):
    """Base of all failures. The message names the file and the remedy."""


class StoreUnusable(StoreFailure):
    """The file cannot be used at all: missing, of another program or another version."""


class StoreFull(StoreFailure):
    """The disk is full. Nothing was written; later writes may succeed."""


class StoreBusy(StoreFailure):
    """Another process locked the database for longer than the timeout."""


class StoreClosed(StoreFailure):
    """The store was closed, or was opened for reading only."""


class Fenced(StoreFailure):
    """Another bot leads; nothing was written."""


class SessionChanged(StoreFailure):
    """The session changed since it was loaded; nothing was written."""


class CorruptRow(StoreFailure):
    """A row has content that Mergewright does not write. The message names the column."""


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
        StoreUnusable,
        "it is not a database: move the file away, or name another one",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreUnusable,
        "it is damaged: stop the bot and restore the file from a backup",
    ),
}


def explained(error: sqlite3.Error, path: Path) -> StoreFailure | None:
    """Return the failure for a storage error; None if the statement itself was wrong.

    https://www.sqlite.org/rescode.html
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes refine the low byte
    if code not in _STORAGE:
        return None
    kind, remedy = _STORAGE[code]
    return kind(f"the database {path}: {remedy} (SQLite says: {error})")
