"""Counts the tokens of model responses, and finds out when a usage limit resets."""

import re
from datetime import UTC, datetime, timedelta
from functools import reduce

from msgspec.structs import replace

from lifecycle.model.facts import Usage
from lifecycle.model.times import shifted, span
from runtimes.agents.shared.files import Newest

_NOTHING = Usage()
#: Upper limits: the responses that are known by their id, the models, and the characters that are
#: kept of an id or of a model's name.
_RESPONSES, _MODELS, _NAME = 20_000, 50, 200
#: `Please try again in 1h2m3.5s`, `Suggested retry after 7200s`.
_IN = re.compile(
    r"\b(?:try again in|retry in|retry after) ((?:\d{1,6}(?:\.\d+)?(?:ms|[hms]))+)", re.IGNORECASE
)
_SPAN = re.compile(r"([\d.]+)(ms|[hms])")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
#: `Access resets at 2:09 AM UTC`, `try again at 2:19 AM`.
_AT = re.compile(r"\b(?:resets|try again) at ((?:1[0-2]|[1-9]):[0-5]\d [AP]M)( UTC)?")
#: Clock times in messages have no seconds, so the limit may last until the end of the minute.
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)


class UsageCounter:
    """Sums up the usage of a run by model. A response that is recorded repeatedly counts once."""

    def __init__(self) -> None:
        self._responses = Newest[str, tuple[str, Usage]](_RESPONSES)
        self._models: dict[str, Usage] = {}
        self._total: Usage | None = _NOTHING  #: If None, `usage` has to sum up again.

    def count(self, response: str, model: str, used: Usage) -> None:
        """Count one response by its id; a later record of the same id replaces the earlier one.

        The first 50 models are counted by name, further ones together without a name.
        """
        response, model = response[:_NAME], model[:_NAME]
        if model not in self._models and len(self._models) >= _MODELS:
            model = ""
        before = self._responses.get(response)
        if before == (model, used):
            return
        if before is not None:
            self._add(*before, -1)
        self._responses[response] = (model, used)
        self._add(model, used)

    def usage(self) -> Usage:
        """Return the total, and the usage of each model that has a name.

        The total has a cost only if every model has a cost.
        """
        if self._total is None:
            used = self._models.values()
            total = reduce(_sum, used)
            if any(each.cost_usd is None for each in used):
                total = replace(total, cost_usd=None)
            models = {name: each for name, each in self._models.items() if name}
            self._total = replace(total, models=models)
        return self._total

    def _add(self, model: str, used: Usage, times: int = 1) -> None:
        self._models[model] = _sum(self._models.get(model, _NOTHING), used, times)
        self._total = None


def _sum(one: Usage, other: Usage, times: int = 1) -> Usage:
    """Return `one` + `times` * `other`. The sum has a cost if `one` or `other` has one."""
    costs = [each for each in (one.cost_usd, other.cost_usd) if each is not None]
    cost = (one.cost_usd or 0.0) + (other.cost_usd or 0.0) * times
    return Usage(
        input=one.input + other.input * times,
        output=one.output + other.output * times,
        cache_read=one.cache_read + other.cache_read * times,
        cache_write=one.cache_write + other.cache_write * times,
        reasoning=one.reasoning + other.reasoning * times,
        cost_usd=round(cost, 6) if costs else None,
    )


def limit_reset(text: str, at: datetime | None) -> datetime | None:
    """Return when the usage limit in an error message resets, or None if the message does not say.

    `at` is the time of the message; without it the result is None. Understands the sentences of the
    providers' APIs and of the programs, as recorded in `tests/runtimes/recordings`. A clock time
    without a zone is this machine's local time.
    """
    if at is None:
        return None
    if wait := _IN.search(text):
        parts = _SPAN.findall(wait[1])
        return shifted(at, span(sum(float(many) * _SECONDS[each] for many, each in parts)))
    named = _AT.search(text)
    if named is None:
        return None
    here = at.astimezone(UTC if named[2] else None)
    clock = datetime.strptime(named[1], "%I:%M %p").replace(tzinfo=here.tzinfo)
    until = datetime.combine(here, clock.timetz()) + _MINUTE
    return (until if until > here else until + _DAY).astimezone(UTC)
