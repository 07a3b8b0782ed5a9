"""Which bot acts on a database: one holds a lease, every other stands by until it ends."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

from bot.store import Store, this_process
from bot.system.clock import Clock

log = logging.getLogger(__name__)


class LeaderLease:
    """One bot's place among those of its database: it waits for the lease, and holds on to it."""

    def __init__(
        self,
        store: Store,
        data: Path,
        lease_seconds: float,
        clock: Clock,
        on_lead: Callable[[], None],
        over: Event,
    ) -> None:
        """`on_lead` is called once, when the database is ours; `over` is set once it is lost."""
        self._store = store
        self._data = data
        self._seconds = lease_seconds
        self._clock = clock
        self._on_lead = on_lead
        self._over = over
        self._owner = f"{this_process()}:{id(self):x}"
        self._epoch: int | None = None
        self._until: datetime | None = None
        self._thread = Thread(target=self._lead, name="lease", daemon=True)
        self.standing_by = "starting"  #: Why this bot does not act; empty: it does.
        self.lost = False  #: Whether another bot took the database over.

    def start(self) -> None:
        """Ask for the database from now on."""
        self._thread.start()

    def join(self) -> None:
        """Wait until it is asked for no more; `over` was set."""
        if self._thread.is_alive():
            self._thread.join()

    def step_down(self) -> None:
        """Free the database for another bot at once."""
        self._store.lease.release(self._owner)

    def may_act(self) -> bool:
        """Whether the database is still ours: the last question before an effect goes out."""
        led = self._until is not None and self._clock() < self._until
        return led and not self._over.is_set()

    def _lead(self) -> None:
        """Take the database or stand by; once it is ours, hold on to it."""
        while not self._over.is_set():
            asked = self._clock()
            try:
                epoch = self._store.lease.acquire(self._owner, asked, self._seconds)
                self._follow(epoch, asked + timedelta(seconds=self._seconds))
            except Exception:
                # A full disk, for one. Nothing is done once the lease has run out, and all of it
                # again when it can be renewed.
                log.exception("the lease could not be taken or renewed")
            self._over.wait(self._seconds / 6)

    def _follow(self, epoch: int | None, until: datetime) -> None:
        """Act, go on acting, stand by or end, as the database says."""
        if self._epoch is None and epoch is None:
            self._stand_by()
        elif self._epoch is None and epoch is not None:
            self._until = until
            self._begin(epoch)
            self._epoch = epoch  # Only now: a beginning that fails is made again.
        elif epoch == self._epoch:
            self._until = until
        else:
            log.error("another bot has taken the database over; this one ends")
            self.lost = True
            self._over.set()

    def _begin(self, epoch: int) -> None:
        """Everything that was left undone is found in the store, and looked at again."""
        self._store.lease.fence(self._owner, epoch)
        self._store.outbox.reset_due(self._clock())
        self.standing_by = ""
        log.info("acting on %s, epoch %s", self._data, epoch)
        self._on_lead()

    def _stand_by(self) -> None:
        leader = self._store.lease.holder()
        who = leader[0].split(":")[0] if leader else "another bot"
        why = f"another bot ({who}) acts on {self._data}; this one waits for it to end"
        if why != self.standing_by:
            self.standing_by = why
            log.warning("standing by: %s", why)
