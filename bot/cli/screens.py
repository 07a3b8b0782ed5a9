"""Renders sessions for terminals of 80 columns."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bot.show.json_values import json_value
from bot.show.session_summary import BudgetUsage, RefusedConnection, SessionSummary
from bot.store import BOT, Freeze, HistoryKind, HistoryRow, Incident, OutboxEntry, Session
from bot.system.clock import utc_now
from bot.text.history import describe_action, describe_event
from bot.text.page_text import sentence
from bot.text.workspace_steps import step_words
from lifecycle.decide import Decision
from lifecycle.judge.pauses import frozen_by
from lifecycle.judge.reasons import advice_on
from lifecycle.model.facts import Agent, Facts, Pull, Work
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import TERMINAL, Blocker, CheckState, Status
from lifecycle.model.text import plain
from lifecycle.read.budgets import cost
from runtimes.host import StepRecord
from runtimes.workspaces.mirror import Preserved

_ATTENTION = frozenset({Status.NEEDS_INPUT, Status.STUCK, Status.ERRORED, Status.CI_FAILED})
_GOOD = frozenset({Status.MERGED, Status.MERGEABLE, Status.APPROVED, Status.DONE})
_HISTORY = 20


def report(value: object, screen: RenderableType, *, as_json: bool) -> None:
    """Print a command's result: the value as JSON, or the screen, in colors on a terminal."""
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(json_value(value)), indent=2)
        sys.stdout.write(f"{text.decode()}\n")
    else:
        Console(highlight=False, markup=False, emoji=False).print(screen)


def table(*head: str) -> Table:
    """Return an empty table without borders; `head` are the names of its columns."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    if head:
        rows.add_row(*(Text(name, "dim") for name in head))
    return rows


def listing(
    sessions: Sequence[SessionSummary], empty: str, places: Mapping[str, str] = {}
) -> RenderableType:
    """Return a line for each session, with its title and status.

    `places` are the queue positions by session ID. `empty` is the text if there are no sessions.
    """
    if not sessions:
        return Text(empty)
    rows = [("SESSION", "STATUS", "AGENT", "PULL", "SINCE")]
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
        for below in (one.title, sentence(one.because), places.get(one.id, "")):
            if below:
                screen.append(_below(Text(plain(below), "dim")))
        if one.needs_person and one.remedy:
            screen.append(_below(Text(f"-> {one.remedy}", "yellow")))
    return Group(*screen)


def notices(incidents: Sequence[Incident], freezes: Sequence[Freeze]) -> Iterator[RenderableType]:
    """Yield the open incidents, and the freezes of a project or of everything."""
    for incident in incidents:
        yield Text(plain(incident.text), "red")
    for freeze in freezes:
        yield Text(freeze_line(freeze), "yellow")


def freeze_line(freeze: Freeze) -> str:
    """Return the line that describes a freeze."""
    scope = freeze.scope.replace(":", " ") or "everything"
    return f"{scope} is frozen by {plain(freeze.by)}"


def session(
    session: Session,
    facts: Facts,
    history: Sequence[HistoryRow],
    outbox: Sequence[OutboxEntry],
    budgets: Sequence[BudgetUsage],
    refused: Sequence[RefusedConnection],
    steps: Sequence[StepRecord],
    place: str = "",
) -> RenderableType:
    """Return the screen about one session.

    `place` is its position in the queue; empty if it is not queued.
    """
    phrases = {str(entry.key): describe_action(entry.action) for entry in outbox}
    issue, agent = session.issue, session.agent
    named = "" if session.agent_name in ("", session.agent_type) else f"{session.agent_name}, "
    rows = grid()
    if issue.number:
        add(rows, "issue", f"#{issue.number} {issue.title}", issue.url)
    else:
        add(rows, "task", issue.title)
    add(rows, "project", f"{session.project} ({session.repository})")
    add(rows, "requester", session.requester or "unknown")
    add(rows, "agent", f"{named}{session.agent_type}, {_agent(agent, session.run)}")
    if agent.native_id:
        add(rows, "conversation ID", agent.native_id)
    if place:
        add(rows, "queue", place)
    add(rows, "spent", cost(session.spent_ever), *map(_spent, budgets))
    _add_standing(rows, facts)
    add(rows, "work", _work(session.work, session.branch), session.work.path)
    for pull in session.pulls:
        add(rows, "pull", _pull(pull), pull.url)
    _add_network(rows, refused)
    _add_steps(rows, steps)
    for key, value in session.metadata.items():
        add(rows, key, value)
    _add_actions(rows, facts, phrases)
    return Group(
        headline(session.id, session.status, session.because),
        *_advice(session.reason, session.blockers),
        rows,
        Text("\nhistory", "dim"),
        _history(history[:_HISTORY], phrases),
    )


def preserved(kept: Sequence[Preserved], mirror: Path) -> Iterator[RenderableType]:
    """Yield the commits preserved from removed workspaces; a restore begins at the last."""
    if kept:
        yield Text("\npreserved when its workspace was removed", "dim")
    for one in kept:
        yield Text(f"  run {one.run}, {age(one.at)} ago: git fetch {mirror} {one.ref}")


def explanation(
    facts: Facts,
    decision: Decision,
    outbox: Sequence[OutboxEntry],
    policy: Policy,
    budgets: Sequence[BudgetUsage],
    refused: Sequence[RefusedConnection],
    steps: Sequence[StepRecord],
) -> RenderableType:
    """Return the screen of a session's facts, the resulting status and the next actions."""
    phrases = {str(entry.key): describe_action(entry.action) for entry in outbox}
    rows = grid()
    issue = facts.issue
    if issue.number:
        add(rows, "issue", f"#{issue.number}, {'open' if issue.open else 'closed'}")
    else:
        add(rows, "task", issue.title)
    add(rows, "agent", _agent(facts.agent, facts.run))
    if facts.waits:
        add(rows, "queue", facts.waits)
    add(rows, "spent", *map(_spent, budgets))
    _add_standing(rows, facts)
    add(rows, "work", _work(facts.work, facts.branch))
    for pull in facts.pulls:
        add(rows, "pull", _pull(pull))
    _add_network(rows, refused)
    _add_steps(rows, steps)
    if facts.done:
        last = str(max(facts.done, key=lambda key: facts.done[key].at))
        add(rows, "done", f"{len(facts.done)} actions, last: {phrases.get(last, last)}")
    _add_actions(rows, facts, phrases)
    signals = msgspec.structs.asdict(decision.signals)
    add(rows, "signals", ", ".join(f"{name}={value}" for name, value in signals.items()))
    follows = [describe_action(action) for action in decision.actions] or ["none"]
    if policy.mode is Mode.OBSERVE:
        follows = ['none, because policy.mode is "observe"']
    again = f"in {until(decision.recheck_at)}" if decision.recheck_at else "on the next change"
    remedy, *blockers = _advice(decision.reason, decision.blockers)
    return Group(
        headline(facts.session, decision.status, decision.because),
        remedy,
        Text("facts", "dim"),
        rows,
        *blockers,
        *_list("next actions", follows),
        Text.assemble(("next decision  ", "dim"), again),
    )


def color(status: str) -> str:
    """Return the color of a status: red if it needs a person, green if good, dim if ended."""
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


def _agent(agent: Agent, run: int) -> str:
    if not run:
        return "not started yet"
    since = f" since {age(agent.since)}" if agent.since else ""
    detail = agent.question or agent.error or agent.evidence
    return f"run {run}, {agent.activity}{since}{': ' if detail else ''}{detail}"


def _work(work: Work, branch: str) -> str:
    head = f" at {work.head[:7]}" if work.head else ""
    return f"{branch}{head}{', uncommitted changes' if work.dirty else ''}"


def _pull(pull: Pull) -> str:
    states = [check.state for check in pull.checks]
    counted = [f"{states.count(state)} {state}" for state in CheckState if state in states]
    failed = [check.name for check in pull.checks if check.state is CheckState.FAILED]
    names = f" ({', '.join(failed)})" if failed else ""
    words = [
        f"#{pull.number} {'draft' if pull.draft else pull.state} at {pull.head[:7]}",
        f"review {pull.review}, merge {pull.merge}",
        f"checks: {', '.join(counted) or 'none'}{names}",
    ]
    waiting = sum(not thread.resolved for thread in pull.threads)
    if waiting:
        words.append(f"{waiting} unresolved thread{'' if waiting == 1 else 's'}")
    return "; ".join(words)


def _spent(bar: BudgetUsage) -> str:
    spent = f"{bar.spent:,.0f}" if bar.name.endswith("tokens") else f"{bar.spent:.2f}"
    return f"{spent} of {bar.says}"


def _add_standing(rows: Table, facts: Facts) -> None:
    """Add rows for a freeze and for the last restore, if there are any."""
    if frozen := frozen_by(facts):
        where = {"all": "everything", "project": "the project"}.get(frozen.scope, "the session")
        add(rows, "frozen", f"{where}, by {frozen.by} {age(frozen.at)} ago")
    if facts.restored_at:
        add(rows, "restored", f"{age(facts.restored_at)} ago")


def _add_network(rows: Table, refused: Sequence[RefusedConnection]) -> None:
    if refused:
        add(rows, "network", *(one.says for one in refused))


def _add_steps(rows: Table, steps: Sequence[StepRecord]) -> None:
    for one in steps:
        log = f"mergewright logs {one.session} --step {one.step}"
        add(rows, str(one.step), sentence(step_words(one)), f"output: {log}")


def add(rows: Table, name: str, *lines: str) -> None:
    """Add a named row; control characters in the lines are removed."""
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


def _advice(reason: str, blockers: Sequence[Blocker]) -> list[RenderableType]:
    """Return the remedy for the session's status, if there is one, and what blocks the merge."""
    advice = advice_on(reason)
    blocked = [sentence(blocker.sentence) for blocker in blockers]
    return [Text(f"{advice}\n" if advice else ""), *_list("merge blocked by", blocked)]


def _list(title: str, lines: Sequence[str]) -> list[RenderableType]:
    if not lines:
        return []
    return [Text(title, "dim"), *(_below(Text(plain(line))) for line in lines)]


def _add_actions(rows: Table, facts: Facts, phrases: Mapping[str, str]) -> None:
    for key in sorted(map(str, facts.pending)):
        add(rows, "pending", phrases.get(key, key))
    for failed, failure in facts.failures.items():
        text = str(failed)
        add(rows, "failed", f"{phrases.get(text, text)}: {failure.detail}")


def _below(text: Text) -> Padding:
    """Indent all lines of a text."""
    return Padding(text, (0, 0, 0, 2), expand=False)


def _history(history: Sequence[HistoryRow], phrases: Mapping[str, str]) -> Table:
    rows = table()
    for row in history:
        when = row.at.astimezone().strftime("%m-%d %H:%M:%S")
        rows.add_row(Text(when, "dim"), Text(plain(_event(row, phrases)), overflow="fold"))
    return rows


def _event(row: HistoryRow, phrases: Mapping[str, str]) -> str:
    if row.kind is HistoryKind.DECISION:
        actions = ", ".join(phrases.get(key, key) for key in row.data["actions"])
        return f"{row.data['status']}: {row.data['because']}{f' -> {actions}' if actions else ''}"
    who = f" by {row.actor}" if row.actor and row.actor != BOT else ""
    return f"{row.kind.replace('_', ' ')}{who}: {describe_event(row.kind, row.data, phrases)}"
