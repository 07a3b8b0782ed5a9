"""How much may be asked of GitHub, and from when on: counted for each installation.

Rules: GitHub's "Rate limits and query limits for the GraphQL API" and "Best practices for using the
REST API". What is asked while a limit holds is not sent: GitHub bars those who go on asking.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock

from bot.github.errors import EVERYTHING, Limited, TryLater
from bot.github.snapshots import PointBudget

#: A change waits for its turn in the worker that makes it, but never for more than so many.
_MOST_AHEAD = 2
#: Those who are sent away come back one after the other, spread over so many turns: all of them at
#: once would be sent away again, and cost more than what they wait for.
_MOST_AWAY = 30


class RateLimits:
    """What is left to each account that asks. May be used from any thread.

    An account is an App's installation, or everything a token reaches.
    """

    def __init__(self, clock: Callable[[], datetime], write_interval_seconds: float) -> None:
        self._clock = clock
        self._between = timedelta(seconds=write_interval_seconds)
        self._held: dict[tuple[str, str], Limited] = {}
        self._budgets: dict[str, PointBudget] = {}
        self._turns: dict[str, datetime] = {}
        self._away: dict[str, datetime] = {}  #: When who was sent away last comes back.
        self._lock = Lock()

    @contextmanager
    def guard(self, account: str, resource: str) -> Iterator[None]:
        """Ask GitHub in here. Raises `Limited` while the account has to wait with this resource."""
        self._refuse(account, resource)
        try:
            yield
        except Limited as limit:
            self.hold(account, limit)
            raise

    def hold(self, account: str, limit: Limited) -> None:
        """Ask nothing more of what the limit is of, before it ends."""
        self._held[account, limit.resource] = limit

    def _refuse(self, account: str, resource: str) -> None:
        for what in (resource, EVERYTHING):
            held = self._held.get((account, what))
            if held is not None and held.until > self._clock():
                # It is told many times, and would hold on to everybody it was told to.
                raise held.with_traceback(None)

    def wait_turn(self, account: str, resource: str) -> None:
        """Wait until the account may change something. Raises `TryLater` where many wait.

        Raises `Limited` as `within` where a limit was reached meanwhile.
        """
        with self._lock:
            now = self._clock()
            turn = max(now, self._turns.get(account, now))
            if turn - now > _MOST_AHEAD * self._between:
                raise TryLater("Other changes at GitHub come first.", self._back(account, turn))
            self._turns[account] = turn + self._between
        time.sleep((turn - now).total_seconds())
        self._refuse(account, resource)

    def _back(self, account: str, turn: datetime) -> datetime:
        """When to come back; `turn` is the first that is free."""
        last = self._away.get(account)
        back = max(turn, last + self._between) if last else turn
        self._away[account] = back if back - turn <= _MOST_AWAY * self._between else turn
        return self._away[account]

    def record_points(self, account: str, budget: PointBudget) -> None:
        """GitHub said what is left."""
        self._budgets[account] = budget

    def budget(self, account: str) -> PointBudget | None:
        """What is left of the hour; None: GitHub did not say, or it has begun anew."""
        budget = self._budgets.get(account)
        return budget if budget and budget.reset_at > self._clock() else None
