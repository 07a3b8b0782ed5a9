"""When to look again at what could not be read."""

from datetime import datetime, timedelta

from bot.github.errors import TryLater
from bot.system.clock import Clock
from lifecycle.model.backoff import delay

_FIRST_SECONDS, _MOST_SECONDS = 1.0, 60.0


class Retries:
    """Remembers how often in a row something failed. A restart forgets it, and tries at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[str, int] = {}

    def after(self, what: str, failure: Exception) -> datetime:
        """When to try again: at the time GitHub named, else after a wait that doubles."""
        self._failed[what] = self._failed.get(what, 0) + 1
        if isinstance(failure, TryLater) and failure.at is not None:
            return failure.at
        wait = delay(self._failed[what], _FIRST_SECONDS, _MOST_SECONDS)
        return self._clock() + timedelta(seconds=wait)

    def worked(self, what: str) -> None:
        """It was read; the next failure is a first one."""
        self._failed.pop(what, None)
