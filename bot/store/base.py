"""What every part of the store stands on: one writer, many readers, and word of what changed."""

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

#: Long against an action, short against the lease: of another leader a commit would know.
_JUST_NOW_SECONDS = 1.0
_TRIAL = "INSERT INTO trial (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at"


class Base:
    """The file, its writer and its readers. May be used from any thread."""

    def __init__(
        self,
        path: Path,
        writer: Writer | None,
        clock: Callable[[], datetime],
        redact: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.path = path
        self.clock = clock
        self.redact = redact  #: Takes secrets out of what is to be compared with what is stored.
        #: Called with a session's id after what changed it is on disk, in the thread that wrote.
        self.on_change: list[Callable[[str], None]] = []
        self._writer = writer
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = threading.Event()

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work inside a transaction and return its result once the commit is on disk.

        An exception of the work rolls back this work alone and is raised here. Raises `StoreFull`
        and other `StoreFailure`s where the storage failed, `Fenced` where another bot leads.
        """
        return self._submit(work).result()

    def writable(self) -> bool:
        """Whether writes succeed now: a small one is made, down to the disk.

        Unless one has just succeeded, which says the same.
        """
        if self._closed.is_set() or self._writer is None:
            return False
        if self._writer.committed_within(_JUST_NOW_SECONDS):
            return True
        values = (self.clock().timestamp(),)
        try:
            self.write(lambda connection: connection.execute(_TRIAL, values))
        except StoreFailure:
            return False
        return True

    def close(self) -> None:
        """Finish the writes that wait and close the file."""
        self._closed.set()
        while self._idle:
            self._idle.pop().close()
        if self._writer is not None:
            self._writer.close()

    def _submit(
        self, work: Callable[[sqlite3.Connection], T], *, fenced: bool = True
    ) -> "Future[T]":
        (future,) = self._submit_all([work], fenced=fenced)
        return future

    def _submit_all(
        self, works: Iterable[Callable[[sqlite3.Connection], T]], *, fenced: bool = True
    ) -> "list[Future[T]]":
        if self._writer is None:
            raise StoreClosed(f"the database {self.path} was opened for reading only")
        return self._writer.submit(works, fenced=fenced)

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one committed state of all tables until it is given back."""
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

    def _announce(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            for listener in self.on_change:
                try:
                    listener(session)
                except Exception:
                    # What was written stays written: its writer must not take this for a failure.
                    log.exception("a listener failed for session %s", session)
