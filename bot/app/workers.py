"""Worker threads that run when woken, and the periodic jobs that wake them."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC

from apscheduler.executors.pool import ThreadPoolExecutor as SchedulerPool
from apscheduler.schedulers.background import BackgroundScheduler
from msgspec import Struct

from bot.store import StoreFailure
from bot.system.clock import SteadyClock, utc_now
from bot.system.metrics import worker_run

log = logging.getLogger(__name__)

#: How often the scheduler compares the machine's clock with the time that has passed.
_LOOK_SECONDS = 1.0


class Worker:
    """A thread that runs its work when woken, and once more if woken during the run."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self._work = work
        self._failed = ""  #: The last logged `StoreFailure`; empty after a success.
        self._asked = threading.Event()
        self._closed = threading.Event()
        # A daemon thread, so that hanging work does not keep the process from exiting.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread. If `wake` was called before, the work runs now. Idempotent."""
        if self._thread.ident is None:
            self._thread.start()

    def wake(self) -> None:
        """Make the work run soon. Several calls before it begins cause one run."""
        self._asked.set()

    def close(self, seconds: float) -> bool:
        """Stop after the running work; return whether the work finished within `seconds`."""
        self._closed.set()
        self._asked.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._asked.wait() and not self._closed.is_set():
            self._asked.clear()
            try:
                with worker_run(self.name):
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
    """A function that the ticker calls at a fixed interval."""

    name: str
    every_seconds: float
    run: Callable[[], object]


class _SteadyScheduler(BackgroundScheduler):  # type: ignore[misc]  # It has no types.
    """Runs every job at once when the machine's clock has jumped, or the machine was suspended.

    APScheduler schedules by the time of day. Without this, it would stop for an hour if the clock
    were set back by an hour, and list all missed runs if the clock were set ahead by years.
    """

    def __init__(self, **options: object) -> None:
        self._steady = SteadyClock()
        super().__init__(**options)

    def _process_jobs(self) -> float:
        """Run the due jobs; return the seconds until the next check, at most `_LOOK_SECONDS`."""
        if self._steady.look():
            now = utc_now()
            for job in self.get_jobs():
                job.modify(next_run_time=now)
        wait: float | None = super()._process_jobs()
        return _LOOK_SECONDS if wait is None else min(wait, _LOOK_SECONDS)


class Ticker:
    """Runs the periodic jobs. Jumps of the machine's clock do not delay them."""

    def __init__(self, *jobs: Job) -> None:
        self._jobs = jobs
        self._scheduler = self._make()

    def _make(self) -> _SteadyScheduler:
        scheduler = _SteadyScheduler(
            timezone=UTC,
            executors={"default": SchedulerPool(len(self._jobs))},
            # A late run is run (by default it is dropped after a second), and several missed runs
            # become one.
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        for job in self._jobs:
            scheduler.add_job(job.run, "interval", seconds=job.every_seconds, id=job.name)
        return scheduler

    @property
    def running(self) -> bool:
        """Whether the scheduler is started."""
        return bool(self._scheduler.running)

    def start(self) -> None:
        """Start the jobs, each after its interval. Idempotent; may be repeated after a failure."""
        if self._scheduler.running:
            return
        try:
            self._scheduler.start()
        except BaseException:
            self._scheduler = self._make()  # The other one says that it runs, without a thread.
            raise

    def stop(self) -> None:
        """Stop, and wait until the running jobs have finished."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
