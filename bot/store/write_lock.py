"""The lock that keeps the writes and checkpoints of several processes apart."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.store.errors import StoreBusy, StoreUnusable

_POLL_SECONDS = 0.002


class WriteLock:
    """Lets only one connection at a time write to a database or checkpoint it.

    SQLite's own lock covers a transaction but not the checkpoint after its commit. Before 3.51.3, a
    commit of one connection during a checkpoint of another can damage the database
    (https://www.sqlite.org/wal.html#the_wal_reset_bug). Debian 12 has 3.40.1, and the command line
    and a second bot write at the same time as the bot. A separate lock works with every SQLite.
    The Python packages that bundle a corrected SQLite have no error codes (pysqlite3) or a
    different interface (apsw).
    """

    def __init__(self, database: Path, seconds: float) -> None:
        """Open the lock's file; `seconds` limits each acquisition. Raises `StoreUnusable`."""
        self._database = database
        self._seconds = seconds
        path = database.with_name(f"{database.name}-lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnusable(
                f"the database {database} cannot be written: {path}: {error.strerror};"
                " give this user write access to the folder"
            ) from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock in the block.

        Raises `StoreBusy` if another process holds it for too long.
        """
        self._acquire()
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file of the lock."""
        os.close(self._file)

    def _acquire(self) -> None:
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreBusy(
                        f"the database {self._database}: another process has locked it:"
                        " find it with `fuser` and let it finish"
                    ) from None
                time.sleep(_POLL_SECONDS)
