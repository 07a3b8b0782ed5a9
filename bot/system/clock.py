"""The bot's clock, which ignores jumps of the machine's clock."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import NamedTuple

#: Returns the current time, with a time zone.
Clock = Callable[[], datetime]

#: Smaller differences are no jumps: the machine corrects them gradually, or they are the time that
#: passes between reading the two clocks.
_JUMP = timedelta(seconds=5)
#: A recorded time further ahead than this came from a clock that was wrong.
_MOST = timedelta(days=1)


def utc_now() -> datetime:
    """Return the current time of the machine."""
    return datetime.now(UTC)


class _Era(NamedTuple):
    """A period in which the machine's clock did not jump."""

    begun: datetime  #: By the machine's clock.
    ahead: timedelta  #: How far the machine's clock is ahead of the bot's.


class SteadyClock:
    """A clock that ignores jumps of the machine's clock: start time plus time passed since.

    Waits, leases and the order of records depend on it. Times by the machine's clock, such as those
    of files, are converted with `of_machine`. Thread-safe.
    """

    def __init__(self, machine: Clock | None = None) -> None:
        """Start from the time of `machine`, the machine's clock, which is `utc_now` by default."""
        self._machine = machine or utc_now
        self._lock = Lock()
        self._start, self._monotonic = self._machine(), time.monotonic()
        self._eras = [_Era(self._start, timedelta())]
        self._last = self._start  #: The machine's time when `look` last read it.
        self._ends: list[datetime] = []  #: The ends of earlier eras, by the machine's clock.

    def __call__(self) -> datetime:
        """Return the current time."""
        return self._start + timedelta(seconds=time.monotonic() - self._monotonic)

    @property
    def agrees(self) -> bool:
        """Whether both clocks differed by less than 5 seconds at the last comparison."""
        return abs(self.ahead) < _JUMP

    @property
    def ahead(self) -> timedelta:
        """How far the machine's clock was ahead of this one when last compared, accurate to 5 s."""
        return self._eras[-1].ahead

    def continue_from(self, recorded: datetime) -> None:
        """Move the time forward to the last recorded time, if that is ahead by less than a day.

        A recorded time is ahead if the machine's clock was set back while no bot ran.
        """
        if recorded - self() < _MOST:
            self.not_before(recorded)

    def not_before(self, at: datetime) -> None:
        """Move this clock's time forward to `at`, unless that time has passed already.

        Needed after the machine was suspended.
        """
        with self._lock:
            behind = at - self()
            if timedelta() < behind:
                self._start += behind
                self._eras = [_Era(self._eras[-1].begun, self._eras[-1].ahead - behind)]
                self._ends = []

    def look(self) -> timedelta:
        """Compare with the machine's clock; return by how much it jumped since the last call.

        A difference below 5 seconds is no jump, so the result is 0. Call this regularly.
        """
        with self._lock:
            machine = self._machine()
            before, ahead = self._eras[-1].ahead, machine - self()
            jumped = ahead - before
            if abs(jumped) < _JUMP:
                self._last = machine
                return timedelta()
            if abs(ahead) < _JUMP:
                ahead = timedelta()  # The machine's clock was corrected.
            self._ends.append(self._last)
            self._eras.append(_Era(machine, ahead))
            self._last = machine
            return jumped

    def of_machine(self, at: datetime) -> datetime:
        """Convert a time by the machine's clock to a time by this clock.

        Between two jumps, the difference of the clocks is constant. If the time lies in several
        such periods, the newest counts; if it lies in none, it is returned unchanged.
        """
        with self._lock:
            eras = list(zip(self._eras, [*self._ends, self._last + _JUMP], strict=True))
        for era, end in reversed(eras):
            if era.begun - _JUMP <= at <= end:
                return at - era.ahead
        return at


def machine_time(clock: Clock) -> datetime:
    """Return the current time by the machine's clock, which files and programs use."""
    return clock() + clock.ahead if isinstance(clock, SteadyClock) else clock()


def from_machine(clock: Clock, at: datetime | None) -> datetime | None:
    """Convert a time by the machine's clock to a time by `clock`. None stays None."""
    return clock.of_machine(at) if at and isinstance(clock, SteadyClock) else at
