"""Exponential backoff for reads of GitHub that fail."""

from datetime import datetime, timedelta

from bot.github.errors import TryLater
from bot.system.clock import Clock
from lifecycle.model.policy import delay

_FIRST_SECONDS, _MOST_SECONDS = 1.0, 60.0


class Backoff:
    """Counts consecutive failures by name, in memory: a restart tries everything at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed: dict[str, int] = {}

    def next_try(self, name: str, http_failure: Exception) -> datetime:
        """Count a failure and return when to retry: at the time GitHub named, or with backoff."""
        self._failed[name] = self._failed.get(name, 0) + 1
        if isinstance(http_failure, TryLater) and http_failure.at is not None:
            return http_failure.at
        pause = delay(self._failed[name], _FIRST_SECONDS, _MOST_SECONDS)
        return self._clock() + timedelta(seconds=pause)

    def reset(self, name: str) -> None:
        """Forget the failures after a success."""
        self._failed.pop(name, None)
