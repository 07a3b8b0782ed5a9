"""What `usage` shows: tokens and dollars, in 80 columns."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.store import Session, UsageTotal
from config.settings import ModelPrice
from lifecycle.model.text import plain

_COLUMNS = ("INPUT", "OUTPUT", "REASON", "CACHED", "WRITTEN", "COST", "UNPRICED", "HOURS")


def screen(
    rows: Sequence[UsageTotal], sessions: Sequence[Session], prices: Mapping[str, ModelPrice]
) -> RenderableType:
    """The rows and their sum; below them what has no price, and of when the prices are."""
    if not rows:
        return Text("Nothing was used yet.")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(overflow="fold")
    for _ in _COLUMNS:
        table.add_column(justify="right")
    table.add_row(*(Text(name, "dim") for name in ("", *_COLUMNS)))
    for one in rows:
        table.add_row(Text(plain(one.name) or "-", "bold"), *_figures([one]))
    if len(rows) > 1:
        table.add_row(Text("all", "dim"), *_figures(rows))
    return Group(table, *(Text(f"\n{note}", "dim") for note in _notes(sessions, prices)))


def tokens(count: int) -> str:
    """So many tokens, in few characters."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= 10 * size:
            return f"{count / size:.0f}{unit}"
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def _figures(rows: Sequence[UsageTotal]) -> Iterator[str]:
    for kind in ("input", "output", "reasoning", "cache_read", "cache_write"):
        yield tokens(sum(getattr(one, kind) for one in rows))
    yield f"${sum(one.cost_usd for one in rows):.2f}"
    yield tokens(sum(one.unpriced for one in rows)) if any(one.unpriced for one in rows) else ""
    yield f"{sum(one.active_seconds for one in rows) / 3600:.1f}"


def _notes(sessions: Sequence[Session], prices: Mapping[str, ModelPrice]) -> Iterator[str]:
    unknown = sorted(
        {
            name
            for session in sessions
            for name, used in session.agent.usage.models.items()
            if session.agent.usage.unpriced and used.cost_usd is None
        }
    )
    for name in unknown:
        yield f'{plain(name)} has no price: add [prices."{plain(name)}"] to the configuration.'
    if prices:
        oldest = min(price.as_of for price in prices.values())
        yield f"Prices of the configuration are as of {oldest} or later."
