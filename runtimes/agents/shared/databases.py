"""Databases that programs keep: read only, whatever agents may have put in their place."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

#: The files that SQLite reads: the database, and what is not in it yet, or not any more.
_FILES = ("", "-wal", "-journal")
_STEPS = 50_000_000  #: A look at an honest database takes far fewer.


@contextmanager
def reading(database: Path) -> Iterator[sqlite3.Connection]:
    """One of them; a look that takes long is broken off. Raises `sqlite3.Error`.

    SQLite would follow links, and wait at a pipe for ever: with those nothing is read.
    """
    for end in _FILES:
        with suppress(OSError):
            if not stat.S_ISREG(os.lstat(f"{database}{end}").st_mode):
                raise sqlite3.OperationalError(f"{database}{end} is no regular file")
    uri = f"{database.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=0.2)) as connection:
        connection.set_progress_handler(lambda: 1, _STEPS)
        yield connection
