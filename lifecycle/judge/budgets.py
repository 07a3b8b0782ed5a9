"""What a session may cost: one row a budget. People are told before one is used up, and then.

A person's `budget +N` allows N dollars more: to the session, to its issue, and for that day to its
repository, as this session sees it. The session's hours and tokens grow in the same proportion;
where its dollars have no limit, each raise allows as many of them once more.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.stalls import Escalation
from lifecycle.model import keys
from lifecycle.model.facts import Command, Facts, Spending
from lifecycle.model.key import Key
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Reason
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import View

_HOUR, _DAY = 3600.0, 86_400.0
# Looked up once: a member of an enumeration costs a search each time it is named.
_ACTIVE = Activity.ACTIVE


class Budget(NamedTuple):
    """One row."""

    name: str
    limit: Callable[[Policy], float]  #: What may be spent; 0: no limit.
    spent: Callable[[Facts], float]
    says: str  #: The budget in words, with `{limit}`.
    unsaid: str = ""  #: The same where the cost is nobody's business; empty: it is no cost.
    of_day: bool = False  #: Whether it begins anew at midnight, UTC.
    dollars: bool = True
    #: How many seconds of the turn that is under way one of its units is; 0: it counts none.
    seconds: float = 0.0


def raised(command: Command) -> float:
    """How many dollars a `budget` command allows; 0 where it says no amount."""
    try:
        amount = float(command.text.removeprefix("+"))
    except ValueError:
        return 0.0
    return amount if 0 < amount < float("inf") else 0.0


def limit_of(row: Budget, view: View) -> float:
    """What may be spent, with what people allowed."""
    limit = row.limit(view.policy)
    if not limit or not view.facts.commands:
        return limit
    since = _today(view) if row.of_day else view.facts.created
    raises = [
        command
        for command in view.facts.commands
        if command.kind == "budget" and command.at >= since
    ]
    dollars = sum(raised(command) for command in raises)
    if row.dollars:
        return limit + dollars
    usd = view.policy.session_usd
    return limit * (1 + (dollars / usd if usd else len(raises)))


def _today(view: View) -> datetime:
    return datetime.combine(view.now.date(), time(), view.now.tzinfo)


BUDGETS: Final = (
    Budget(
        "session",
        lambda policy: policy.session_usd,
        lambda facts: facts.spent.cost_usd,
        "the {limit:.2f} USD of this session",
        "the dollars of this session",
    ),
    Budget(
        "hours",
        lambda policy: policy.session_hours,
        lambda facts: facts.spent.active_seconds / _HOUR,
        "the {limit:g} hours of work of this session",
        dollars=False,
        seconds=_HOUR,
    ),
    Budget(
        "tokens",
        lambda policy: policy.session_tokens,
        lambda facts: facts.spent.tokens,
        "the {limit:,.0f} tokens of this session",
        "the tokens of this session",
        dollars=False,
    ),
    Budget(
        "issue",
        lambda policy: policy.issue_usd,
        lambda facts: facts.spent_ever.cost_usd,
        "the {limit:.2f} USD of this issue",
        "the dollars of this issue",
    ),
    Budget(
        "day",
        lambda policy: policy.day_usd,
        lambda facts: facts.spent_today.cost_usd,
        "today's {limit:.2f} USD of this repository",
        "today's dollars of this repository",
        of_day=True,
    ),
)


@lru_cache(maxsize=256)
def _limits(policy: Policy) -> tuple[tuple[Budget, float], ...]:
    """The budgets a policy limits, and to what; it is the same one at every visit."""
    return tuple((row, limit) for row in BUDGETS if (limit := row.limit(policy)))


def _reached(view: View, part: float) -> Iterator[tuple[Budget, float]]:
    """The budgets of which such a part is spent, with the turn that is under way."""
    facts, agent = view.facts, view.facts.agent
    at_work = agent.activity is _ACTIVE and view.stands is Availability.ACTIVE
    began = agent.since if at_work else None
    limits: Sequence[tuple[Budget, float]] = _limits(view.policy)
    if facts.commands:
        limits = [(row, limit_of(row, view)) for row, _ in limits]
    for row, limit in limits:
        left = limit * part - row.spent(facts)
        if left <= 0 or (began and row.seconds and view.passed(began, left * row.seconds)):
            yield row, limit


def tells_cost(view: View) -> bool:
    """Whether what it cost may be told on GitHub unasked: to members alone, or as policy says."""
    return view.facts.issue.private or view.policy.public_cost


def _named(row: Budget, view: View, limit: float) -> str:
    return row.says.format(limit=limit) if tells_cost(view) or not row.unsaid else row.unsaid


def exhausted(view: View) -> Escalation | None:
    """The first budget that is used up."""
    for row, limit in _reached(view, 1):
        until = "; it goes on by itself at midnight, UTC" if row.of_day else ""
        if row.of_day:
            view.passed(_today(view), _DAY)
        why = f"{_named(row, view, limit)} are used up{until}"
        return Escalation(_key(row, view, limit), Reason.BUDGET_EXHAUSTED, why)
    return None


def nearly(view: View) -> Iterator[tuple[Key, str]]:
    """The budgets people are to be warned of: each with its key and its sentence."""
    part = view.policy.budget_warning
    for row, limit in _reached(view, part):
        yield _key(row, view, limit), f"{part:.0%} of {_named(row, view, limit)} are used"


def left(view: View) -> str:
    """What was spent, and of how much, in a line."""
    facts, usd = view.facts, limit_of(BUDGETS[0], view)
    of = f" of {usd:.2f}" if usd else ""
    without = f" ({facts.spent.unpriced} without a price)" if facts.spent.unpriced else ""
    return (
        f"spent: {facts.spent.cost_usd:.2f}{of} USD, {facts.spent.tokens} tokens{without}, "
        f"{facts.spent.active_seconds / _HOUR:.1f} hours of work"
    )


def cost(spent: Spending) -> str:
    """What was spent, in words: in dollars, and in tokens where nobody knows their price."""
    parts = [f"{spent.cost_usd:.2f} USD"] if spent.cost_usd else []
    if spent.unpriced:
        parts.append(f"{spent.unpriced} tokens without a price")
    return " and ".join(parts) or f"{spent.tokens} tokens"


def _key(row: Budget, view: View, limit: float) -> Key:
    """A budget's own key: each limit of each life, and of each day where it begins anew then."""
    life = view.facts.restored_at
    since = view.now.date().isoformat() if row.of_day else life.isoformat() if life else ""
    return keys.budget(row.name, limit, since)
