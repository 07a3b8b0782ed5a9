"""Copies the SQLite databases that agents write, and opens the copies.

SQLite itself follows links, waits at pipes and locks, maps the file `-shm` beside a database into
memory (an agent that truncates this file kills the process), and runs the triggers, views and
functions in a database's schema. So database and write-ahead log are copied first, within limits;
only tables and indexes are left in the copy, and the time of queries is limited.
"""

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from runtimes.files import open_regular

#: A database that has more bytes, with its log, is not read.
_MOST_BYTES = 256 * 1024 * 1024
_SECONDS = 2.0  #: For all queries on one connection; honest ones take milliseconds.
_STEPS = 10_000  #: Instructions of SQLite's virtual machine between two checks of the time.
_STEP_BYTES = 1024 * 1024
#: A value of more bytes makes a query fail.
_VALUE_BYTES = 64 * 1024 * 1024
_HEADER_BYTES = 32  #: Of a write-ahead log; SQLite changes it when it overwrites the log.
_SETTINGS = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "ignore_check_constraints = ON",
    "mmap_size = 0",
    "locking_mode = EXCLUSIVE",  # Nobody else has the copy: no file for memory that is shared.
    "synchronous = OFF",
    "journal_mode = MEMORY",  # Merges the log.
    "writable_schema = ON",
)
#: The entries of a schema that are not tables or indexes, whatever their `type` says: triggers,
#: views, virtual tables. The SQL of tables and indexes begins with the words below.
_CODE = """FROM sqlite_schema WHERE NOT (
    substr(sql, 1, 13) = 'CREATE TABLE ' OR substr(sql, 1, 13) = 'CREATE INDEX '
    OR substr(sql, 1, 20) = 'CREATE UNIQUE INDEX ' OR (type = 'index' AND sql IS NULL))"""


@contextmanager
def open_database(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a database for reading. Its queries have to end within two seconds.

    The time begins when the copy is opened. Raises `sqlite3.Error`, also where one of the
    database's files is a link or a pipe, or is too large.
    """
    with tempfile.TemporaryDirectory(prefix="mergewright-") as folder:
        copy = Path(folder, "copy.db")
        copy_database(database, copy)
        with open_copy(copy, _SECONDS) as connection:
            yield connection


def copy_database(database: Path, into: Path) -> None:
    """Copy one state of a database and its write-ahead log.

    The database is copied to `into`, the log to the same path with `-wal` appended. Entries that
    are appended to the log during the copy do no harm. Raises `sqlite3.Error` if a file cannot be
    copied, or if the copy may mix two states of the database.
    """
    try:
        with open_regular(database) as file:
            before, log = _state(file), Path(f"{database}-wal")
            room = _MOST_BYTES - _copied(file, into, _MOST_BYTES)
            steady = True
            with suppress(FileNotFoundError), open_regular(log) as more:
                begin = os.pread(more.fileno(), _HEADER_BYTES, 0)
                _copied(more, Path(f"{into}-wal"), room)
                steady = os.pread(more.fileno(), _HEADER_BYTES, 0) == begin
            # A journal is not copied: it may name a file for SQLite to delete.
            with suppress(FileNotFoundError), open_regular(Path(f"{database}-journal")) as journal:
                steady = steady and not _state(journal)[0]
            if not steady or _state(file) != before:
                raise sqlite3.OperationalError("it is being changed")
    except (OSError, sqlite3.Error) as error:
        raise sqlite3.OperationalError(f"{database}: {error}") from error


@contextmanager
def open_copy(copy: Path, seconds: float) -> Iterator[sqlite3.Connection]:
    """Open a copy for writing, without its triggers, views and virtual tables.

    They are restored when the block ends without an error. Once `seconds` have passed, statements
    of more than `_STEPS` instructions fail. Raises `sqlite3.Error`.
    """
    until = time.monotonic() + seconds
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
        # One comparison with a long pattern may take years, and no handler is called in between.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1)
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        code = connection.execute(f"SELECT * {_CODE}").fetchall()
        if code:
            connection.execute(f"DELETE {_CODE}")
            connection.execute("PRAGMA writable_schema = RESET")
        yield connection
        if code:
            connection.execute("PRAGMA writable_schema = ON")
            connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", code)


def _copied(source: BinaryIO, into: Path, most: int) -> int:
    """Copy a file up to the size that it has at the start; return this size, in bytes.

    Raises `sqlite3.OperationalError`, before copying, if the size is greater than `most`.
    """
    size = os.fstat(source.fileno()).st_size
    if size > most:
        raise sqlite3.OperationalError(f"it is too large to be read: {size} bytes")
    left = size
    with into.open("wb") as out:
        while left and (data := source.read(min(left, _STEP_BYTES))):
            left -= out.write(data)
    return size


def _state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
