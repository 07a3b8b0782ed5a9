"""Budgets and their use, for display."""

from datetime import datetime

from msgspec import Struct

from lifecycle.judge.commands import apply_commands
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy
from lifecycle.read.budgets import BUDGETS, limit_of


class BudgetUsage(Struct, frozen=True, kw_only=True):
    """A budget with a limit."""

    name: str  #: A row of BUDGETS.
    spent: float
    limit: float
    says: str  #: The limit in words.


def budget_usage(facts: Facts, policy: Policy, now: datetime) -> tuple[BudgetUsage, ...]:
    """Return the budgets of a session that have a limit, with raises by `budget` commands."""
    applied = apply_commands(facts, policy, now).facts
    limits = ((row, limit_of(row, applied, policy, now)) for row in BUDGETS)
    return tuple(
        BudgetUsage(
            name=row.name,
            spent=round(row.spent(facts), 4),
            limit=limit,
            says=row.says.format(limit=limit),
        )
        for row, limit in limits
        if limit
    )
