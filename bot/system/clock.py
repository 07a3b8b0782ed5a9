"""The one clock of the bot; everything else is given the time."""

from collections.abc import Callable
from datetime import UTC, datetime

#: Tells the time, with its zone.
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Now."""
    return datetime.now(UTC)
