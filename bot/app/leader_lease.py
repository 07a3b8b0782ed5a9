"""Keeps the lease that lets one bot act on a database, while every other bot waits."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from bot.store import CLEANUP, LeaseTable, OutboxTable, StoreFailure, this_process
from bot.system.clock import Clock
from lifecycle.model.times import EARLIEST

log = logging.getLogger(__name__)


@dataclass(eq=False)
class LeaderLease:
    """Waits for the lease of a database, then renews it until it is lost or released.

    The lease has an expiry and an epoch. Four things stop a bot that lost the lease. The store
    compares the epoch and refuses the bot's fenced writes (`bot.store.database`). The outbox and
    other parts check `may_act` right before each effect outside the database. The GitHub client
    checks `may_act` before each request that writes. `stopping` ends the process.
    """

    lease: LeaseTable
    outbox: OutboxTable
    data: Path
    seconds: float  #: How long the lease is valid without a renewal.
    clock: Clock
    #: Called when this bot gets the lease; again at the next renewal if it raised an exception.
    on_lead: Callable[[], None]
    stopping: Event  #: Set if the lease is lost, or by others to stop the bot. Ends the renewals.
    standby_reason: str = field(default="starting", init=False)  #: Empty once it got the lease.
    #: Whether another bot took the lease from this one.
    lost: bool = field(default=False, init=False)
    _epoch: int | None = field(default=None, init=False)
    _until: datetime | None = field(default=None, init=False)

    #: Another bot's name and its lease's expiry, and when both were read first (`monotonic`).
    _held: tuple[tuple[str, datetime], float] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._owner = f"{this_process()}:{id(self):x}"
        self._thread = Thread(target=self._keep, name="lease", daemon=True)

    def start(self) -> None:
        """Start the thread that acquires and renews the lease."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end; the caller must have set `stopping`."""
        if self._thread.is_alive():
            self._thread.join()

    def step_down(self) -> None:
        """Release the lease, so that another bot can acquire it at once."""
        self.lease.release(self._owner)

    def may_act(self) -> bool:
        """Whether this bot holds the lease and is not stopping.

        Check it before each effect outside the database.
        """
        led = self._until is not None and self.clock() < self._until
        return led and not self.stopping.is_set()

    def _keep(self) -> None:
        """Acquire or renew the lease every sixth of its duration, until `stopping` is set."""
        while not self.stopping.is_set():
            asked = self.clock()
            try:
                epoch = self.lease.acquire(self._owner, asked, self.seconds, self._expired())
                self._apply(epoch, asked + timedelta(seconds=self.seconds))
            except StoreFailure as failure:
                # A full disk, for example. Without a renewal the bot stops acting when the lease
                # expires, and continues once it can be renewed.
                log.error("the lease could not be taken or renewed: %s", failure)
            except Exception:
                log.exception("the lease could not be taken or renewed")
            self.stopping.wait(self.seconds / 6)

    def _expired(self) -> datetime:
        """Return the expiry of another bot's lease if that lease has run out, else `EARLIEST`.

        A lease has run out if it was not renewed for its whole duration, as far as this bot has
        seen. Its expiry is not compared with the clock, because the clocks of two bots may differ
        or jump.
        """
        leader = self.lease.holder()
        if leader is None or leader[0] == self._owner:
            self._held = None
            return EARLIEST  # Before every expiry.
        if self._held is None or self._held[0] != leader:
            self._held = (leader, monotonic())
        return leader[1] if monotonic() - self._held[1] >= self.seconds else EARLIEST

    def _apply(self, epoch: int | None, until: datetime) -> None:
        """Begin to act, continue, stand by or stop. `epoch` is None while another bot leads."""
        if self._epoch is None and epoch is None:
            self._stand_by()
        elif self._epoch is None and epoch is not None:
            self._until = until
            self._begin(epoch)
            self._epoch = epoch  # Only now, so that a failed beginning is repeated.
        elif epoch == self._epoch:
            self._until = until
        else:
            log.error("another bot has taken the lease; this one stops")
            self.lost = True
            self.stopping.set()

    def _begin(self, epoch: int) -> None:
        """Bind the store's writes to the new epoch and start the workers.

        Overdue actions count as due from now.
        """
        self.lease.fence(self._owner, epoch)
        self.outbox.reset_due(self.clock())
        self.standby_reason = ""
        log.info("this bot is now the active one for %s (epoch %s of the lease)", self.data, epoch)
        self.on_lead()

    def _stand_by(self) -> None:
        leader = self.lease.holder()
        who = f"another bot ({leader[0].partition('/')[0]})" if leader else "another bot"
        if leader and leader[0].endswith(CLEANUP):
            who = "`mergewright cleanup`"
        why = f"{who} works on {self.data}; this bot waits for it to end"
        if why != self.standby_reason:
            self.standby_reason = why
            log.warning("on standby: %s", why)
