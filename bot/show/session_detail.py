"""Everything about one session: its history, outbox, commands, budgets and usage."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, cast

from msgspec import Meta, Struct

from bot.show.json_values import json_value
from bot.show.session_summary import (
    BudgetUsage,
    RefusedConnection,
    SessionSummary,
    budget_usage,
    refused_connections,
    summarize,
)
from bot.show.terminal import PreservedWork, Terminal
from bot.store import (
    BOT,
    HistoryKind,
    OutboxEntry,
    QueuedSession,
    Session,
    SessionEvent,
    Store,
    UsageTotal,
)
from bot.text import page_text
from bot.text.history import describe_action, describe_event
from lifecycle.decide import Decision, decide
from lifecycle.judge.pauses import frozen_by
from lifecycle.judge.reasons import advice_on
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Facts, Frozen
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import HELD
from runtimes.host import Resources, StepRecord

#: Greater than the number of any event: JavaScript's `Number.MAX_SAFE_INTEGER`.
LAST_EVENT = 2**53 - 1
_EVENTS: Final = 200  #: The most events of a session in its details.


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One event in a session's history."""

    id: Annotated[
        int, Meta(description="Its number; later events of any session have greater ones.")
    ]
    session: Annotated[str, Meta(examples=["widgets-12"])]
    project: Annotated[str, Meta(examples=["widgets"])]
    at: datetime
    kind: HistoryKind
    actor: Annotated[str, Meta(description="A person, `agent` or `github`; if empty, the bot.")]
    status: Annotated[str, Meta(description="For decisions: what the session's status became.")]
    text: Annotated[str, Meta(description="What happened, in words.")]
    actions: Annotated[
        tuple[str, ...], Meta(description="For decisions: what the bot does next, in words.")
    ]


class ActionEntry(Struct, frozen=True, kw_only=True):
    """One action in a session's outbox."""

    key: str
    says: Annotated[str, Meta(description="What it does, in words.")]
    state: Annotated[str, Meta(description="`waiting`, `sent`, `done` or `failed`.")]
    tries: int
    created: datetime
    next_at: Annotated[
        datetime | None, Meta(description="While it waits: the time of its next try.")
    ]
    done_at: datetime | None
    text: Annotated[str, Meta(description="Its result, or the last error.")]


class CommandEntry(Struct, frozen=True, kw_only=True):
    """A command that a person gave."""

    key: str
    kind: Annotated[str, Meta(examples=["tell"])]
    actor: str
    at: datetime
    text: str
    answer: Annotated[
        str, Meta(description="The reply; empty until the command is applied or refused.")
    ]
    refused: Annotated[bool, Meta(description="Whether it was refused; `answer` says why.")]


class SessionDetail(Struct, frozen=True, kw_only=True):
    """Everything about one session."""

    session: SessionSummary
    frozen: Annotated[Frozen | None, Meta(description="The freeze that applies to it.")]
    held: Annotated[
        str, Meta(description="The commit that waits for the command `allow`; if empty, none.")
    ]
    budgets: Annotated[tuple[BudgetUsage, ...], Meta(description="Only budgets with a limit.")]
    used: Annotated[tuple[UsageTotal, ...], Meta(description="Model usage by run.")]
    refused: Annotated[
        tuple[RefusedConnection, ...],
        Meta(description="Connections that its network does not allow, the latest first."),
    ]
    commands: Annotated[tuple[CommandEntry, ...], Meta(description="Newest first.")]
    history: Annotated[tuple[HistoryEntry, ...], Meta(description="The last 200, newest first.")]
    outbox: Annotated[
        tuple[ActionEntry, ...], Meta(description="Failed actions first, then waiting ones.")
    ]
    attach: Annotated[
        str,
        Meta(description="The command that attaches to the terminal on the server, if any."),
    ]
    log: Annotated[str, Meta(description="The last lines of the agent's output.")]
    resources: Annotated[
        Resources | None,
        Meta(description="What its run uses; null if that is unknown or it does not run."),
    ]
    head: Annotated[str, Meta(description="The workspace's commit; empty: none yet.")]
    dirty: Annotated[bool, Meta(description="Whether the workspace has uncommitted changes.")]
    steps: Annotated[
        tuple[StepRecord, ...],
        Meta(description="The last attempts to run the project's own commands in the workspace."),
    ]
    preserved: Annotated[
        tuple[PreservedWork, ...], Meta(description="The work of its removed workspaces.")
    ]


class Explanation(Struct, frozen=True, kw_only=True):
    """The facts of a session and the decision that follows from them now."""

    facts: Facts
    decision: Decision
    budgets: tuple[BudgetUsage, ...]
    refused: tuple[RefusedConnection, ...]


class ExplainedSession(Struct, frozen=True, kw_only=True):
    """An `Explanation` with its facts and decision as JSON values, and with words for people."""

    facts: dict[str, Any]
    decision: dict[str, Any]
    budgets: tuple[BudgetUsage, ...]
    refused: tuple[RefusedConnection, ...]
    done: Annotated[int, Meta(description="The number of actions that are done.")]
    last_done: Annotated[str, Meta(description="The last one in words; empty: none.")]
    blockers: Annotated[tuple[str, ...], Meta(description="What blocks the merge, in words.")]
    remedy: Annotated[str, Meta(description="What people can do; empty: nothing is wrong.")]
    next_actions: Annotated[
        tuple[str, ...], Meta(description="What the bot does next, in words; in order.")
    ]
    observes: Annotated[
        bool, Meta(description="Whether the bot only observes, and takes no actions.")
    ]


class CommandReply(Struct, frozen=True):
    """Whether a command was accepted, and the reply to it."""

    accepted: bool
    text: str


def explain(store: Store, session: str, policy: Policy, now: datetime) -> Explanation:
    """Compute the decision on a session from its facts, without acting on it or recording it."""
    facts = store.facts.get(session)
    return Explanation(
        facts=facts,
        decision=decide(facts, policy, now),
        budgets=budget_usage(facts, policy, now),
        refused=refused_connections(store.refused.of(session), facts.project),
    )


def explained_session(
    found: Explanation, outbox: Iterable[OutboxEntry], policy: Policy
) -> ExplainedSession:
    """Return an explanation in words for people, with its facts and decision as JSON values.

    `outbox` has the session's actions, from which the last one done is described.
    """
    phrases = {str(entry.key): describe_action(entry.action) for entry in outbox}
    done = found.facts.done
    last = str(max(done, key=lambda key: done[key].at)) if done else ""
    return ExplainedSession(
        facts=cast(dict[str, Any], json_value(found.facts)),
        decision=cast(dict[str, Any], json_value(found.decision)),
        budgets=found.budgets,
        refused=found.refused,
        done=len(done),
        last_done=phrases.get(last, last),
        blockers=tuple(page_text.line(one.sentence) for one in found.decision.blockers),
        remedy=advice_on(found.decision.reason),
        next_actions=tuple(map(describe_action, found.decision.actions)),
        observes=policy.mode is Mode.OBSERVE,
    )


def session_detail(
    store: Store,
    session: Session,
    policy: Policy,
    queued: QueuedSession | None,
    terminal: Terminal,
) -> SessionDetail:
    """Return everything about a session; `queued` is its queue entry if it waits for a slot."""
    name, facts = session.id, store.facts.get(session.id)
    outbox = store.outbox.of(name)
    events = store.history.page(name, LAST_EVENT, _EVENTS)
    return SessionDetail(
        session=summarize(session, queued),
        frozen=frozen_by(facts),
        held=facts.work.head if session.reason in HELD else "",
        budgets=budget_usage(facts, policy, store.clock()),
        used=tuple(store.usage.totals("run", name)),
        refused=refused_connections(store.refused.of(name), session.project),
        commands=command_entries(session, replies_by_command(outbox)),
        history=tuple(map(history_entry, events)),
        outbox=outbox_entries(outbox),
        attach=page_text.line(terminal.attach(name)),
        log=page_text.block(terminal.log(name)),
        resources=terminal.resources(name),
        head=session.work.head,
        dirty=bool(session.work.dirty),
        steps=tuple(terminal.step_records(name)),
        preserved=tuple(terminal.preserved(name)),
    )


def replies_by_command(
    outbox: Iterable[OutboxEntry], unrecorded: Mapping[Key, str] | None = None
) -> Mapping[str, CommandReply]:
    """Return the replies to commands, by the command's key.

    `unrecorded` are replies that are missing from the outbox, by action key. For example, none is
    recorded while the project's mode is `Mode.OBSERVE`.
    """
    actions = (entry.action for entry in outbox)
    replies = {
        one.key: one.values["text"]
        for one in actions
        if isinstance(one, Comment) and one.topic == "answer"
    }
    return {
        key.cause[0]: CommandReply(key.kind is not KeyKind.COMMAND_REFUSED, text)
        for key, text in {**(unrecorded or {}), **replies}.items()
    }


def command_entries(
    session: Session, answers: Mapping[str, CommandReply]
) -> tuple[CommandEntry, ...]:
    """Return a session's commands, newest first. `answers` are the replies by command key."""
    none = CommandReply(accepted=True, text="")
    return tuple(
        CommandEntry(
            key=command.key,
            kind=command.kind,
            actor=page_text.line(command.actor),
            at=command.at,
            # The text of `help` is its reply.
            text="" if command.kind == "help" else page_text.block(command.text),
            answer=page_text.block((reply := answers.get(command.key, none)).text),
            refused=not reply.accepted,
        )
        for command in reversed(session.commands)
    )


def history_entry(event: SessionEvent) -> HistoryEntry:
    """Return an event of the history in words."""
    row = event.row
    phrases = {key: describe_action(action) for key, action in event.actions.items()}
    actions: Iterable[Any] = row.data.get("actions", ())
    return HistoryEntry(
        id=row.seq,
        session=row.session,
        project=event.project,
        at=row.at,
        kind=row.kind,
        actor=page_text.line(row.actor) if row.actor != BOT else "",
        status=row.data["status"] if row.kind is HistoryKind.DECISION else "",
        text=page_text.line(describe_event(row.kind, row.data, phrases)),
        actions=tuple(page_text.line(phrases.get(key, key)) for key in actions),
    )


def outbox_entries(outbox: Iterable[OutboxEntry]) -> tuple[ActionEntry, ...]:
    """Return the actions of a session, failed ones first, then waiting ones."""
    return tuple(map(_action, sorted(outbox, key=_attention)))


_STATES = {"failed": "failed", "due": "waiting", "sent": "sent", "done": "done"}


def _attention(order: OutboxEntry) -> tuple[int, int]:
    return list(_STATES).index(order.state), -order.seq


def _action(order: OutboxEntry) -> ActionEntry:
    return ActionEntry(
        key=str(order.key),
        says=describe_action(order.action),
        state=_STATES[order.state],
        tries=order.attempts,
        created=order.created,
        next_at=order.next_at if order.state == "due" else None,
        done_at=order.done_at,
        text=page_text.line(order.result if order.state == "done" else order.error),
    )
