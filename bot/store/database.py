"""One SQLite file with one writer, many readers and listeners for what changed."""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from bot.store.errors import StoreClosed, StoreFailure, explained
from bot.store.opening import open_reader
from bot.store.writer import Writer

T = TypeVar("T")

log = logging.getLogger(__name__)

#: Long against an action, short against the lease: a commit would have noticed another leader.
_RECENT_SECONDS = 1.0
_PROBE = "INSERT INTO trial (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at"


class DatabaseFile:
    """The file that all tables share. May be used from any thread.

    `redact` takes secrets out of what is to be compared with stored values. A `writer` of None
    means that the file was opened for reading only.
    """

    def __init__(
        self,
        path: Path,
        writer: Writer | None,
        clock: Callable[[], datetime],
        redact: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.path = path
        self.clock = clock
        self.redact = redact
        self.writer = writer
        #: Called with a session's id after a change of it is on disk, in the thread that wrote.
        self.on_change: list[Callable[[str], None]] = []
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = threading.Event()

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work inside a transaction and return its result once the commit is on disk.

        An exception of the work rolls back this work alone and is raised here.

        Raises:
            StoreFull, StoreFailure: the storage failed.
            Fenced: another bot leads.
        """
        return self.submit(work).result()

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, fenced: bool = True
    ) -> "Future[T]":
        """Like `write`, without waiting. `fenced=False` writes whichever bot leads."""
        (future,) = self.submit_all([work], fenced=fenced)
        return future

    def submit_all(
        self, works: Iterable[Callable[[sqlite3.Connection], T]], *, fenced: bool = True
    ) -> "list[Future[T]]":
        """Submit several works that share one transaction; each fails alone.

        Raises `StoreClosed` if the file was closed or opened for reading only.
        """
        if self.writer is None:
            raise StoreClosed(f"the database {self.path} was opened for reading only")
        return self.writer.submit(works, fenced=fenced)

    def writable(self) -> bool:
        """Whether writes reach the disk now, tried by a small one.

        A write that succeeded within the last second counts as the trial.
        """
        if self._closed.is_set() or self.writer is None:
            return False
        if self.writer.committed_within(_RECENT_SECONDS):
            return True
        values = (self.clock().timestamp(),)
        try:
            self.write(lambda connection: connection.execute(_PROBE, values))
        except StoreFailure:
            return False
        return True

    def close(self) -> None:
        """Finish the pending writes and close the file."""
        self._closed.set()
        while self._idle:
            self._idle.pop().close()
        if self.writer is not None:
            self.writer.close()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one committed state of all tables until the block ends."""
        if self._closed.is_set():
            raise StoreClosed(f"the database {self.path} was closed")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self.path)
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise explained(error, self.path) or error from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if self._closed.is_set():
                connection.close()
            else:
                self._idle.append(connection)

    def announce(self, sessions: Iterable[str]) -> None:
        """Call the listeners of `on_change`; an exception of one is logged."""
        for session in sessions:
            for listener in self.on_change:
                try:
                    listener(session)
                except Exception:
                    # The write is committed: its caller must not take this for a failure.
                    log.exception("a listener failed for session %s", session)


class StoreTable:
    """The methods of one table, on the file that all tables share."""

    def __init__(self, db: DatabaseFile) -> None:
        self._db = db
