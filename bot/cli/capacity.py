"""What the commands show of the line for a slot, and of the agents."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.cli.refused import CliError
from bot.cli.screens import add, age, duration, grid, listing
from bot.cli.spending import tokens
from bot.store import AgentRecord, QueuedSession, Session
from config.contradictions import nearest
from config.settings import AgentSettings
from lifecycle.model.status import Status


def line(queue: Sequence[QueuedSession], now: datetime) -> RenderableType:
    """Who waits for a slot, who is next first."""
    if not queue:
        return Text("Nobody waits for a slot.")
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_row(*(Text(name, "dim") for name in ("", "SESSION", "WAITS", "STARTS", "BECAUSE")))
    for one in queue:
        waits = age(one.since, now)
        rows.add_row(str(one.position), one.session, waits, starts(one, now), Text(because(one)))
    return rows


def place(one: QueuedSession, now: datetime) -> str:
    """Where a session stands, in a few words."""
    return f"number {one.position}, start {starts(one, now)}: {because(one)}"


def starts(one: QueuedSession, now: datetime) -> str:
    """When it may be its turn."""
    if one.starts_at is None:
        return "unknown"
    return f"in about {age(now, one.starts_at)}" if one.starts_at > now else "any moment"


def because(one: QueuedSession) -> str:
    """Why it waits, and what moves it up or down the line."""
    moved = {1: "; priority:high", -1: "; priority:low"}.get(one.priority, "")
    return f"{one.waits or 'not looked at yet'}{moved}{'; a person waits' if one.awaited else ''}"


def one_of(ledgers: Sequence[AgentRecord], name: str) -> AgentRecord:
    """The record of one agent. Raises `CliError`."""
    by_name = {one.agent: one for one in ledgers if one.agent}
    if name not in by_name:
        raise CliError(f"no agent {name!r}; {nearest(name, by_name)}")
    return by_name[name]


def agents(ledgers: Sequence[AgentRecord]) -> RenderableType:
    """A row for each agent."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    names = ("AGENT", "SESSIONS", "LIVE", "MERGED", "FIRST PASS", "REPAIRS", "COST", "TO MERGE")
    rows.add_row(*(Text(name, "dim") for name in names))
    for one in ledgers:
        rows.add_row(
            Text(one.agent or "-", "bold"),
            *(str(one.sessions), str(one.live), str(one.outcomes.get(Status.MERGED, 0))),
            *(rate(one), str(one.repairs), cost(one), to_merge(one)),
        )
    return rows


def record(
    one: AgentRecord,
    identity: AgentSettings | None,
    sessions: Sequence[Session],
    now: datetime,
) -> RenderableType:
    """Everything about one agent, and what it works on or worked on."""
    rows = grid()
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in one.outcomes.items())
    add(rows, "runs", ", ".join(identity.types) if identity else "not in the configuration")
    add(rows, "sessions", f"{one.sessions}, {one.live} under way; {outcomes or 'none ended'}")
    add(rows, "first pass", f"{rate(one)} of those merged")
    add(rows, "repairs", f"{one.repairs}, and {one.review_rounds} review rounds")
    add(rows, "cost", cost(one))
    add(rows, "to merge", to_merge(one))
    if identity and identity.system_prompt:
        add(rows, "is told", identity.system_prompt)
    return Group(Text(one.agent, "bold"), rows, Text(), listing(sessions, now, every=True))


def rate(one: AgentRecord) -> str:
    """How many of the merged needed nothing after they were opened."""
    return "-" if one.first_pass_rate is None else f"{one.first_pass_rate:.0%}"


def cost(one: AgentRecord) -> str:
    """What its models cost, and how many tokens nobody knows the price of."""
    without = f" + {tokens(one.unpriced)} tokens" if one.unpriced else ""
    return f"${one.cost_usd:.2f}{without}"


def to_merge(one: AgentRecord) -> str:
    """How long a merge took, as a rule."""
    return "-" if one.seconds_to_merge is None else duration(one.seconds_to_merge)
