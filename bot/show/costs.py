"""The costs of agents in a range of days: by day, project, agent, person and session."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from bot.show.plots import Column, Plot, plot
from bot.store import Session, Store, UsageFilter, UsageRow, UsageTotal
from bot.text import page_text
from config.projects import project_of
from config.settings import ModelPrice, ProjectSettings
from lifecycle.model.text import counted

#: The number of days that are shown by default.
DEFAULT_DAYS: Final = 30
#: The longest range in days, and the range from which weeks are shown instead of days.
MOST_DAYS, _WEEKS_FROM = 731, 93
#: The number of rows that a table shows. The sum of all others is one more row, except for
#: sessions, of which only the number of others is shown.
_ROWS: Final = 25
#: Models without a price are named if the sessions in the table used them, or if this number of
#: sessions with the most unpriced tokens did.
_UNPRICED: Final = 10
_ADDED: Final = (
    *("sessions", "input", "output", "cache_read", "cache_write", "reasoning", "unpriced"),
    *("cost_usd", "active_seconds"),
)


class CostFilter(Struct, frozen=True, kw_only=True):
    """Which costs are shown. An empty name selects all."""

    first: date  #: The first day (UTC).
    last: date  #: The last day (UTC), included.
    project: str = ""  #: Its name, or the repository of a former project.
    agent: str = ""  #: The agent's name.
    person: str = ""  #: The login of the requester.


class SessionCost(Struct, frozen=True, kw_only=True):
    """A session with what it used in the range of days."""

    total: UsageTotal  #: Its `name` is the session's ID.
    title: str  #: If empty, the session was deleted after its retention.
    status: str  #: If empty, the session was deleted.


class Costs(Struct, frozen=True, kw_only=True):
    """Everything on the page of costs.

    `projects`, `agents`, `people` and `sessions` are sorted by cost, the highest first. The first
    three may end with a row that has the sum of those that are not listed.
    """

    filter: CostFilter
    total: UsageTotal
    step: str  #: `day` or `week`.
    days: tuple[UsageTotal, ...]  #: Each day or week of the range, the first one first.
    plot: Plot
    projects: tuple[UsageTotal, ...]
    agents: tuple[UsageTotal, ...]
    people: tuple[UsageTotal, ...]
    sessions: tuple[SessionCost, ...]
    more_sessions: int  #: The number of sessions that are not in `sessions`.
    #: The sorted names of models without a known price. Only models are named that were used by
    #: `sessions` or by the sessions with the most unpriced tokens.
    unpriced_models: tuple[str, ...]


class PriceNotes(Struct, frozen=True, kw_only=True):
    """The models without a price, and the day of the oldest configured price."""

    unpriced_models: Annotated[
        tuple[str, ...], Meta(description="Models without a known price, sorted.")
    ]
    oldest: Annotated[
        date | None, Meta(description="The day of the oldest configured price; null: none is.")
    ]


def days_until(last: date, days: int) -> CostFilter:
    """Return the filter for a number of days that ends with the day `last`."""
    return CostFilter(first=last - timedelta(days=days - 1), last=last)


def ranges(now: datetime) -> Mapping[str, CostFilter]:
    """Return the ranges of days that the page offers, by their titles."""
    today = now.date()
    return {
        "Today": days_until(today, 1),
        "Yesterday": days_until(today - timedelta(days=1), 1),
        **{f"{days} days": days_until(today, days) for days in (7, DEFAULT_DAYS, 90)},
    }


def costs(
    store: Store, projects: Mapping[str, ProjectSettings], among: UsageFilter, filter: CostFilter
) -> Costs:
    """Sum up the costs that `filter` selects; `among` is the result of `usage_filter` for it."""
    days, step = _days(store.usage.totals("day", among=among), filter)
    count, sessions = store.usage.sessions(among), store.usage.most("cost_usd", among, _ROWS)
    total = replace(_added("", days), sessions=count)
    unpriced = store.usage.most("unpriced", among, _UNPRICED) if total.unpriced else []
    named = {one.name: None for one in (*sessions, *unpriced)}
    known = {one.id: one for one in store.session_list.read(list(named))}
    by_project = [
        replace(one, name=project_of(projects, one.name) or one.name)
        for one in store.usage.totals("repository", among=among)
    ]
    when = "in the week from" if step == "week" else "on"
    return Costs(
        filter=filter,
        total=total,
        step=step,
        days=days,
        plot=plot([Column(f"{_dollars(one)} {when} {one.name}", _bar(one)) for one in days]),
        projects=_most(by_project),
        agents=_most(store.usage.totals("agent", among=among)),
        people=_most(store.usage.totals("person", among=among)),
        sessions=tuple(_session(one, known.get(one.name)) for one in sessions),
        more_sessions=count - len(sessions),
        unpriced_models=unpriced_models(known.values()),
    )


def usage_filter(
    projects: Mapping[str, ProjectSettings],
    filter: CostFilter,
    repositories: tuple[str, ...] | None = None,
) -> UsageFilter:
    """Convert a filter to the store's form, limited to `repositories` unless that is None."""
    known = projects.get(filter.project)
    return UsageFilter(
        repository=known.repository if known else filter.project,
        agent=filter.agent,
        person=filter.person,
        first=filter.first.isoformat(),
        last=filter.last.isoformat(),
        repositories=repositories,
    )


def unpriced_models(sessions: Iterable[Session]) -> tuple[str, ...]:
    """Return the sorted names of models that these sessions used and whose price is unknown."""
    return tuple(
        sorted(
            {
                page_text.line(name)
                for session in sessions
                if session.agent.usage.unpriced
                for name, used in session.agent.usage.models.items()
                if used.cost_usd is None
            }
        )
    )


def price_notes(sessions: Iterable[Session], prices: Mapping[str, ModelPrice]) -> PriceNotes:
    """Return the sessions' models without a price, and the day of the oldest configured price."""
    return PriceNotes(
        unpriced_models=unpriced_models(sessions),
        oldest=min((price.as_of for price in prices.values()), default=None),
    )


def as_csv(rows: Sequence[UsageRow]) -> str:
    """Return usage as comma-separated values, with the column names in the first line.

    A text that a spreadsheet would take for a formula is preceded by an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(UsageRow.__struct_fields__)
    writer.writerows(map(_cells, rows))
    return text.getvalue()


def _cells(row: UsageRow) -> Iterator[object]:
    for value in asdict(row).values():
        # A spreadsheet takes a cell that begins with one of these signs for a formula.
        risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
        yield f"'{value}" if risky else value


def _days(found: Iterable[UsageTotal], filter: CostFilter) -> tuple[tuple[UsageTotal, ...], str]:
    """Return the totals of the filter's days, or of its weeks if the range of days is long.

    The second value is `day` or `week`.
    """
    used = {one.name: one for one in found}
    count = (filter.last - filter.first).days + 1
    length, step = (7, "week") if count >= _WEEKS_FROM else (1, "day")
    begins = [filter.first + timedelta(days=day) for day in range(0, count, length)]
    return (
        tuple(
            _added(
                str(begin),
                [
                    used[name]
                    for day in range(length)
                    if (name := str(begin + timedelta(days=day))) in used
                ],
            )
            for begin in begins
        ),
        step,
    )


def _added(name: str, totals: Iterable[UsageTotal]) -> UsageTotal:
    """Return the sum of totals. A session in several totals is counted several times."""
    rows = list(totals)
    sums = {field: sum(getattr(one, field) for one in rows) for field in _ADDED}
    return UsageTotal(name=name, **sums)


def _most(totals: Iterable[UsageTotal]) -> tuple[UsageTotal, ...]:
    """Return the highest totals in descending order, followed by one for the sum of the others."""
    rows = sorted(totals, key=lambda one: -one.cost_usd)
    others = rows[_ROWS:]
    rest = [_added(counted(len(others), "other"), others)] if others else []
    return (*rows[:_ROWS], *rest)


def _bar(one: UsageTotal) -> tuple[tuple[str, float], ...]:
    return (("busy", one.cost_usd),)


def _dollars(one: UsageTotal) -> str:
    unpriced = f" and {one.unpriced:,} unpriced tokens" if one.unpriced else ""
    return f"${one.cost_usd:,.2f}{unpriced}"


def _session(one: UsageTotal, session: Session | None) -> SessionCost:
    return SessionCost(
        total=one,
        title=page_text.line(session.issue.title) if session else "",
        status=session.status if session else "",
    )
