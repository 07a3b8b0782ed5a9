"""Keeps GitHub's rate limits, separately for each installation, and backs off after failures.

While a limit is exhausted, no requests are sent: GitHub may ban clients that keep sending them.
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock

from bot.github.errors import EVERYTHING, Limited, TryLater, exhausted_limit
from bot.github.snapshots import PointBudget
from bot.system.clock import Clock
from bot.system.metrics import show_rate_limit
from lifecycle.model.policy import delay

#: A write sleeps until its turn if at most this many writes are ahead. Otherwise it is deferred.
_MAX_AHEAD = 2
#: Deferred writes are spread over this many turns: if all were retried at once, most of them
#: would be deferred again.
_MAX_DEFERRED = 30
#: Bounds of the wait after failures, in seconds.
_FIRST_SECONDS, _MOST_SECONDS = 1.0, 60.0


class RateLimits:
    """The rate limits of each account. Thread-safe.

    An account is an installation of the App, or the App itself; with a token, there is one account,
    named "".
    """

    def __init__(self, clock: Clock, write_interval_seconds: float) -> None:
        self._clock = clock
        self._interval = timedelta(seconds=write_interval_seconds)
        self._held: dict[tuple[str, str], Limited] = {}
        self._budgets: dict[str, PointBudget] = {}
        self._turns: dict[str, datetime] = {}
        self._deferred: dict[str, datetime] = {}  #: When the last deferred write is to be retried.
        self._lock = Lock()

    @contextmanager
    def guard(self, account: str, resource: str) -> Iterator[None]:
        """Run the block, which sends a request. A `Limited` that it raises is remembered.

        Raises:
            Limited: the account's limit for this resource is exhausted; the block is not run.
        """
        self._refuse(account, resource)
        try:
            yield
        except Limited as limit:
            self.hold(account, limit)
            raise

    def note(
        self, account: str, resource: str, request: object, headers: Mapping[str, str]
    ) -> None:
        """Export the remaining requests as a metric. If none are left, refuse further requests."""
        show_rate_limit(account or "token", resource, headers)
        label = f"{request} was the last request allowed."
        if limit := exhausted_limit(label, headers, self._clock(), resource):
            self.hold(account, limit)

    def hold(self, account: str, limit: Limited) -> None:
        """Refuse all requests for the resource of `limit` until the limit ends."""
        self._held[account, limit.resource] = limit

    def _refuse(self, account: str, resource: str) -> None:
        for what in (resource, EVERYTHING):
            held = self._held.get((account, what))
            if held is not None and held.until > self._clock():
                # One exception is raised often: its traceback would keep all callers' frames alive.
                raise held.with_traceback(None)

    def wait_turn(self, account: str, resource: str) -> None:
        """Sleep until the account may write.

        Raises:
            TryLater: too many writes wait already; its `at` says when to retry.
            Limited: a rate limit is exhausted when the turn comes.
        """
        with self._lock:
            now = self._clock()
            turn = max(now, self._turns.get(account, now))
            if turn - now > _MAX_AHEAD * self._interval:
                raise TryLater(
                    "GitHub write throttle: other writes come first.", self._back(account, turn)
                )
            self._turns[account] = turn + self._interval
        time.sleep((turn - now).total_seconds())
        self._refuse(account, resource)

    def _back(self, account: str, turn: datetime) -> datetime:
        """Return when to retry a deferred write: at `turn`, or later so that retries are spread.

        `turn` is the earliest time at which the account may send another write.
        """
        last = self._deferred.get(account)
        back = max(turn, last + self._interval) if last else turn
        self._deferred[account] = back if back - turn <= _MAX_DEFERRED * self._interval else turn
        return self._deferred[account]

    def record_points(self, account: str, budget: PointBudget) -> None:
        """Record how many GraphQL points GitHub says are left."""
        self._budgets[account] = budget

    def budget(self, account: str) -> PointBudget | None:
        """Return the GraphQL points left in this hour; None if unknown or the hour is over."""
        budget = self._budgets.get(account)
        return budget if budget and budget.reset_at > self._clock() else None


class Backoff:
    """Counts consecutive failures by the name of what failed. A restart forgets them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[str, int] = {}

    def next_try(self, name: str, failure: Exception) -> datetime:
        """Count a failure; return when to retry: at `TryLater.at` if set, else with backoff."""
        self._failed[name] = self._failed.get(name, 0) + 1
        if isinstance(failure, TryLater) and failure.at is not None:
            return failure.at
        pause = delay(self._failed[name], _FIRST_SECONDS, _MOST_SECONDS)
        return self._clock() + timedelta(seconds=pause)

    def reset(self, name: str) -> None:
        """Forget the failures of `name`, after a success."""
        self._failed.pop(name, None)
