"""How much of each budget is spent, for people and programs to see."""

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from lifecycle.budgets import BUDGETS
from lifecycle.facts import Facts
from lifecycle.policy import Policy
from lifecycle.view import View
from lifecycle.wishes import heed

#: In the unit of the budget's limit.
_SPENT: Mapping[str, Callable[[Facts], float]] = {
    "session": lambda facts: facts.spent.cost_usd,
    "hours": lambda facts: facts.spent.active_seconds / 3600,
    "tokens": lambda facts: facts.spent.tokens,
    "issue": lambda facts: facts.spent_ever.cost_usd,
    "day": lambda facts: facts.spent_today.cost_usd,
}


class Bar(Struct, frozen=True, kw_only=True):
    """One budget that has a limit."""

    name: str  #: A row of BUDGETS.
    spent: float
    limit: float
    says: str  #: The limit in words.


def bars(facts: Facts, policy: Policy, now: datetime) -> tuple[Bar, ...]:
    """Every budget of a session that has a limit, raised by what people allowed."""
    view = View(heed(facts, policy, now).facts, policy, now)
    limits = ((row, row.limit(view)) for row in BUDGETS)
    return tuple(
        Bar(
            name=row.name,
            spent=round(_SPENT[row.name](facts), 4),
            limit=limit,
            says=row.says.format(limit=limit),
        )
        for row, limit in limits
        if limit
    )
