"""Rows of tables that hold each default of the policy to a decision it changes."""

from collections.abc import Callable
from typing import Any, NamedTuple

from lifecycle.decide import Decision
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts
from lifecycle.model.status import Status
from lifecycle.read.availability import Availability

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
    """A default that is one of several."""

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
