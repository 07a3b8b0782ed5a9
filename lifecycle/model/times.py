"""Converts any number or text to a time or a duration, without raising.

A file's modification time, a number that an agent wrote or the sum of two times may lie beyond the
calendar, where `datetime` raises.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

#: The bounds of plausible times, far enough from the ends of the calendar for time zones and waits.
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
_MOST_SECONDS: Final = LATEST.timestamp()
_LONGEST: Final = timedelta(days=999_999_999)  #: Its negative does not overflow either.
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def from_seconds(seconds: float) -> datetime:
    """Return the time `seconds` after the start of 1970 UTC, or the nearest plausible one.

    For NaN, returns the earliest.
    """
    if 0 <= seconds <= _MOST_SECONDS:
        return datetime.fromtimestamp(seconds, UTC)  # noqa: TID251
    return LATEST if seconds > 0 else EARLIEST  # Of NaN too.


def from_text(text: str) -> datetime | None:
    """Parse a time with a zone in the format of ISO 8601; None if it is invalid or implausible."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo and is_plausible(at) else None


def is_plausible(at: datetime) -> bool:
    """Whether a time lies between EARLIEST and LATEST, inclusive. It must have a zone."""
    return EARLIEST <= at <= LATEST


@lru_cache(maxsize=1024)
def span(seconds: float) -> timedelta:
    """Return `seconds` as a duration; for NaN or a number out of range, the longest duration.

    Cached, because most durations are thresholds of a policy and the same in every decision.
    """
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):  # Longer than there are dates, or no number.
        return _LONGEST


def shifted(at: datetime, by: timedelta) -> datetime:
    """Return `at` plus `by`; if the sum is out of range, the last or the first possible time."""
    try:
        return at + by
    except OverflowError:
        return _LAST if by > timedelta() else _FIRST
