"""Renders sessions for terminals of 80 columns."""

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.show.json_values import json_value
from bot.show.session_detail import ExplainedSession, HistoryEntry, SessionDetail
from bot.show.session_summary import BudgetUsage, PullSummary, QueuePlace, SessionSummary
from bot.show.terminal import PreservedWork
from bot.store import Freeze, HistoryKind, Incident, QueuedSession
from bot.system.clock import utc_now
from bot.text.page_text import activity_words, merge_words, review_words, sentence
from bot.text.workspace_steps import step_words
from lifecycle.model.facts import Spending
from lifecycle.model.status import TERMINAL, Status
from lifecycle.model.text import counted, plain
from lifecycle.read.budgets import cost
from lifecycle.read.sentences import person

_ATTENTION = frozenset({Status.NEEDS_INPUT, Status.STUCK, Status.ERRORED, Status.CI_FAILED})
_GOOD = frozenset({Status.MERGED, Status.MERGEABLE, Status.APPROVED, Status.DONE})
_HISTORY = 20
#: Delete and the C1 set: https://www.ecma-international.org/publications-and-standards/standards/ecma-48/
_CONTROL = re.compile("[\x7f-\x9f]")


def report(value: object, screen: RenderableType, *, as_json: bool) -> None:
    """Print a command's result: the value as JSON, or the screen, in colors on a terminal."""
    if as_json:
        print_json(value, indent=2)
    else:
        Console(highlight=False, markup=False, emoji=False).print(screen)


def say(value: object, text: str, *, as_json: bool) -> None:
    """Print a command's result: the value as JSON, or a text whose lines are not wrapped."""
    if as_json:
        print_json(value, indent=2)
    else:
        sys.stdout.write(f"{text}\n")


def print_json(value: object, *, indent: int = 0) -> None:
    """Print a value as JSON, on one line unless it is indented.

    Control characters that JSON allows, such as the C1 set, are escaped: terminals obey them.
    """
    text = msgspec.json.encode(json_value(value))
    shown = (msgspec.json.format(text, indent=indent) if indent else text).decode()
    sys.stdout.write(_CONTROL.sub(_escaped, shown) + "\n")
    sys.stdout.flush()


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def table(*head: str) -> Table:
    """Return an empty table without borders; `head` are the names of its columns."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    if head:
        rows.add_row(*(Text(name, "dim") for name in head))
    return rows


def listing(sessions: Sequence[SessionSummary], empty: str) -> RenderableType:
    """Return a line for each session, with its title and its reason below the line.

    Below a session that waits for a person is also the remedy, and below a queued one its position.
    `empty` is the text if there are no sessions.
    """
    if not sessions:
        return Text(empty)
    rows = [("SESSION", "STATUS", "ACTIVITY", "PULL", "SINCE")]
    for one in sessions:
        pulls = " ".join(f"#{pull.number}" for pull in one.pulls)
        rows.append((one.id, one.status, one.activity, pulls or "-", age(one.since)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    screen: list[RenderableType] = [Text(head, "dim")]
    for one, line in zip(sessions, lines, strict=True):
        title = Text(line)
        title.stylize("bold", 0, len(one.id))
        title.highlight_words([one.status], color(one.status))
        screen.append(title)
        place = queue_position(one.place) if one.place else ""
        for below in (one.title, sentence(one.because), place):
            if below:
                screen.append(_below(Text(plain(below), "dim")))
        if one.needs_person and one.remedy:
            screen.append(_below(Text(f"-> {one.remedy}", "yellow")))
    return Group(*screen)


def notices(incidents: Sequence[Incident], freezes: Sequence[Freeze]) -> Iterator[RenderableType]:
    """Yield a line for each incident and each freeze."""
    for incident in incidents:
        yield Text(plain(incident.text), "red")
    for freeze in freezes:
        yield Text(freeze_line(freeze), "yellow")


def freeze_line(freeze: Freeze) -> str:
    """Return the line that describes a freeze."""
    scope = freeze.scope.replace(":", " ") or "everything"
    return f"{scope} is frozen by {plain(freeze.by)}"


def session(detail: SessionDetail) -> RenderableType:
    """Return the screen about one session."""
    one = detail.session
    info = one.agent_info
    named = "" if one.agent in ("", one.agent_type) else f"{one.agent}, "
    rows = grid()
    if one.issue:
        add(rows, "issue", f"#{one.issue} {one.title}", one.issue_url)
    else:
        add(rows, "task", one.title)
    add(rows, "project", f"{one.project} ({one.repository})")
    add(rows, "requester", person(one.requester) if one.requester else "unknown")
    add(rows, "agent", f"{named}{one.agent_type}, {_agent(one)}")
    if info.native_id:
        add(rows, "conversation ID", info.native_id)
    if one.place:
        add(rows, "queue", queue_position(one.place))
    spent = Spending(cost_usd=info.cost_usd, tokens=info.tokens, unpriced=info.unpriced)
    add(rows, "spent", cost(spent), *map(_spent, detail.budgets))
    _add_state(rows, detail)
    for key, value in one.metadata.items():
        add(rows, key, value)
    _add_actions(rows, detail)
    return Group(
        headline(one.id, one.status, one.because),
        *_advice(one.remedy, one.blockers),
        rows,
        Text("\nhistory", "dim"),
        _history(detail.history[:_HISTORY]),
        *_preserved(detail.preserved),
    )


def explanation(found: ExplainedSession, detail: SessionDetail) -> RenderableType:
    """Return the screen of a session's facts, the resulting status and the next actions."""
    one, decision = detail.session, found.decision
    rows = grid()
    if one.issue:
        state = "open" if found.facts["issue"]["open"] else "closed"
        add(rows, "issue", f"#{one.issue}, {state}")
    else:
        add(rows, "task", one.title)
    add(rows, "agent", _agent(one))
    if waits := found.facts["waits"]:
        add(rows, "queue", waits)
    add(rows, "spent", *map(_spent, found.budgets))
    _add_state(rows, detail)
    if found.done:
        add(rows, "done", f"{counted(found.done, 'action')}, last: {found.last_done}")
    _add_actions(rows, detail)
    signals = (f"{name}={value}" for name, value in decision["signals"].items())
    add(rows, "signals", ", ".join(signals))
    follows = found.next_actions or ("none",)
    if found.observes:
        follows = ('none, because policy.mode is "observe"',)
    recheck = decision["recheck_at"]
    at = datetime.fromisoformat(recheck) if isinstance(recheck, str) else recheck
    remedy, *blockers = _advice(found.remedy, found.blockers)
    return Group(
        headline(one.id, decision["status"], decision["because"]),
        remedy,
        Text("facts", "dim"),
        rows,
        *blockers,
        *_list("next actions", follows),
        Text.assemble(
            ("next decision  ", "dim"), f"in {until(at)}" if at else "on the next change"
        ),
    )


def queue_position(one: QueuePlace | QueuedSession) -> str:
    """Return a line with a session's queue position, its expected start and why it waits."""
    start = f"starts {expected_start(one)}" if one.starts_at else "start time unknown"
    return f"number {one.position}, {start}: {queue_reason(one)}"


def expected_start(one: QueuePlace | QueuedSession) -> str:
    """Return when a queued session starts, such as `in about 5m`."""
    if one.starts_at is None:
        return "unknown"
    return f"in about {until(one.starts_at)}" if one.starts_at > utc_now() else "any moment"


def queue_reason(one: QueuePlace | QueuedSession) -> str:
    """Return why a session waits, its priority label, and whether a command requested the run."""
    label = {1: "; priority:high", -1: "; priority:low"}.get(one.priority, "")
    person = "; requested by a command" if one.awaited else ""
    return f"{one.waits or 'not checked yet'}{label}{person}"


def color(status: str) -> str:
    """Return a status's color: red for trouble, green if good, dim for any other end, else cyan."""
    if status in _ATTENTION:
        return "red"
    if status in _GOOD:
        return "green"
    return "dim" if status in TERMINAL else "cyan"


def age(since: datetime) -> str:
    """Return the time since a moment in one unit, such as 5m."""
    return duration(max(0.0, (utc_now() - since).total_seconds()))


def until(at: datetime) -> str:
    """Return the time until a moment in one unit, such as 5m."""
    return duration(max(0.0, (at - utc_now()).total_seconds()))


def duration(seconds: float) -> str:
    """Return a number of seconds as text in one unit, such as 5m."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{int(seconds)}s"


def _agent(one: SessionSummary) -> str:
    if not one.run:
        return "not started yet"
    info = one.agent_info
    since = f" for {age(info.since)}" if info.since else ""
    detail = info.question or info.error or info.evidence
    return f"run {one.run}, {activity_words(one.activity)}{since}{': ' if detail else ''}{detail}"


def _pull(pull: PullSummary) -> str:
    checks = ", ".join(f"{count} {state}" for state, count in pull.checks.items())
    names = f" ({', '.join(pull.failed)})" if pull.failed else ""
    words = [
        f"#{pull.number} {pull.state} at {pull.head[:7]}",
        f"review {review_words(pull.review)}, merge {merge_words(pull.merge)}",
        f"checks: {checks or 'none'}{names}",
    ]
    if waiting := pull.open_threads:
        words.append(f"{waiting} unresolved thread{'' if waiting == 1 else 's'}")
    return "; ".join(words)


def _spent(bar: BudgetUsage) -> str:
    spent = f"{bar.spent:,.0f}" if bar.name.endswith("tokens") else f"{bar.spent:.2f}"
    return f"{spent} of {bar.says}"


def _add_state(rows: Table, detail: SessionDetail) -> None:
    """Add rows about the session's state.

    In this order: its freeze, the last restore, the work, the pull requests, refused connections,
    and the last attempts to run the project's own commands.
    """
    one = detail.session
    if frozen := detail.frozen:
        where = {"all": "everything", "project": "the project"}.get(frozen.scope, "the session")
        add(rows, "frozen", f"{where}, by {frozen.by or 'somebody'} {age(frozen.at)} ago")
    if one.restored_at:
        add(rows, "continued", f"{age(one.restored_at)} ago")
    head = f" at {detail.head[:7]}" if detail.head else ""
    changes = ", uncommitted changes" if detail.dirty else ""
    add(rows, "work", f"{one.branch}{head}{changes}", one.workspace)
    for pull in one.pulls:
        add(rows, "pull", _pull(pull), pull.url)
    if detail.refused:
        add(rows, "network", *(each.says for each in detail.refused))
    for step in detail.steps:
        log = f"mergewright logs {one.id} --step {step.step}"
        add(rows, str(step.step), sentence(step_words(step)), f"output: {log}")


def add(rows: Table, name: str, *lines: str) -> None:
    """Add a named row; empty lines, and control characters in the lines, are removed."""
    rows.add_row(Text(name, "dim"), Text("\n".join(plain(line) for line in lines if line)))


def grid() -> Table:
    """Return an empty table for `add`."""
    rows = table()
    rows.add_column(min_width=8)
    rows.add_column(overflow="fold")
    return rows


def headline(name: str, status: str, because: str) -> Text:
    """Return the first line about a session: its ID, status and reason."""
    reason = sentence(plain(because))
    return Text.assemble((name, "bold"), " ", (status, color(status)), f"  {reason}")


def _advice(remedy: str, blockers: Sequence[str]) -> list[RenderableType]:
    """Return texts: the remedy for a status, which may be empty, then what blocks the merge."""
    blocked = list(map(sentence, blockers))
    return [Text(f"{remedy}\n" if remedy else ""), *_list("merge blocked by", blocked)]


def _list(title: str, lines: Sequence[str]) -> list[RenderableType]:
    if not lines:
        return []
    return [Text(title, "dim"), *(_below(Text(plain(line))) for line in lines)]


def _add_actions(rows: Table, detail: SessionDetail) -> None:
    for one in sorted(detail.outbox, key=lambda each: each.key):
        if one.state in ("waiting", "sent"):
            add(rows, "pending", one.says)
    for one in detail.outbox:
        if one.state == "failed":
            add(rows, "failed", f"{one.says}: {one.text}")


def _preserved(kept: Sequence[PreservedWork]) -> Iterator[RenderableType]:
    """Yield lines about the preserved work of removed workspaces: how to fetch that of each run."""
    if kept:
        yield Text(
            "\nwork that was preserved when the workspace was removed; fetch it with:", "dim"
        )
    for one in kept:
        yield Text(f"  run {one.run}, {age(one.at)} ago: {plain(one.fetch)}")


def _below(text: Text) -> Padding:
    """Indent all lines of a text."""
    return Padding(text, (0, 0, 0, 2), expand=False)


def _history(history: Sequence[HistoryEntry]) -> Table:
    rows = table()
    for row in history:
        when = row.at.astimezone().strftime("%m-%d %H:%M:%S")
        rows.add_row(Text(when, "dim"), Text(plain(_event(row)), overflow="fold"))
    return rows


def _event(row: HistoryEntry) -> str:
    if row.kind is HistoryKind.DECISION:
        actions = ", ".join(row.actions)
        return f"{row.status}: {row.text}{f' -> {actions}' if actions else ''}"
    who = f" by {person(row.actor)}" if row.actor else ""
    return f"{row.kind.replace('_', ' ')}{who}: {row.text}"
