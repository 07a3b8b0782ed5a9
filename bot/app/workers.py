"""Worker threads that run when woken, and the fixed jobs that wake them."""

import logging
import threading
from collections.abc import Callable

from msgspec import Struct

from bot.store import StoreFailure

log = logging.getLogger(__name__)


class Worker:
    """A thread that runs its work when woken, and again if it was woken during the run."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self._work = work
        self._failed = ""  #: The failure of the store that was logged last.
        self._asked = threading.Event()
        self._closed = threading.Event()
        # A daemon thread, so that hanging work does not keep the process from exiting.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; an earlier `wake` takes effect now."""
        self._thread.start()

    def wake(self) -> None:
        """Make the work run soon. Idempotent until it begins."""
        self._asked.set()

    def close(self, seconds: float) -> bool:
        """Stop after the running work; return whether that finished within so many seconds."""
        self._closed.set()
        self._asked.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._asked.wait() and not self._closed.is_set():
            self._asked.clear()
            try:
                self._work()
                self._failed = ""
            except StoreFailure as failure:
                # A full disk, for example, which every wake meets: logged once, in one line.
                if self._failed != str(failure):
                    self._failed = str(failure)
                    log.error("%s failed: %s", self.name, failure)
            except Exception:
                # The worker survives every failure: the next wake tries again.
                log.exception("%s failed", self.name)


class Job(Struct, frozen=True):
    """A job that runs at a fixed interval."""

    name: str
    every_seconds: float
    run: Callable[[], object]


class Ticker:
    """Runs the fixed jobs, a thread for each. Jumps of the machine's clock do not delay them.

    A schedule by the time of day, as APScheduler keeps, stops for an hour when the clock is set
    back by an hour.
    """

    def __init__(self, *jobs: Job) -> None:
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(job,), name=f"job-{job.name}", daemon=True)
            for job in jobs
        ]

    @property
    def running(self) -> bool:
        """Whether the jobs run."""
        return not self._stopping.is_set() and all(one.is_alive() for one in self._threads)

    def start(self) -> None:
        """Start the jobs, each after its interval."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop after the running jobs have finished."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _repeat(self, job: Job) -> None:
        while not self._stopping.wait(job.every_seconds):
            try:
                job.run()
            except Exception:
                log.exception("%s failed", job.name)
