"""Budgets: the limits on what a session may cost. People are warned before one is used up.

A person's command `budget +N` raises every budget in dollars by N, only for this session, and daily
budgets only for that day. Budgets of hours and tokens grow in the proportion in which the session's
dollars grow. If dollars have no limit, each command adds the original limit of hours and tokens.
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
from lifecycle.model.times import shifted, span

_HOUR, _DAY = 3600.0, timedelta(days=1)


class Budget(NamedTuple):
    """One kind of budget: dollars, hours or tokens of one scope."""

    name: str
    setting: str  #: The field of the policy with the limit.
    spent: Callable[[Facts, Policy], float]  #: In the unit of the limit.
    says: str  #: The budget in words, with `{limit}`.
    #: The sentence without amounts, for public repositories. Empty if `says` reveals no cost.
    unsaid: str = ""
    of_day: bool = False  #: Whether it is reset at midnight, UTC.
    dollars: bool = True  #: Whether the unit is US dollars.
    #: Seconds in one unit of a budget of time, which counts the turn in progress. 0 for other
    #: budgets.
    seconds: float = 0.0

    def limit(self, policy: Policy) -> float:
        """Return the limit that a policy sets, without raises by commands; 0 if there is none."""
        return float(getattr(policy, self.setting))


class ReachedBudget(NamedTuple):
    """A budget whose warning threshold is reached, with its limit."""

    row: Budget
    limit: float  #: With raises, in the budget's unit.


class BudgetState(Struct, frozen=True):
    """The budgets that have reached their warning threshold or their limit."""

    exhausted: tuple[ReachedBudget, ...] = ()  #: Those that have reached their limit.
    nearly: tuple[ReachedBudget, ...] = ()  #: Those that have reached the threshold, or the limit.
    #: When the turn in progress reaches the next threshold or limit. None if only new facts can
    #: reach it.
    changes_at: datetime | None = None


def raised(command: Command) -> float:
    """Return how many US dollars a `budget` command adds; 0 if it names no valid amount."""
    try:
        amount = float(command.text.removeprefix("+"))
    except ValueError:
        return 0.0
    return amount if 0 < amount < float("inf") else 0.0


def limit_of(row: Budget, facts: Facts, policy: Policy, now: datetime) -> float:
    """Return a budget's limit for a session, including raises by command; 0 means no limit."""
    usd = facts.budget_usd or policy.session_usd
    limit = usd if row is BUDGETS[0] else row.limit(policy)
    if not limit or not facts.commands:
        return limit
    since = start_of_day(now) if row.of_day else facts.created
    raises = [
        command for command in facts.commands if command.kind == "budget" and command.at >= since
    ]
    dollars = sum(raised(command) for command in raises)
    if row.dollars:
        return limit + dollars
    return limit * (1 + (dollars / usd if usd else len(raises)))


def start_of_day(now: datetime) -> datetime:
    """Return the last midnight in the time zone of `now`."""
    return datetime.combine(now.date(), time(), now.tzinfo)


def end_of_day(now: datetime) -> datetime:
    """Return the next midnight in the time zone of `now`."""
    return shifted(start_of_day(now), _DAY)


class _Scope(NamedTuple):
    """The sessions or runs whose spending a budget counts together."""

    name: str  #: The prefix of its settings `NAME_usd`, `NAME_hours` and `NAME_tokens`.
    spent: Callable[[Facts], Spending]
    says: str  #: Its budgets in words; `%` stands for the kind of budget, such as `token budget`.
    of_day: bool = False


def _spent_on_issue(facts: Facts) -> Spending:
    one, others = facts.spent_ever, facts.spent_beside
    return Spending(
        cost_usd=one.cost_usd + others.cost_usd,
        tokens=one.tokens + others.tokens,
        unpriced=one.unpriced + others.unpriced,
        active_seconds=one.active_seconds + others.active_seconds,
    )


_SESSION = _Scope("session", lambda facts: facts.spent, "this session's %")
_ISSUE = _Scope("issue", _spent_on_issue, "this issue's %")
_REPOSITORY = _Scope("day", lambda facts: facts.spent_today, "this repository's daily %", True)
_PERSON = _Scope(
    "person",
    lambda facts: facts.spent_by_person,
    "the daily % of the person who requested this session",
    of_day=True,
)
_AGENT = _Scope("agent", lambda facts: facts.spent_by_agent, "this agent's daily %", of_day=True)


def _dollars(scope: _Scope) -> Budget:
    """Return the scope's budget in dollars; unpriced tokens cost `Policy.unpriced_usd`."""
    spending = scope.spent

    def spent(facts: Facts, policy: Policy) -> float:
        used = spending(facts)
        return used.cost_usd + used.unpriced * policy.unpriced_usd / 1_000_000

    says = scope.says.replace("%", "budget of {limit:.2f} USD")
    unsaid = scope.says.replace("%", "dollar budget")
    return Budget(scope.name, f"{scope.name}_usd", spent, says, unsaid, scope.of_day)


def _hours(scope: _Scope, name: str) -> Budget:
    """Return the scope's budget of active hours."""
    spending = scope.spent
    return Budget(
        name,
        f"{scope.name}_hours",
        lambda facts, _: spending(facts).active_seconds / _HOUR,
        scope.says.replace("%", "budget of {limit:g} h of work"),
        of_day=scope.of_day,
        dollars=False,
        seconds=_HOUR,
    )


def _tokens(scope: _Scope, name: str) -> Budget:
    """Return the scope's budget of tokens, whether or not their price is known."""
    spending = scope.spent
    return Budget(
        name,
        f"{scope.name}_tokens",
        lambda facts, _: spending(facts).tokens,
        scope.says.replace("%", "budget of {limit:,.0f} tokens"),
        scope.says.replace("%", "token budget"),
        scope.of_day,
        dollars=False,
    )


BUDGETS: Final = (
    _dollars(_SESSION),
    _hours(_SESSION, "hours"),
    _tokens(_SESSION, "tokens"),
    _dollars(_ISSUE),
    _hours(_ISSUE, "issue-hours"),
    _tokens(_ISSUE, "issue-tokens"),
    _dollars(_REPOSITORY),
    _hours(_REPOSITORY, "day-hours"),
    _tokens(_REPOSITORY, "day-tokens"),
    _dollars(_PERSON),
    _hours(_PERSON, "person-hours"),
    _tokens(_PERSON, "person-tokens"),
    _dollars(_AGENT),
    _hours(_AGENT, "agent-hours"),
    _tokens(_AGENT, "agent-tokens"),
)


@lru_cache(maxsize=256)
def _limits(policy: Policy) -> tuple[tuple[Budget, float], ...]:
    """Return the budgets for which a policy sets a limit, with their limits; cached for speed."""
    return tuple((row, limit) for row in BUDGETS if (limit := row.limit(policy)))


def budget_state(facts: Facts, policy: Policy, now: datetime, turn: datetime | None) -> BudgetState:
    """Return which budgets are used up or nearly used up.

    `turn`: the start of the turn in progress, which counts as active time, or None.
    """
    part = policy.budget_warning
    limits: Sequence[tuple[Budget, float]] = _limits(policy)
    if facts.commands or facts.budget_usd:
        own = [(row, limit_of(row, facts, policy, now)) for row in BUDGETS]
        limits = [(row, limit) for row, limit in own if limit]
    state = UNREACHED
    for row, limit in limits:
        spent, warned_from = row.spent(facts, policy), limit * part
        if turn is None and spent < warned_from:
            continue
        warned, used_up = spent >= warned_from, spent >= limit
        if turn is not None and row.seconds and not used_up:
            warned_at = shifted(turn, span((warned_from - spent) * row.seconds))
            used_up_at = shifted(turn, span((limit - spent) * row.seconds))
            warned, used_up = warned or now >= warned_at, now >= used_up_at
            ahead = [at for at in (state.changes_at, warned_at, used_up_at) if at and at > now]
            state = replace(state, changes_at=min(ahead, default=None))
        if warned:
            reached = (ReachedBudget(row, limit),)
            exhausted = state.exhausted + reached if used_up else state.exhausted
            state = replace(state, exhausted=exhausted, nearly=state.nearly + reached)
    return state


#: The state if no budget has reached its warning threshold.
UNREACHED: Final = BudgetState()


def shows_cost(facts: Facts, policy: Policy) -> bool:
    """Whether costs may be posted on GitHub: in a private repository, or if the policy says so."""
    return facts.issue.private or policy.public_cost


def describe(reached: ReachedBudget, facts: Facts, policy: Policy) -> str:
    """Return the budget in words, without its limit if that would reveal a cost kept private."""
    row = reached.row
    public = shows_cost(facts, policy) or not row.unsaid
    return row.says.format(limit=reached.limit) if public else row.unsaid


def budget_key(reached: ReachedBudget, facts: Facts, now: datetime) -> Key:
    """Return the key that identifies a reached budget.

    The key contains the budget's name and limit. For a daily budget, it also contains the current
    date; for any other budget, the time when the session was last restored, if it ever was.
    """
    restored = facts.restored_at
    day = now.date().isoformat() if reached.row.of_day else ""
    since = day or (restored.isoformat() if restored else "")
    return keys.budget(reached.row.name, reached.limit, since)


def spending_line(facts: Facts, policy: Policy, now: datetime, *, with_cost: bool = True) -> str:
    """Return the session's spending in one line: dollars with their limit, tokens, hours of work.

    If `with_cost` is False, the line names only the hours of work so far.
    """
    hours = f"{facts.spent.active_seconds / _HOUR:.1f} hours of work"
    if not with_cost:
        return f"spent: {hours}"
    usd = limit_of(BUDGETS[0], facts, policy, now)
    of = f" of {usd:.2f}" if usd else ""
    without = f" ({facts.spent.unpriced} without a price)" if facts.spent.unpriced else ""
    dollars = f"{facts.spent.cost_usd:.2f}{of} USD"
    return f"spent: {dollars}, {facts.spent.tokens} tokens{without}, {hours}"


def cost(spent: Spending) -> str:
    """Return the spending in words: dollars and unpriced tokens; if both are 0, all tokens."""
    parts = [f"{spent.cost_usd:.2f} USD"] if spent.cost_usd else []
    if spent.unpriced:
        parts.append(f"{spent.unpriced} tokens without a price")
    return " and ".join(parts) or f"{spent.tokens} tokens"
