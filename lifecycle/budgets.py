"""What a session may cost: one row a budget. People are told before one is used up, and then.

A person's `budget +N` allows N dollars more: to the session, to its issue, and for that day to its
repository. The hours and tokens of the session grow in the same proportion.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, time
from typing import Final, NamedTuple

from lifecycle.facts import Wish
from lifecycle.signals import Talk
from lifecycle.stalls import Escalation
from lifecycle.status import Reason
from lifecycle.view import View

_HOUR, _DAY = 3600.0, 86_400.0


class Budget(NamedTuple):
    """One row."""

    name: str
    limit: Callable[[View], float]  #: What may be spent; 0: no limit.
    reached: Callable[[View, float], bool]  #: Whether so much is spent.
    says: str  #: The budget in words, with `{limit}`.
    of_day: bool = False  #: Whether it begins anew at midnight, UTC.


def raised(wish: Wish) -> float:
    """How many dollars a `budget` wish allows; 0 where it says no amount."""
    try:
        amount = float(wish.text.removeprefix("+"))
    except ValueError:
        return 0.0
    return amount if 0 < amount < float("inf") else 0.0


def _raises(view: View, since: datetime | None = None) -> float:
    wishes = view.facts.wishes
    return sum(
        raised(wish)
        for wish in wishes
        if wish.kind == "budget" and (since is None or wish.at >= since)
    )


def _grown(view: View) -> float:
    """By how much the limits that are no dollars have grown."""
    dollars = view.policy.session_usd
    return 1 + _raises(view) / dollars if dollars and view.facts.wishes else 1


def _worked(view: View, hours: float) -> bool:
    """Whether the agent was at work for so long, with the turn that is under way."""
    left = hours * _HOUR - view.facts.spent.active_seconds
    since = view.facts.agent.since
    if left <= 0 or since is None or view.talk is not Talk.ACTIVE:
        return left <= 0
    return view.passed(since, left)


def _today(view: View) -> datetime:
    return datetime.combine(view.now.date(), time(), view.now.tzinfo)


BUDGETS: Final = (
    Budget(
        "session",
        lambda view: view.policy.session_usd and view.policy.session_usd + _raises(view),
        lambda view, usd: view.facts.spent.cost_usd >= usd,
        "the {limit:.2f} USD of this session",
    ),
    Budget(
        "hours",
        lambda view: view.policy.session_hours * _grown(view),
        _worked,
        "the {limit:g} hours of work of this session",
    ),
    Budget(
        "tokens",
        lambda view: view.policy.session_tokens * _grown(view),
        lambda view, tokens: view.facts.spent.tokens >= tokens,
        "the {limit:.0f} tokens of this session",
    ),
    Budget(
        "issue",
        lambda view: view.policy.issue_usd and view.policy.issue_usd + _raises(view),
        lambda view, usd: view.facts.spent_ever.cost_usd >= usd,
        "the {limit:.2f} USD of this issue",
    ),
    Budget(
        "day",
        lambda view: view.policy.day_usd and view.policy.day_usd + _raises(view, _today(view)),
        lambda view, usd: view.facts.spent_today.cost_usd >= usd,
        "today's {limit:.2f} USD of this repository",
        of_day=True,
    ),
)


def exhausted(view: View) -> Escalation | None:
    """The first budget that is used up."""
    for row in BUDGETS:
        limit = row.limit(view)
        if limit and row.reached(view, limit):
            until = "; it goes on by itself at midnight, UTC" if row.of_day else ""
            if row.of_day:
                view.passed(_today(view), _DAY)
            why = f"{row.says.format(limit=limit)} are used up{until}"
            return Escalation(_key(row, view, limit), Reason.BUDGET_EXHAUSTED, why)
    return None


def nearly(view: View) -> Iterator[tuple[str, str]]:
    """The budgets people are to be warned of: each with its key and its sentence."""
    part = view.policy.budget_warning
    for row in BUDGETS:
        limit = row.limit(view)
        if limit and row.reached(view, limit * part):
            yield _key(row, view, limit), f"{part:.0%} of {row.says.format(limit=limit)} are used"


def left(view: View) -> str:
    """What was spent, and of how much, in a line."""
    facts, usd = view.facts, BUDGETS[0].limit(view)
    of = f" of {usd:.2f}" if usd else ""
    return (
        f"spent: {facts.spent.cost_usd:.2f}{of} USD, {facts.spent.tokens} tokens, "
        f"{facts.spent.active_seconds / _HOUR:.1f} hours of work"
    )


def _key(row: Budget, view: View, limit: float) -> str:
    """A budget's own key: each limit of each life, and of each day where it begins anew then."""
    life = view.facts.restored_at
    since = view.now.date().isoformat() if row.of_day else life.isoformat() if life else ""
    return f"budget:{row.name}:{limit:g}:{since}"
