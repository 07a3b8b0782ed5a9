"""One SQLite file with one writer, many readers and change listeners."""

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from bot.store.errors import (
    Fenced,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreFailure,
    damaged,
    explained,
)
from bot.store.opening import BUSY_SECONDS, open_reader
from bot.store.write_lock import WriteLock

T = TypeVar("T")

log = logging.getLogger(__name__)

#: The values of a statement, by position or by name.
_Values = Sequence[Any] | Mapping[str, Any]
#: A transaction with this number of jobs takes no further submission.
GROUP_LIMIT = 512
#: A commit at most this old proves that the disk takes writes and that this bot leads.
_RECENT_SECONDS = 1.0
_PROBE = (
    "INSERT INTO write_probe (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at"
)


class Fence(NamedTuple):
    """The lease holder that may write: its owner name and epoch."""

    owner: str
    epoch: int


class _Job(NamedTuple):
    work: Callable[[sqlite3.Connection], Any]
    future: Future[Any]
    fenced: bool


class _Outcome(NamedTuple):
    job: _Job
    result: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        if self.error is not None:
            self.job.future.set_exception(self.error)
        else:
            self.job.future.set_result(self.result)


class Writer:
    """Runs all writes in one thread and commits pending ones together, in submission order."""

    def __init__(self, open_connection: Callable[[], sqlite3.Connection], path: Path) -> None:
        """Take the `WriteLock`, open the connection, release the lock, and start the thread.

        Raises `StoreFailure`.
        """
        self.fence: Fence | None = None
        self.on_damage: Callable[[StoreDamaged], None] = lambda damage: None
        self._lock = WriteLock(path, BUSY_SECONDS)
        try:
            with self._lock.held():
                connection = open_connection()
        except BaseException:
            self._lock.close()
            raise
        self._file = _identity(path)
        self._connection = connection
        self._path = path
        self._jobs: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._committed = -inf
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(
        self, works: Iterable[Callable[[sqlite3.Connection], T]], *, fenced: bool = True
    ) -> "list[Future[T]]":
        """Queue functions for one transaction; their futures resolve once it is on disk.

        An exception rolls back only the changes of the function that raised it. If the transaction
        fails, as on a full disk, the functions are repeated one by one, so they must have no
        effects except through their connection. With `fenced`, they fail with `Fenced` once the bot
        has lost its lease.

        Raises:
            StoreClosed: the file was closed.
            RuntimeError: called in the writer's own thread, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("work on the store must not wait for other work on the store")
        jobs = [_Job(work, Future(), fenced) for work in works]
        with self._closing:
            if self._closed:
                raise StoreClosed(f"the database {self._path} was closed")
            self._jobs.put(jobs)
        return [job.future for job in jobs]

    def committed_within(self, seconds: float) -> bool:
        """Whether this bot committed in the last `seconds`, with no failure or lost lease since."""
        return monotonic() - self._committed <= seconds

    def close(self) -> None:
        """Finish pending work and close the connection. Closing twice does nothing."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        more = True
        while more:
            group, more = self._next_group()
            jobs = [job for job in group if job.future.set_running_or_notify_cancel()]
            if jobs:
                for outcome in self._done(jobs):
                    outcome.resolve()
        # Closing the last connection checkpoints the file, which needs the lock. If the lock is
        # not free within the time limit, its holder has a connection: this is not the last one.
        with suppress(StoreBusy), self._lock.held():
            self._connection.close()
        self._connection.close()
        self._lock.close()

    def _next_group(self) -> tuple[list[_Job], bool]:
        """Wait for jobs; return the pending ones, and whether the writer is still open."""
        group: list[_Job] = []
        jobs = self._jobs.get()
        while jobs is not None:
            group += jobs
            if len(group) >= GROUP_LIMIT:
                return group, True
            try:
                jobs = self._jobs.get_nowait()
            except Empty:
                return group, True
        return group, False

    def _done(self, jobs: Sequence[_Job]) -> list[_Outcome]:
        """Do all jobs in one transaction; if that fails, do each alone.

        Jobs are not repeated if the file is damaged or locked by another process.
        """
        try:
            with self._lock.held():
                return self._transaction(jobs)
        except BaseException as error:  # noqa: BLE001 - raised where the job was submitted
            self._committed = -inf
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                error = explained(error, self._path) or error
            if isinstance(error, StoreDamaged):
                self.on_damage(error)
            elif len(jobs) > 1 and not isinstance(error, StoreBusy):
                return [outcome for job in jobs for outcome in self._done([job])]
            return [_Outcome(job, error=error) for job in jobs]

    def _transaction(self, jobs: Sequence[_Job]) -> list[_Outcome]:
        execute = self._connection.execute
        if _identity(self._path) != self._file:
            raise damaged(self._path, "the file was moved away or replaced while it was in use")
        execute("BEGIN IMMEDIATE")
        fenced = self._check_fence()
        # A single job is rolled back with its transaction.
        do = self._in_savepoint if len(jobs) > 1 else self._outcome
        outcomes = [
            _Outcome(job, error=fenced) if fenced and job.fenced else do(job) for job in jobs
        ]
        execute("COMMIT")
        self._committed = -inf if fenced else monotonic()
        return outcomes

    def _outcome(self, job: _Job) -> _Outcome:
        return _Outcome(job, result=job.work(self._connection))

    def _in_savepoint(self, job: _Job) -> _Outcome:
        execute = self._connection.execute
        execute("SAVEPOINT job")
        try:
            outcome = self._outcome(job)
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and explained(error, self._path):
                raise
            execute("ROLLBACK TO job")
            outcome = _Outcome(job, error=error)
        execute("RELEASE job")
        return outcome

    def _check_fence(self) -> Fenced | None:
        if self.fence is None:
            return None
        held = self._connection.execute(
            "SELECT 1 FROM lease WHERE owner = ? AND epoch = ?", self.fence
        ).fetchone()
        if held:
            return None
        return Fenced(
            f"another bot leads on the database {self._path}: this one lost its lease and must stop"
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return a file's device and inode, which change if it is replaced; None if it is missing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class DatabaseFile:
    """The database file that all tables share. Thread-safe.

    `redact` masks secrets in new values before they are compared with the stored values, in which
    secrets are masked already. `writer` is None if the file was opened for reading only.
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
        #: Called with a session's id after a change of the session is on disk, in the thread that
        #: requested the change.
        self.on_change: list[Callable[[str], None]] = []
        #: Called when damage of the file is first found, in the thread that found it: a reader's or
        #: the writer's.
        self.on_damage: list[Callable[[], None]] = []
        self.damage = ""  #: The damage that a read or a write found, with the remedy.
        if writer is not None:
            writer.on_damage = self._met
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = threading.Event()

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` inside a transaction and return its result once the commit is on disk.

        An exception of `work` rolls back only its own changes, and is raised here. `work` may be
        called a second time, as `Writer.submit` says.

        Raises:
            StoreFailure: the storage failed; a full disk raises `StoreFull`.
            Fenced: this bot has lost its lease.
        """
        return self.submit(work).result()

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, fenced: bool = True
    ) -> "Future[T]":
        """Submit `work` as `write` does, but do not wait. Without `fenced`, no lease is needed."""
        (future,) = self.submit_all([work], fenced=fenced)
        return future

    def submit_all(
        self, works: Iterable[Callable[[sqlite3.Connection], T]], *, fenced: bool = True
    ) -> "list[Future[T]]":
        """Submit functions for one transaction; one that raises rolls back only its own writes.

        Raises `StoreClosed` if the file was closed or opened for reading only.
        """
        if self.writer is None:
            raise StoreClosed(f"the database {self.path} was opened for reading only")
        return self.writer.submit(works, fenced=fenced)

    def writable(self) -> bool:
        """Whether this bot can write to the database now. False also if it has lost its lease.

        Makes a small test write to find out, unless a write was committed within the last second.
        """
        if self._closed.is_set() or self.writer is None or self.damage:
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
        """Yield a connection that sees one snapshot, for a `with` block. Raises `StoreFailure`."""
        with self.reader() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection, without a transaction, for a `with` block that runs only one query.

        Several queries might see different snapshots. Raises `StoreFailure`.
        """
        if self._closed.is_set():
            raise StoreClosed(f"the database {self.path} was closed")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self.path)
        try:
            yield connection
        except sqlite3.Error as error:
            failure = explained(error, self.path)
            if isinstance(failure, StoreDamaged):
                self._met(failure)
            raise failure or error from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if self._closed.is_set():
                connection.close()
            else:
                self._idle.append(connection)

    def _met(self, damage: StoreDamaged) -> None:
        if not self.damage:
            self.damage = str(damage)
            for listener in self.on_damage:
                listener()

    def announce(self, sessions: Iterable[str]) -> None:
        """Call the listeners of `on_change` for each session.

        Exceptions of listeners are logged.
        """
        for session in sessions:
            for listener in self.on_change:
                try:
                    listener(session)
                except Exception:
                    # The write is committed: its caller must not take this for a failure.
                    log.exception("a listener failed for session %s", session)


class StoreTable:
    """Base class of the tables, which share one database file."""

    def __init__(self, db: DatabaseFile) -> None:
        self._db = db

    def _all(self, query: str, values: _Values = ()) -> list[sqlite3.Row]:
        with self._db.reader() as connection:
            return connection.execute(query, values).fetchall()

    def _first(self, query: str, values: _Values = ()) -> sqlite3.Row | None:
        with self._db.reader() as connection, closing(connection.execute(query, values)) as cursor:
            row: sqlite3.Row | None = cursor.fetchone()
            return row

    def _execute(self, statement: str, values: _Values) -> int:
        """Execute one writing statement in a transaction. Returns how many rows it changed."""
        return self._db.write(lambda connection: connection.execute(statement, values).rowcount)

    def _change(self, work: Callable[[sqlite3.Connection], Iterable[str]]) -> list[str]:
        """Write, then call the `on_change` listeners for the session ids that `work` returns."""
        changed = list(self._db.write(work))
        self._db.announce(changed)
        return changed
