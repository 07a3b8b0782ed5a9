"""When a usage limit resets, in the words of programs and of their models' providers."""

import re
from datetime import UTC, datetime, timedelta

#: `Please try again in 1h2m3.5s`, `Suggested retry after 7200s`.
_IN = re.compile(
    r"\b(?:try again in|retry in|retry after) ((?:\d{1,6}(?:\.\d+)?(?:ms|[hms]))+)", re.IGNORECASE
)
_SPAN = re.compile(r"([\d.]+)(ms|[hms])")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
#: `Access resets at 2:09 AM UTC`, `try again at 2:19 AM`.
_AT = re.compile(r"\b(?:resets|try again) at ((?:1[0-2]|[1-9]):[0-5]\d [AP]M)( UTC)?")
#: It names no seconds: the whole minute is waited for.
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


def resets(text: str, at: datetime | None) -> datetime | None:
    """When a limit ends of which this was said at a moment; None where either has no time."""
    if at is None:
        return None
    if span := _IN.search(text):
        parts = _SPAN.findall(span[1])
        return at + timedelta(seconds=sum(float(many) * _SECONDS[each] for many, each in parts))
    named = _AT.search(text)
    if named is None:
        return None
    # Without a zone that is known it is this machine's time, which its programs tell.
    here = at.astimezone(UTC if named[2] else None)
    clock = datetime.strptime(named[1], "%I:%M %p").replace(tzinfo=here.tzinfo)
    until = datetime.combine(here, clock.timetz()) + _MINUTE
    return (until if until > here else until + _DAY).astimezone(UTC)
