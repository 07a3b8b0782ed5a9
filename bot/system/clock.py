"""The bot's only clock; all other code gets the time as an argument."""

from collections.abc import Callable
from datetime import UTC, datetime

#: Returns the current time, with a time zone.
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)
