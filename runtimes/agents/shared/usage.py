"""Counts the tokens of model responses, and finds out when a usage limit resets."""

import re
from datetime import UTC, datetime, timedelta

from lifecycle.model.facts import Usage

_NOTHING = Usage()
#: `Please try again in 1h2m3.5s`, `Suggested retry after 7200s`.
_IN = re.compile(
    r"\b(?:try again in|retry in|retry after) ((?:\d{1,6}(?:\.\d+)?(?:ms|[hms]))+)", re.IGNORECASE
)
_SPAN = re.compile(r"([\d.]+)(ms|[hms])")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
#: `Access resets at 2:09 AM UTC`, `try again at 2:19 AM`.
_AT = re.compile(r"\b(?:resets|try again) at ((?:1[0-2]|[1-9]):[0-5]\d [AP]M)( UTC)?")
#: Such a time has no seconds: the limit may last until the end of its minute.
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


class UsageCounter:
    """Sums up the usage of a run by model. Counting the same response again changes nothing."""

    def __init__(self) -> None:
        self._responses: dict[str, tuple[str, Usage]] = {}
        self._models: dict[str, Usage] = {}
        self._total: Usage | None = _NOTHING  #: None: `usage` has to sum up again.

    def count(self, response: str, model: str, used: Usage) -> None:
        """Count one response by its id; a later record of the same id replaces the earlier one."""
        before = self._responses.get(response)
        if before == (model, used):
            return
        if before is not None:
            self._add(*before, -1)
        self._responses[response] = (model, used)
        self._add(model, used, 1)

    def usage(self) -> Usage:
        """Return the total and the usage of each model that has a name.

        The total has a cost only if every model has one.
        """
        if self._total is None:
            used = self._models.values()
            costs = [each.cost_usd for each in used if each.cost_usd is not None]
            self._total = Usage(
                input=sum(each.input for each in used),
                output=sum(each.output for each in used),
                cache_read=sum(each.cache_read for each in used),
                cache_write=sum(each.cache_write for each in used),
                reasoning=sum(each.reasoning for each in used),
                cost_usd=round(sum(costs), 6) if len(costs) == len(used) else None,
                models={name: each for name, each in self._models.items() if name},
            )
        return self._total

    def _add(self, model: str, used: Usage, times: int) -> None:
        before = self._models.get(model, _NOTHING)
        costs = [cost for cost in (before.cost_usd, used.cost_usd) if cost is not None]
        more = (used.cost_usd or 0.0) * times
        self._models[model] = Usage(
            input=before.input + used.input * times,
            output=before.output + used.output * times,
            cache_read=before.cache_read + used.cache_read * times,
            cache_write=before.cache_write + used.cache_write * times,
            reasoning=before.reasoning + used.reasoning * times,
            cost_usd=round((before.cost_usd or 0.0) + more, 6) if costs else None,
        )
        self._total = None


def limit_reset(text: str, at: datetime | None) -> datetime | None:
    """When the usage limit in an error message of the time `at` resets; None if unknown.

    Understands the sentences of the providers' APIs and of the programs, as recorded in
    `tests/runtimes/recordings`. A clock time without a zone is this machine's local time.
    """
    if at is None:
        return None
    if span := _IN.search(text):
        parts = _SPAN.findall(span[1])
        return at + timedelta(seconds=sum(float(many) * _SECONDS[each] for many, each in parts))
    named = _AT.search(text)
    if named is None:
        return None
    here = at.astimezone(UTC if named[2] else None)
    clock = datetime.strptime(named[1], "%I:%M %p").replace(tzinfo=here.tzinfo)
    until = datetime.combine(here, clock.timetz()) + _MINUTE
    return (until if until > here else until + _DAY).astimezone(UTC)
