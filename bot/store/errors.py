"""What can go wrong with the store, said so that a person can act on it."""

import sqlite3
from pathlib import Path


class StoreFailure(Exception):
    """The store could not do what was asked; the message names the file and the remedy."""


class StoreUnusable(StoreFailure):
    """The file cannot be used at all: missing, of another program or another version."""


class StoreFull(StoreFailure):
    """There is no room for what was to be written. Nothing of it was; later writes may succeed."""


class StoreBusy(StoreFailure):
    """Another process held the database for longer than we wait."""


class StoreClosed(StoreFailure):
    """The store was closed, or was opened for reading only."""


class Fenced(StoreFailure):
    """Somebody else is in charge now; nothing was written."""


class CorruptRow(StoreFailure):
    """A row holds what Mergewright does not write; the message names table, row and column."""


_STORAGE: dict[int, tuple[type[StoreFailure], str]] = {
    sqlite3.SQLITE_FULL: (
        StoreFull,
        "there is no room left: free some space on its disk; nothing was written",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "another process holds it: find out which one (`fuser` names it) and let it finish",
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
    """What a failure of the storage means and what to do; None where the statement was at fault."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes refine the low byte
    if code not in _STORAGE:
        return None
    kind, remedy = _STORAGE[code]
    return kind(f"the database {path}: {remedy} (SQLite says: {error})")
