"""When what is looked at: a handful of fixed jobs, and lanes that also run when they are kicked."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC

from apscheduler.executors.pool import ThreadPoolExecutor as SchedulerPool
from apscheduler.schedulers.background import BackgroundScheduler
from msgspec import Struct

log = logging.getLogger(__name__)


class Lane:
    """Work that runs when it is kicked: never twice at once, and again if kicked meanwhile."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self._work = work
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._asked = False
        self._running = False
        self._closed = False

    def kick(self) -> None:
        """Have the work done soon. Costs nothing where it is asked for already."""
        with self._lock:
            self._asked = True
            if self._running or self._closed:
                return
            self._running = True
        self._pool.submit(self._run)

    def close(self) -> None:
        """Finish what runs and do nothing more."""
        with self._lock:
            self._closed = True
        self._pool.shutdown(wait=True)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._asked or self._closed:
                    self._running = False
                    return
                self._asked = False
            try:
                self._work()
            except Exception:
                # A lane outlives whatever goes wrong in it: the next kick tries again.
                log.exception("%s failed", self.name)


class Job(Struct, frozen=True, kw_only=True):
    """One fixed job."""

    name: str
    every_seconds: float
    run: Callable[[], object]


class Ticker:
    """The scheduler of the fixed jobs."""

    def __init__(self, jobs: tuple[Job, ...]) -> None:
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": SchedulerPool(len(jobs))},
            # A run that comes late is run all the same (the default drops it after a second), and
            # several missed ones are one.
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
        )
        for job in jobs:
            self._scheduler.add_job(job.run, "interval", seconds=job.every_seconds, id=job.name)

    @property
    def running(self) -> bool:
        """Whether the jobs run."""
        return bool(self._scheduler.running)

    def start(self) -> None:
        """Start the jobs."""
        self._scheduler.start()

    def stop(self) -> None:
        """Stop them, after those that run have ended."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
