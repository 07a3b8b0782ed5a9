"""The one thread that writes: whatever waits when it looks goes to disk in one commit."""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from bot.store.errors import Fenced, StoreBusy, StoreClosed, explained

T = TypeVar("T")

GROUP_LIMIT = 512


class Fence(NamedTuple):
    """Who must hold the lease for this store's writes to count."""

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

    def tell(self) -> None:
        if self.error is not None:
            self.job.future.set_exception(self.error)
        else:
            self.job.future.set_result(self.result)


class Writer:
    """Owns the writing connection. Work comes from any thread and is done in the order it came."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.fence: Fence | None = None
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
        """Have works done in one transaction; a future resolves once the commit is on disk.

        One that fails, fails alone. Work may be done a second time, alone, where the storage failed
        for its group: it must do nothing but read and write through the connection it is given.
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
        """Whether the last thing written went to disk, so long ago at most, behind the fence."""
        return monotonic() - self._committed <= seconds

    def close(self) -> None:
        """Finish what waits, then close the connection. Closing twice does nothing."""
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
                    outcome.tell()
        self._connection.close()

    def _next_group(self) -> tuple[list[_Job], bool]:
        """What waits now, at least one job; and whether more may come."""
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
        """Do all jobs in one transaction; each alone where the storage failed for them together."""
        try:
            return self._transaction(jobs)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the job
            self._committed = -inf
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                error = explained(error, self._path) or error
            if len(jobs) > 1 and not isinstance(error, StoreBusy):
                return [outcome for job in jobs for outcome in self._done([job])]
            return [_Outcome(job, error=error) for job in jobs]

    def _transaction(self, jobs: Sequence[_Job]) -> list[_Outcome]:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        fenced = self._fenced()
        # One job alone is undone with its transaction.
        do = self._in_savepoint if len(jobs) > 1 else self._alone
        outcomes = [
            _Outcome(job, error=fenced) if fenced and job.fenced else do(job) for job in jobs
        ]
        execute("COMMIT")
        self._committed = -inf if fenced else monotonic()
        return outcomes

    def _alone(self, job: _Job) -> _Outcome:
        return _Outcome(job, result=job.work(self._connection))

    def _in_savepoint(self, job: _Job) -> _Outcome:
        execute = self._connection.execute
        execute("SAVEPOINT job")
        try:
            outcome = _Outcome(job, result=job.work(self._connection))
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and explained(error, self._path):
                raise
            execute("ROLLBACK TO job")
            outcome = _Outcome(job, error=error)
        execute("RELEASE job")
        return outcome

    def _fenced(self) -> Fenced | None:
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
