"""Computes notifiers' quiet hours and the times of their daily digests, in their time zones."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from config.tables import NotifierSettings


def zone_of(settings: NotifierSettings) -> ZoneInfo | None:
    """Return the time zone of a notifier; None if its name is unknown on this machine."""
    try:
        return ZoneInfo(settings.time_zone)
    except (LookupError, ValueError, OSError):  # Unknown; a path; a folder of zones.
        return None


def is_quiet(settings: NotifierSettings, now: datetime) -> bool:
    """Whether a time is in a notifier's quiet hours, which may last over midnight."""
    if not settings.quiet:
        return False
    return _between(settings.quiet, now.astimezone(zone_of(settings)).time())


def digest_is_quiet(settings: NotifierSettings) -> bool:
    """Whether a notifier's digests are due in its quiet hours."""
    if not settings.quiet or not settings.digest:
        return False
    return _between(settings.quiet, time.fromisoformat(settings.digest))


def last_digest(settings: NotifierSettings, now: datetime) -> datetime | None:
    """Return when a notifier's last digest was due, in its time zone; None without digests.

    On the day that summer time begins, a digest at a skipped time is due an hour later; on the day
    that summer time ends, a digest at a time that comes twice is due at the first of the two.
    """
    if not settings.digest:
        return None
    local = now.astimezone(zone_of(settings))
    at = datetime.combine(local, time.fromisoformat(settings.digest), local.tzinfo)
    # In UTC, because Python compares two times in one zone without their offsets from UTC.
    if at.astimezone(UTC) > now:
        at -= timedelta(days=1)  # The same time of the day before.
    return at


def _between(quiet: str, at: time) -> bool:
    begin, end = map(time.fromisoformat, quiet.split("-"))
    return begin <= at < end if begin <= end else at >= begin or at < end
