"""Renders the queue, health, deliveries, agents and model usage for 80 columns."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.cli import screens
from bot.cli.screens import add, age, duration, expected_start, queue_reason
from bot.show.costs import PriceNotes
from bot.show.deliveries import DeliveryEntry
from bot.show.health import HealthReport
from bot.show.session_summary import SessionSummary
from bot.store import AgentRecord, QueuedSession, UsageTotal
from bot.text.page_text import outcome_words, sentence
from lifecycle.model.status import Status
from lifecycle.model.text import counted, plain

#: Labels for the numbers of actions, by the state of the actions.
_OUTBOX = {
    "due": "actions to carry out",
    "sent": "messages whose arrival is not confirmed",
    "failed": "failed actions of open sessions",
}
_USAGE_COLUMNS = (
    "INPUT",
    "OUTPUT",
    "REASONING",
    "CACHE READ",
    "CACHE WRITE",
    "COST",
    "UNPRICED",
    "HOURS",
)


def queue(entries: Sequence[QueuedSession]) -> RenderableType:
    """Return a table of the sessions that wait for a slot, the next one first."""
    if not entries:
        return Text("No sessions are queued.")
    rows = screens.table("", "SESSION", "WAITED", "STARTS", "REASON")
    for one in entries:
        waited = age(one.since)
        rows.add_row(
            str(one.position), one.session, waited, expected_start(one), Text(queue_reason(one))
        )
    return rows


def health(report: HealthReport) -> RenderableType:
    """Return the screen that shows whether the bot is healthy, and its problems."""
    state, process = report.state, report.process
    rows = screens.grid()
    for name, one in (
        ("deliveries to process", state.inbox),
        ("issues and pull requests to read", state.refreshes),
        *((_OUTBOX[name], each) for name, each in state.outbox.items()),
    ):
        add(rows, name, f"{one.rows:,}{f', oldest {age(one.since)}' if one.since else ''}")
    add(rows, "failed deliveries", f"{state.failed_deliveries:,}")
    add(rows, "slots", f"{state.slots_used} of {state.slots} in use")
    add(rows, "active bot", report.leader or "none: no bot is running")
    if process is not None and process.sweep_age_seconds is not None:
        add(rows, "agents checked", f"{duration(process.sweep_age_seconds)} ago")
    for limit in process.rate_limits if process else ():
        left = f"{limit.remaining:,} of {limit.limit:,} left"
        add(rows, "GitHub", f"{limit.account} {limit.resource}: {left}")
    for used in report.isolations:
        kinds = ", ".join(used.agent_types)
        add(rows, "isolation", f"{used.isolation or 'none usable'}: {kinds}")
    for name, version in report.versions.items():
        add(rows, name, version)
    lines = [Text(sentence(plain(one)), "red") for one in report.problems]
    lines += [Text(sentence(plain(one)), "yellow") for one in report.warnings]
    word = Text("healthy", "bold green") if report.healthy else Text("not healthy", "bold red")
    return Group(word, *lines, rows)


def deliveries(entries: Sequence[DeliveryEntry]) -> RenderableType:
    """Return a table of webhook deliveries with their effects, newest first."""
    if not entries:
        return Text("No webhook is stored.")
    rows = screens.table("AGE", "EVENT", "STATE", "WHAT FOLLOWED")
    for one in entries:
        words = [
            f"{each.text} ({each.session})" if each.session else each.text for each in one.outcomes
        ]
        says = "\n".join(map(plain, [*filter(None, [one.text]), *words]))
        rows.add_row(age(one.at), one.event, one.state, Text(says, overflow="fold"))
    return rows


def failed_deliveries(failed: Sequence[DeliveryEntry], *, retried: bool) -> RenderableType:
    """Return a table of the failed deliveries.

    `retried` says whether they were queued to be processed again.
    """
    if not failed:
        return Text("no delivery failed")
    rows = screens.table()
    for one in failed:
        at, error = f"{one.at:%Y-%m-%d %H:%M} UTC", Text(plain(one.text), overflow="fold")
        rows.add_row(Text(at, "dim"), Text(one.event), Text(one.id, no_wrap=True), error)
    note = (
        "Queued: the running bot, or the next `mergewright serve`, processes them again."
        if retried
        else "To process them again: --retry"
    )
    return Group(rows, Text(f"\n{note}", "dim"))


class FoundAgent(Struct, frozen=True, kw_only=True):
    """An agent with its record and its sessions."""

    record: AgentRecord
    types: tuple[str, ...]  #: If empty, the agent is not configured.
    sessions: tuple[SessionSummary, ...]
    prompt: str = ""  #: Its system prompt; empty if none, or if read from a remote server.


def agents(records: Sequence[AgentRecord]) -> RenderableType:
    """Return a table with a row for each agent."""
    rows = screens.table(
        *("AGENT", "SESSIONS", "LIVE", "MERGED", "UNAIDED", "REPAIRS", "COST", "MEDIAN TIME")
    )
    for one in records:
        rows.add_row(
            Text(one.agent or "-", "bold"),
            *(str(one.sessions), str(one.live), str(one.outcomes.get(Status.MERGED, 0))),
            *(_first_pass(one), str(one.repairs), _cost(one), _time_to_merge(one)),
        )
    return Group(rows, Text(f"\n{_HEADINGS}", "dim"))


_HEADINGS = (
    "UNAIDED: of the merged sessions, the share that had no repairs or review rounds. MEDIAN TIME:"
    " from the session's beginning to the merge."
)


def agent(found: FoundAgent) -> RenderableType:
    """Return the screen about one agent, with its statistics and its sessions."""
    one, rows = found.record, screens.grid()
    outcomes = ", ".join(
        f"{count} {outcome_words(outcome)}" for outcome, count in one.outcomes.items()
    )
    add(rows, "types", ", ".join(found.types) or "not in the configuration")
    add(rows, "sessions", f"{one.sessions}, {one.live} live; {outcomes or 'none ended'}")
    alone = f"{_first_pass(one)} of the merged sessions, without repairs or review rounds"
    add(rows, "first pass", "nothing merged yet" if one.first_pass_rate is None else alone)
    add(rows, "repairs", f"{one.repairs}; {counted(one.review_rounds, 'review round')}")
    add(rows, "cost", _cost(one))
    add(rows, "tokens", f"{one.tokens:,} in {one.active_seconds / 3600:.1f} active hours")
    add(rows, "merged in", f"{_time_to_merge(one)} (median)")
    if found.prompt:
        add(rows, "prompt", found.prompt)
    listing = screens.listing(found.sessions, "No sessions yet.")
    return Group(Text(one.agent, "bold"), rows, Text(), listing)


def _first_pass(one: AgentRecord) -> str:
    return "-" if one.first_pass_rate is None else f"{one.first_pass_rate:.0%}"


def _cost(one: AgentRecord) -> str:
    unpriced = f" + {_tokens(one.unpriced)} tokens" if one.unpriced else ""
    return f"${one.cost_usd:.2f}{unpriced}"


def _time_to_merge(one: AgentRecord) -> str:
    return "-" if one.seconds_to_merge is None else duration(one.seconds_to_merge)


def usage(rows: Sequence[UsageTotal], prices: PriceNotes) -> RenderableType:
    """Return a table of tokens and dollars with their sums.

    Below it are the models without a price, and the day of the oldest price.
    """
    if not rows:
        return Text("No usage yet.")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(overflow="fold")
    for _ in _USAGE_COLUMNS:
        table.add_column(justify="right")
    table.add_row(*(Text(name, "dim") for name in ("", *_USAGE_COLUMNS)))
    for one in rows:
        table.add_row(Text(plain(one.name) or "-", "bold"), *_figures([one]))
    if len(rows) > 1:
        table.add_row(Text("all", "dim"), *_figures(rows))
    return Group(table, *(Text(f"\n{note}", "dim") for note in _notes(prices)))


def _figures(rows: Sequence[UsageTotal]) -> Iterator[str]:
    for kind in ("input", "output", "reasoning", "cache_read", "cache_write"):
        yield _tokens(sum(getattr(one, kind) for one in rows))
    yield f"${sum(one.cost_usd for one in rows):.2f}"
    yield _tokens(sum(one.unpriced for one in rows)) if any(one.unpriced for one in rows) else ""
    yield f"{sum(one.active_seconds for one in rows) / 3600:.1f}"


def _notes(prices: PriceNotes) -> Iterator[str]:
    for name in prices.unpriced_models:
        yield f'{plain(name)} has no price. Add [prices."{plain(name)}"] to the configuration.'
    if prices.oldest:
        yield f"The oldest configured price is from {prices.oldest}."


def _tokens(count: int) -> str:
    """Return a number of tokens in few characters, such as 1.2M."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= 10 * size:
            return f"{count / size:.0f}{unit}"
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)
