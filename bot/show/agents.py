"""The record of an agent: its outcomes, its cost, and how its sessions ended in each week."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from bot.show.plots import Column, Plot, plot
from bot.store import AgentEnd, AgentRecord, Store
from config.settings import AgentSettings
from lifecycle.model.status import Status

#: The number of weeks that are shown, the current one included.
WEEKS: Final = 26
_SUCCEEDED: Final = frozenset({Status.MERGED, Status.DONE})


class AgentWeek(Struct, frozen=True, kw_only=True):
    """How many sessions of an agent ended in one week, by outcome."""

    begins: Annotated[date, Meta(description="The Monday of the week (UTC).")]
    succeeded: Annotated[int, Meta(description="Merged, or done without a merge.")]
    failed: int
    stopped: Annotated[int, Meta(description="Stopped by people, closed or unlabelled.")]


class AgentDetail(Struct, frozen=True, kw_only=True):
    """An agent with its history."""

    record: AgentRecord
    types: tuple[str, ...]  #: The agent types it may run; if empty, it is no longer configured.
    weeks: tuple[AgentWeek, ...]  #: The earliest first, one for each of the last `WEEKS`.
    plot: Plot  #: A bar for each of the weeks.

    @property
    def ended(self) -> int:
        """The number of sessions that ended in `weeks`."""
        return sum(week.succeeded + week.failed + week.stopped for week in self.weeks)


def agent_detail(
    store: Store,
    identities: Mapping[str, AgentSettings],
    name: str,
    now: datetime,
    repositories: tuple[str, ...] | None = None,
) -> AgentDetail | None:
    """Return an agent's record and weekly outcomes, from its sessions in `repositories`.

    If `repositories` is None, all repositories count. Returns None for an agent that is neither
    configured nor has sessions or usage there.
    """
    record, ends = store.agents.history(name, repositories)
    known = identities.get(name)
    if not name or (known is None and not record.sessions and not record.tokens):
        return None
    weeks = _weeks(ends, now.date())
    return AgentDetail(
        record=record,
        types=known.types if known else (),
        weeks=weeks,
        plot=plot(list(map(_column, weeks))),
    )


def _weeks(ends: Iterable[AgentEnd], today: date) -> tuple[AgentWeek, ...]:
    counts = Counter((_monday(end.at.date()), _kind(end.outcome)) for end in ends)
    begins = [_monday(today) - timedelta(weeks=back) for back in reversed(range(WEEKS))]
    return tuple(
        AgentWeek(
            begins=begin,
            succeeded=counts[begin, "succeeded"],
            failed=counts[begin, "failed"],
            stopped=counts[begin, "stopped"],
        )
        for begin in begins
    )


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _kind(outcome: str) -> str:
    if outcome in _SUCCEEDED:
        return "succeeded"
    return "failed" if outcome == Status.ERRORED else "stopped"


def _column(week: AgentWeek) -> Column:
    return Column(
        f"week of {week.begins}: {week.succeeded} succeeded, {week.failed} failed,"
        f" {week.stopped} stopped",
        (("good", week.succeeded), ("bad", week.failed), ("calm", week.stopped)),
    )
