"""What a session has cost over time, by model, with the budgets that limit it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from bot.show.plots import Column, Plot, plot
from bot.show.session_summary import BudgetUsage
from bot.store import STEP_SECONDS, UsageStep
from bot.text import page_text
from lifecycle.model.times import from_seconds

#: The budgets that a line is drawn for.
_DRAWN: Final = ("session", "issue")
#: A budget of more than this many times the cost gets no line, because so high a line would
#: flatten the chart.
_IN_REACH: Final = 4.0
#: The colours of the models that cost most, and the one colour of all others.
_TONES: Final = ("busy", "landed", "good", "warn")
_OTHER: Final = "other"
_COLUMNS: Final = 60  #: The most columns of a chart, approximately.
_HOUR, _DAY = 3600, 86_400
#: The possible lengths of a column, in seconds. Longer columns have a whole number of weeks.
_LENGTHS: Final = (STEP_SECONDS, _HOUR // 2, _HOUR, 3 * _HOUR, 12 * _HOUR, _DAY)


class ModelCost(Struct, frozen=True, kw_only=True):
    """The use of one model by all runs of a session."""

    name: str  #: If empty, the agent does not name its models.
    tone: str  #: The CSS class of its colour.
    cost_usd: float
    tokens: int
    unpriced: int


class CostOverTime(Struct, frozen=True, kw_only=True):
    """A chart in which each column shows what a session had cost at the column's end."""

    plot: Plot
    begins: datetime
    ends: datetime
    models: tuple[ModelCost, ...]  #: The one that cost most first.
    lines: tuple[str, ...]  #: The budgets that have a line, in words.
    above: tuple[str, ...]  #: The budgets that are above the chart, in words.


def cost_over_time(
    steps: Sequence[UsageStep], budgets: Sequence[BudgetUsage], cost_usd: float
) -> CostOverTime | None:
    """Return the chart of a session's cost, or None if the session has used no model.

    `steps` are the session's costs in short intervals, the earliest first, and `budgets` its
    budgets. `cost_usd` is the cost of all its runs, which may differ from what a budget counts.
    """
    if not steps:
        return None
    models = _models(steps)
    first, last = steps[0].at, steps[-1].at
    length = _length(last - first + STEP_SECONDS)
    begin = first // length * length
    sums, columns, left = dict.fromkeys((*_TONES, _OTHER), 0.0), list[Column](), list(steps)
    tones = {one.name: one.tone for one in models}
    for end in range(begin + length, last + length + 1, length):
        while left and left[0].at < end:
            step = left.pop(0)
            sums[tones[page_text.line(step.model)]] += step.cost_usd
        says = f"${sum(sums.values()):,.2f} until {_time(end):%Y-%m-%d %H:%M} UTC"
        columns.append(Column(says, tuple(sums.items())))
    limits = [(one.says, one.limit - one.spent + cost_usd) for one in budgets if one.name in _DRAWN]
    near = [one for one in limits if one[1] <= cost_usd * _IN_REACH]
    return CostOverTime(
        plot=plot(columns, near),
        begins=_time(begin),
        ends=_time(begin + length * len(columns)),
        models=models,
        lines=tuple(says for says, _ in near),
        above=tuple(one[0] for one in limits if one not in near),
    )


def _models(steps: Sequence[UsageStep]) -> tuple[ModelCost, ...]:
    names = dict.fromkeys(page_text.line(step.model) for step in steps)
    sums = {name: [one for one in steps if page_text.line(one.model) == name] for name in names}
    most = sorted(sums, key=lambda name: -sum(one.cost_usd for one in sums[name]))
    tones = [*_TONES, *[_OTHER] * len(most)]
    return tuple(
        ModelCost(
            name=name,
            tone=tone,
            cost_usd=sum(one.cost_usd for one in sums[name]),
            tokens=sum(one.tokens for one in sums[name]),
            unpriced=sum(one.unpriced for one in sums[name]),
        )
        for name, tone in zip(most, tones, strict=False)
    )


def _length(seconds: int) -> int:
    """Return the shortest column length, in seconds, at which `_COLUMNS` columns span `seconds`."""
    week = 7 * _DAY
    fits = (one for one in _LENGTHS if one * _COLUMNS >= seconds)
    return next(fits, -(-seconds // (week * _COLUMNS)) * week)


def _time(seconds: int) -> datetime:
    return from_seconds(seconds)
