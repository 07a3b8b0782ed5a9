"""When what is looked at: a handful of fixed jobs, and lanes that also run when they are kicked."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC

from apscheduler.executors.pool import ThreadPoolExecutor as SchedulerPool
from apscheduler.schedulers.background import BackgroundScheduler
from msgspec import Struct

log = logging.getLogger(__name__)


class Worker:
    """Work that runs when it is kicked: never twice at once, and again if kicked meanwhile."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self._work = work
        self._asked = threading.Event()
        self._closed = threading.Event()
        # A daemon: what hangs in it must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; a kick that came before is applied now."""
        self._thread.start()

    def wake(self) -> None:
        """Have the work done soon. Costs nothing where it is asked for already."""
        self._asked.set()

    def close(self, seconds: float) -> bool:
        """Do nothing more; whether what runs has ended within so many seconds."""
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
