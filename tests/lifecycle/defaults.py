"""Rows of test tables; each pairs a default of the policy with a decision that depends on it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lifecycle.decide import Decision
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts, Spending
from lifecycle.model.status import Status
from lifecycle.read.availability import Availability
from tests.lifecycle.universe import facts

Reading = Callable[[Decision], object]


class Threshold(NamedTuple):
    """A default that counts or measures something."""

    default: float
    given: Callable[[float], Facts]  #: A session with so much of it.
    reading: Reading
    below: object
    at: object
    step: float = 1  #: The least that makes a difference.
    also: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Choice(NamedTuple):
    """A setting's default, and another value that changes a decision."""

    default: object
    other: object
    given: Facts
    reading: Reading
    says: object
    otherwise: object
    also: dict[str, Any] = {}  # noqa: RUF012 - never changed


def status(decision: Decision) -> Status:
    return decision.status


def availability(decision: Decision) -> Availability:
    return decision.signals.availability


def orders(beginning: str) -> Reading:
    """Whether an action with this key prefix is ordered."""
    return lambda decision: any(str(a.key).startswith(beginning) for a in decision.actions)


def of_action(kind: str, field: str) -> Reading:
    """A field of the action with this key prefix."""
    return lambda decision: next(
        getattr(a, field) for a in decision.actions if str(a.key).startswith(kind)
    )


def reported_cost(decision: Decision) -> str:
    """The cost in the report on the issue."""
    return next(a.summary.cost for a in decision.actions if isinstance(a, do.Report))


#: The budgets without a limit by default, and what a limit of 9 changes; and how tokens count.
BUDGET_CHOICES = {
    "unpriced_usd": Choice(
        5.0,
        4.0,
        facts(spent=Spending(unpriced=1_000_000)),
        status,
        Status.PAUSED,
        Status.WORKING,
    ),
    **{
        f"{scope}_{kind}": Choice(
            0, 9, facts(**{field: spent}), status, Status.WORKING, Status.PAUSED
        )
        for scope, field in (
            ("issue", "spent_ever"),
            ("day", "spent_today"),
            ("person", "spent_by_person"),
            ("agent", "spent_by_agent"),
        )
        for kind, spent in (
            ("usd", Spending(cost_usd=9)),
            ("hours", Spending(active_seconds=9 * 3600)),
            ("tokens", Spending(tokens=9)),
        )
        if (scope, kind) != ("day", "usd")
    },
}
