"""Budgets: the limits on what a session may cost. People are warned before one is used up.

A person's `budget +N` raises the session's dollars, its issue's, and those of its repository for
that day (for this session only) by N. The session's hours and tokens grow in the same proportion;
if its dollars have no limit, each raise adds their original limit once more.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model import keys
from lifecycle.model.facts import Command, Facts, Spending
from lifecycle.model.key import Key
from lifecycle.model.policy import Policy

_HOUR, _DAY = 3600.0, timedelta(days=1)


class Budget(NamedTuple):
    """One kind of budget."""

    name: str
    limit: Callable[[Policy], float]  #: What may be spent; 0: no limit.
    spent: Callable[[Facts], float]
    says: str  #: The budget in words, with `{limit}`.
    #: `says` without amounts, for public repositories; empty: `says` has no cost.
    unsaid: str = ""
    of_day: bool = False  #: Whether it is reset at midnight, UTC.
    dollars: bool = True
    #: Seconds in one unit, for budgets that count the turn in progress; 0 for others.
    seconds: float = 0.0


class ReachedBudget(NamedTuple):
    """A budget whose warning threshold is reached, with its limit."""

    row: Budget
    limit: float


class BudgetState(Struct, frozen=True):
    """The budgets that are used up or nearly so, and when the next change is due."""

    exhausted: tuple[ReachedBudget, ...] = ()
    nearly: tuple[ReachedBudget, ...] = ()  #: With those that are used up.
    changes_at: datetime | None = None  #: None: not without new facts.


def raised(command: Command) -> float:
    """Return how many dollars a `budget` command adds; 0 if it names no valid amount."""
    try:
        amount = float(command.text.removeprefix("+"))
    except ValueError:
        return 0.0
    return amount if 0 < amount < float("inf") else 0.0


def limit_of(row: Budget, facts: Facts, policy: Policy, now: datetime) -> float:
    """Return the limit of a budget, including people's raises."""
    limit = row.limit(policy)
    if not limit or not facts.commands:
        return limit
    since = start_of_day(now) if row.of_day else facts.created
    raises = [
        command for command in facts.commands if command.kind == "budget" and command.at >= since
    ]
    dollars = sum(raised(command) for command in raises)
    if row.dollars:
        return limit + dollars
    usd = policy.session_usd
    return limit * (1 + (dollars / usd if usd else len(raises)))


def start_of_day(now: datetime) -> datetime:
    """Return the last midnight in the zone of `now`."""
    return datetime.combine(now.date(), time(), now.tzinfo)


def end_of_day(now: datetime) -> datetime:
    """Return the next midnight in the zone of `now`."""
    return start_of_day(now) + _DAY


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
    """Return the budgets that a policy limits, with their limits; cached for speed."""
    return tuple((row, limit) for row in BUDGETS if (limit := row.limit(policy)))


def budget_state(facts: Facts, policy: Policy, now: datetime, turn: datetime | None) -> BudgetState:
    """Compare what was spent with every limit. `turn`: when the turn in progress began."""
    part = policy.budget_warning
    limits: Sequence[tuple[Budget, float]] = _limits(policy)
    if facts.commands:
        limits = [(row, limit_of(row, facts, policy, now)) for row, _ in limits]
    state = UNREACHED
    for row, limit in limits:
        spent, warned_from = row.spent(facts), limit * part
        if turn is None and spent < warned_from:
            continue
        warned, used_up = spent >= warned_from, spent >= limit
        if turn is not None and row.seconds and not used_up:
            warned_at = turn + timedelta(seconds=(warned_from - spent) * row.seconds)
            used_up_at = turn + timedelta(seconds=(limit - spent) * row.seconds)
            warned, used_up = warned or now >= warned_at, now >= used_up_at
            ahead = [at for at in (warned_at, used_up_at) if at > now]
            state = replace(state, changes_at=min(ahead, default=None))
        if warned:
            reached = (ReachedBudget(row, limit),)
            exhausted = state.exhausted + reached if used_up else state.exhausted
            state = replace(state, exhausted=exhausted, nearly=state.nearly + reached)
    return state


#: No budget is used up, or nearly.
UNREACHED: Final = BudgetState()


def shows_cost(facts: Facts, policy: Policy) -> bool:
    """Whether costs may be posted on GitHub: in a private repository, or if the policy says so."""
    return facts.issue.private or policy.public_cost


def describe(reached: ReachedBudget, facts: Facts, policy: Policy) -> str:
    """The budget in words, with its limit if the cost may be posted."""
    row = reached.row
    public = shows_cost(facts, policy) or not row.unsaid
    return row.says.format(limit=reached.limit) if public else row.unsaid


def budget_key(reached: ReachedBudget, facts: Facts, now: datetime) -> Key:
    """The key of a budget: one for each limit of each restore, and of each day if it is daily."""
    restored = facts.restored_at
    day = now.date().isoformat() if reached.row.of_day else ""
    since = day or (restored.isoformat() if restored else "")
    return keys.budget(reached.row.name, reached.limit, since)


def spending_line(facts: Facts, policy: Policy, now: datetime) -> str:
    """Return the session's spending, with its dollar limit, in one line."""
    usd = limit_of(BUDGETS[0], facts, policy, now)
    of = f" of {usd:.2f}" if usd else ""
    without = f" ({facts.spent.unpriced} without a price)" if facts.spent.unpriced else ""
    return (
        f"spent: {facts.spent.cost_usd:.2f}{of} USD, {facts.spent.tokens} tokens{without}, "
        f"{facts.spent.active_seconds / _HOUR:.1f} hours of work"
    )


def cost(spent: Spending) -> str:
    """Return the spending in words: dollars, and tokens whose price is unknown."""
    parts = [f"{spent.cost_usd:.2f} USD"] if spent.cost_usd else []
    if spent.unpriced:
        parts.append(f"{spent.unpriced} tokens without a price")
    return " and ".join(parts) or f"{spent.tokens} tokens"
