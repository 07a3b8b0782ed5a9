"""All that is shown of one session: its row, what was asked of it, what happened, what is to do."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from bot.intake.local_commands import answers
from bot.show.budget_usage import BudgetUsage
from bot.show.session_summary import SessionSummary, summarize
from bot.store import BOT, HistoryKind, HistoryRow, OutboxEntry, QueuedSession, Session, UsageTotal
from bot.text import page_text
from bot.text.history import describe_action, describe_event
from lifecycle.judge.pauses import frozen_by
from lifecycle.model.facts import Facts, Frozen
from lifecycle.model.status import Reason


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One thing that happened to a session."""

    at: datetime
    kind: str
    actor: str
    status: str  #: For decisions: what it became.
    text: str
    actions: tuple[str, ...]  #: For decisions: what the bot does next, in words.


class ActionEntry(Struct, frozen=True, kw_only=True):
    """One action of a session's outbox."""

    key: str
    says: str  #: What it does, in words.
    state: str  #: `waiting`, `done` or `given up`.
    tries: int
    created: datetime
    next_at: datetime | None  #: When it is tried next, while it waits.
    done_at: datetime | None
    text: str  #: What came of it; while it is not done, what the last try said.


class CommandEntry(Struct, frozen=True, kw_only=True):
    """One thing a person asked for."""

    key: str
    kind: str
    actor: str
    at: datetime
    text: str
    answer: str  #: Empty: not judged yet, or frozen.


class SessionDetail(Struct, frozen=True, kw_only=True):
    """One session with its past and what is under way."""

    session: SessionSummary
    frozen: Frozen | None  #: Who stopped every effect on it, if somebody did.
    held: str  #: The commit that is not pushed before a person allows it; empty: none.
    budgets: tuple[BudgetUsage, ...]  #: Those that have a limit.
    used: tuple[UsageTotal, ...]  #: What each of its runs used models for.
    commands: tuple[CommandEntry, ...]  #: Newest first, likewise below.
    history: tuple[HistoryEntry, ...]
    outbox: tuple[ActionEntry, ...]  #: What needs attention first.
    attach: str  #: The command line that shows the agent's terminal; empty: there is none.
    log: str  #: The last lines the agent's program printed.


def detail_of(
    session: Session,
    queued: QueuedSession | None,
    facts: Facts,
    history: Sequence[HistoryRow],
    outbox: Sequence[OutboxEntry],
    *,
    attach: str,
    log: str,
    budgets: tuple[BudgetUsage, ...],
    used: Sequence[UsageTotal],
) -> SessionDetail:
    """Put together what the store and the runtime know."""
    phrases = {order.key: describe_action(order.action) for order in outbox}
    return SessionDetail(
        session=summarize(session, queued),
        frozen=frozen_by(facts),
        held=facts.work.head if session.reason == Reason.PROTECTED_PATHS else "",
        budgets=budgets,
        used=tuple(used),
        commands=_asked(session, answers(outbox)),
        history=tuple(_step(row, phrases) for row in sorted(history, key=lambda row: -row.seq)),
        outbox=tuple(_letter(order) for order in sorted(outbox, key=_attention)),
        attach=page_text.line(attach),
        log=page_text.block(log),
    )


def _asked(session: Session, answers: Mapping[str, str]) -> tuple[CommandEntry, ...]:
    return tuple(
        CommandEntry(
            key=command.key,
            kind=command.kind,
            actor=page_text.line(command.actor),
            at=command.at,
            # A command for help carries its answer.
            text="" if command.kind == "help" else page_text.block(command.text),
            answer=page_text.block(answers.get(command.key, "")),
        )
        for command in reversed(session.commands)
    )


def _step(row: HistoryRow, phrases: Mapping[str, str]) -> HistoryEntry:
    return HistoryEntry(
        at=row.at,
        kind=row.kind,
        actor=page_text.line(row.actor) if row.actor != BOT else "",
        status=row.data["status"] if row.kind is HistoryKind.DECISION else "",
        text=page_text.line(describe_event(row.kind, row.data, phrases)),
        actions=tuple(page_text.line(phrases.get(key, key)) for key in row.data.get("actions", ())),
    )


_STATES = {"failed": "given up", "due": "waiting", "done": "done"}


def _attention(order: OutboxEntry) -> tuple[int, int]:
    return list(_STATES).index(order.state), -order.seq


def _letter(order: OutboxEntry) -> ActionEntry:
    return ActionEntry(
        key=order.key,
        says=describe_action(order.action),
        state=_STATES[order.state],
        tries=order.attempts,
        created=order.created,
        next_at=order.next_at if order.state == "due" else None,
        done_at=order.done_at,
        text=page_text.line(order.result if order.state == "done" else order.error),
    )
