"""The data that pages and the API show, read from the store; missing things are HTTP errors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from litestar.exceptions import ClientException, NotFoundException
from msgspec import Struct

from bot.intake.commands import InvalidArgument
from bot.intake.local_commands import CommandReply, KeyReused, replies_by_command
from bot.show.session_summary import (
    BudgetUsage,
    RefusedConnection,
    SessionSummary,
    budget_usage,
    refused_connections,
    summarize,
)
from bot.show.terminal import Terminal
from bot.show.transcripts import NoTranscript
from bot.store import (
    BOT,
    AgentRecord,
    CorruptRow,
    Freeze,
    HistoryKind,
    HistoryRow,
    Incident,
    OutboxEntry,
    QueuedSession,
    Session,
    Store,
    UsageTotal,
)
from bot.system.isolation import problems, unisolated
from bot.text import page_text
from bot.text.history import describe_action, describe_event
from config.settings import ProjectSettings, Settings, requestable
from lifecycle.judge.capacity import Caps
from lifecycle.judge.pauses import frozen_by
from lifecycle.model.facts import Frozen
from lifecycle.model.policy import Policy
from lifecycle.model.status import HELD
from runtimes.agents.shared.messages import Message


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One event in a session's history."""

    at: datetime
    kind: str
    actor: str
    status: str  #: For decisions: what it became.
    text: str
    actions: tuple[str, ...]  #: For decisions: what the bot does next, in words.


class ActionEntry(Struct, frozen=True, kw_only=True):
    """One action in a session's outbox."""

    key: str
    says: str  #: What it does, in words.
    state: str  #: `waiting`, `done` or `failed`.
    tries: int
    created: datetime
    next_at: datetime | None  #: While it waits: the time of its next try.
    done_at: datetime | None
    text: str  #: Its result, or the last error.


class CommandEntry(Struct, frozen=True, kw_only=True):
    """One command a person gave."""

    key: str
    kind: str
    actor: str
    at: datetime
    text: str
    answer: str  #: Empty: not applied yet, or frozen.
    refused: bool  #: Whether `answer` says why it has no effect.


class SessionDetail(Struct, frozen=True, kw_only=True):
    """Everything the page shows about one session."""

    session: SessionSummary
    frozen: Frozen | None  #: The freeze that applies to it.
    held: str  #: The commit that waits for `allow`; empty: none.
    budgets: tuple[BudgetUsage, ...]  #: Only budgets with a limit.
    used: tuple[UsageTotal, ...]  #: Model usage by run.
    refused: tuple[RefusedConnection, ...]  #: The last one first.
    commands: tuple[CommandEntry, ...]  #: Newest first, as in `history`.
    history: tuple[HistoryEntry, ...]
    outbox: tuple[ActionEntry, ...]  #: Failed actions first, then waiting ones.
    attach: str  #: The command that attaches to the terminal; empty: no terminal.
    log: str  #: The last lines of the agent's output.


class Notices(Struct, frozen=True, kw_only=True):
    """Incidents, freezes and warnings that concern more than one session."""

    warnings: tuple[str, ...]  #: Of agents that are not isolated, or cannot be.
    incidents: tuple[Incident, ...]
    freezes: tuple[Freeze, ...]


class Views:
    """Reads the data of pages and the API. Methods raise HTTP errors for what does not exist."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        policy_of: Callable[[str], Policy],
        caps: Callable[[], Caps],
        terminal: Terminal,
    ) -> None:
        self.store = store
        self.policy_of = policy_of
        self._caps = caps
        self._settings = settings
        self._terminal = terminal

    def session(self, id: str) -> Session:
        """Return a session, or raise 404."""
        session = self.store.sessions.get(id)
        if session is None:
            raise NotFoundException(f"No session {id}.")
        return session

    def row(self, id: str) -> SessionSummary:
        """Return a session as lists show it, or raise 404."""
        return summarize(self.session(id))

    def detail(self, id: str) -> SessionDetail:
        """Return everything about a session, or raise 404."""
        session, facts = self.session(id), self.store.facts.get(id)
        outbox = self.store.outbox.of(id)
        phrases = {str(order.key): describe_action(order.action) for order in outbox}
        history = sorted(self.store.history.of(id), key=lambda row: -row.seq)
        return SessionDetail(
            session=summarize(session, self._queued().get(id)),
            frozen=frozen_by(facts),
            held=facts.work.head if session.reason in HELD else "",
            budgets=budget_usage(facts, self.policy_of(session.project), self.store.clock()),
            used=tuple(self.store.usage.totals("run", id)),
            refused=refused_connections(self.store.refused.of(id), session.project),
            commands=_commands(session, replies_by_command(outbox)),
            history=tuple(_event(row, phrases) for row in history),
            outbox=tuple(_action(order) for order in sorted(outbox, key=_attention)),
            attach=page_text.line(self._terminal.attach(id)),
            log=page_text.block(self._terminal.log(id)),
        )

    def transcript(self, id: str, run: int, first: int, most: int) -> list[Message]:
        """Return messages of a run (0: the last one), or raise 404."""
        self.session(id)
        with http_errors():
            return self._terminal.transcript(id, run, first, most)

    def last_messages(self, id: str, run: int, most: int) -> tuple[int, list[Message]]:
        """Return a run's last messages, preceded by the number of the first, or raise 404."""
        self.session(id)
        with http_errors():
            return self._terminal.last(id, run, most)

    def all_rows(self, *, live: bool | None = None) -> list[SessionSummary]:
        """Return all sessions, newest first. `live` selects live sessions or ended ones."""
        queued = self._queued()
        return [summarize(one, queued.get(one.id)) for one in self.store.sessions.all(live=live)]

    def rows(self, ids: Iterable[str]) -> Iterator[SessionSummary]:
        """Yield the sessions with these IDs, without missing and unreadable ones."""
        queued = self._queued()
        for name in sorted(ids):
            try:
                session = self.store.sessions.get(name)
            except CorruptRow:
                continue  # The store has logged it.
            if session is not None:
                yield summarize(session, queued.get(name))

    def projects(self) -> Mapping[str, str]:
        """Return the repository (`owner/name`) of each project."""
        projects = sorted(self._settings.projects.items())
        return {name: project.repository for name, project in projects}

    def project(self, name: str) -> ProjectSettings:
        """Return a configured project, or raise 400."""
        projects = self._settings.projects
        if name not in projects:
            raise unknown(f"No project {name[:80]!r}.", sorted(projects))
        return projects[name]

    def check_agent(self, name: str) -> None:
        """Raise 400 unless this is an agent, an agent type or empty."""
        known = requestable(self._settings.identities)
        if name and name not in known:
            raise unknown(f"No agent {name[:80]!r}.", sorted(known))

    def queue(self) -> list[QueuedSession]:
        """Return the sessions that wait for a slot, the next one first."""
        return self.store.slots.queue(self._caps())

    def agents(self) -> list[AgentRecord]:
        """Return the records of all agents."""
        return self.store.agents.records(self._settings.identities)

    def _queued(self) -> dict[str, QueuedSession]:
        return {one.session: one for one in self.queue()}

    def notices(self) -> Notices:
        """Return the warnings, the open incidents and the freezes."""
        incidents, freezes = self.store.incidents.current(), self.store.freezes.all()
        warnings = (*problems(self._settings), *filter(None, [unisolated(self._settings)]))
        return Notices(warnings=warnings, incidents=tuple(incidents), freezes=tuple(freezes))

    def freeze(self, scope: str, actor: str) -> list[Freeze]:
        """Freeze everything or a project and return all freezes, or raise 400."""
        self._check_scope(scope)
        self.store.freezes.add(scope, actor)
        return self.store.freezes.all()

    def unfreeze(self, scope: str, actor: str) -> list[Freeze]:
        """Undo a freeze of everything or a project and return the others, or raise 400."""
        self._check_scope(scope)
        self.store.freezes.remove(scope, actor)
        return self.store.freezes.all()

    def _check_scope(self, scope: str) -> None:
        kind, _, name = scope.partition(":")
        if not scope or (kind == "project" and name in self._settings.projects):
            return
        known = ", ".join(sorted(self._settings.projects)) or "none"
        raise ClientException(
            f"Cannot freeze the scope {scope[:80]!r}.",
            extra={
                "remedy": f"Use an empty scope for everything or project:NAME (known: {known})."
                " For one session, send the command `freeze`."
            },
        )


def unknown(what: str, known: Iterable[str]) -> ClientException:
    """Return 400 for a name that does not exist, with the known ones as the remedy."""
    remedy = f"Known: {', '.join(known) or 'none'}."
    return ClientException(what, extra={"remedy": remedy})


@contextmanager
def http_errors() -> Iterator[None]:
    """Raise the HTTP errors of invalid commands, reused keys and missing transcripts."""
    try:
        yield
    except InvalidArgument as problem:
        raise ClientException(f"{problem}.") from problem
    except KeyReused as problem:
        raise ClientException(f"{problem}.", status_code=409) from problem
    except NoTranscript as problem:
        raise NotFoundException(f"{problem}.") from problem


def _commands(session: Session, answers: Mapping[str, CommandReply]) -> tuple[CommandEntry, ...]:
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


def _event(row: HistoryRow, phrases: Mapping[str, str]) -> HistoryEntry:
    return HistoryEntry(
        at=row.at,
        kind=row.kind,
        actor=page_text.line(row.actor) if row.actor != BOT else "",
        status=row.data["status"] if row.kind is HistoryKind.DECISION else "",
        text=page_text.line(describe_event(row.kind, row.data, phrases)),
        actions=tuple(page_text.line(phrases.get(key, key)) for key in row.data.get("actions", ())),
    )


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
