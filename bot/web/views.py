"""Reads the data of pages and the API. Raises HTTP errors for what does not exist."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy

from litestar.exceptions import ClientException, NotFoundException
from msgspec import Struct
from msgspec.structs import replace

from bot.intake.commands import InvalidArgument
from bot.intake.inbox import Inbox
from bot.intake.local_commands import HeadChanged, KeyReused
from bot.intake.spawning import SessionExists
from bot.show.agents import AgentDetail, agent_detail
from bot.show.ansi import Piece, pieces
from bot.show.board import Board, BoardFilter, Card, board, card
from bot.show.changes import BranchDiff, NoChanges
from bot.show.check_reports import PullReport, pull_report
from bot.show.command_outcome import CommandOutcome, command_outcome
from bot.show.costs import CostFilter, Costs, PriceNotes, costs, price_notes, usage_filter
from bot.show.health import HealthReport, health_report
from bot.show.projects import (
    ProjectDetail,
    ProjectEntry,
    project_detail,
    project_entries,
)
from bot.show.run_log import LogPage, NoLog
from bot.show.session_detail import (
    ExplainedSession,
    Explanation,
    HistoryEntry,
    SessionDetail,
    explain,
    explained_session,
    history_entry,
    replies_by_command,
    session_detail,
)
from bot.show.session_head import SessionHead, session_head
from bot.show.session_list import list_sessions
from bot.show.session_summary import (
    SessionSummary,
    summarize,
)
from bot.show.terminal import StepLog, Terminal
from bot.show.timeline import TimelineEntry, timeline
from bot.show.transcripts import NoTranscript
from bot.store import (
    AgentRecord,
    CorruptRow,
    Freeze,
    Incident,
    QueuedSession,
    Session,
    SessionQuery,
    Store,
    UsageFilter,
    UsageRow,
)
from bot.system.isolation import problems, unisolated
from bot.text import page_text
from bot.web.delivery_views import DeliveryViews
from bot.web.freeze_views import FreezeViews
from bot.web.health import Health, process_state
from bot.web.reach import Reach, no_session
from config.settings import ProjectSettings, Settings, requestable
from lifecycle.judge.capacity import Caps
from lifecycle.model.policy import Policy
from runtimes.agents.shared.messages import Message

_EVENTS = 200  #: The most events of a session on one page.
_PEOPLE = 200  #: The most people that the board's filter offers; the URL takes any.
LAST_MESSAGE = 10**9  #: Greater than the number of any message.


class Notices(Struct, frozen=True, kw_only=True):
    """Incidents, freezes and warnings that concern more than one session."""

    warnings: tuple[str, ...]  #: About agents that are not isolated, or cannot be.
    incidents: tuple[Incident, ...]
    freezes: tuple[Freeze, ...]


class Timeline(Struct, frozen=True, kw_only=True):
    """A page of what happened to a session, newest first."""

    entries: tuple[TimelineEntry, ...]
    earlier: int | None  #: The next page begins before this event; if None, there is none.


class BoardChoices(Struct, frozen=True, kw_only=True):
    """The values that the board's filter offers."""

    projects: tuple[str, ...]
    agents: tuple[str, ...]
    people: tuple[str, ...]


class Views:
    """Reads the data of pages and the API. Methods raise HTTP errors for what does not exist.

    `seen_by` returns a copy for one visitor, in which projects that the visitor may not read do not
    exist. Methods that depend on the visitor fail unless called on such a copy. The other methods,
    such as `cards` and `events`, read data once for many visitors.
    """

    reach: Reach  #: Of the visitor.
    freezes: FreezeViews

    def __init__(
        self,
        store: Store,
        settings: Settings,
        policy_of: Callable[[str], Policy],
        caps: Callable[[], Caps],
        terminal: Terminal,
        inbox: Inbox,
        health: Callable[[], Health],
    ) -> None:
        self.store = store
        self.deliveries = DeliveryViews(store, settings, inbox)
        self._health = health
        self.policy_of = policy_of
        self._caps = caps
        self._settings = settings
        self._terminal = terminal

    def seen_by(self, reach: Reach) -> "Views":
        """Return the views of a visitor."""
        theirs = copy(self)
        theirs.reach = reach
        theirs.freezes = FreezeViews(self.store, reach)
        theirs.deliveries = self.deliveries.seen_by(reach)
        return theirs

    def session(self, id: str) -> Session:
        """Return a session, or raise 404."""
        session = self.store.sessions.get(id)
        if session is None or not self.reach.role(session.project):
            raise no_session(self.store, self.reach, id)
        return session

    def row(self, id: str) -> SessionSummary:
        """Return the summary of a session, as lists show it, or raise 404."""
        return summarize(self.session(id))

    def detail(self, id: str) -> SessionDetail:
        """Return everything about a session, or raise 404."""
        session, queued = self.session(id), self._queued().get(id)
        policy = self.policy_of(session.project)
        return session_detail(self.store, session, policy, queued, self._terminal)

    def command(self, key: str) -> CommandOutcome:
        """Return the outcome of a command, or raise 404."""
        projects, now = self._settings.projects, self.store.clock()
        command, seen = self.store.commands.get(key), self.reach.repositories()
        found = command_outcome(self.store, key, projects, self.policy_of, now)
        if (
            command is None
            or found is None
            or (seen is not None and command.repository not in seen)
        ):
            raise NotFoundException(f"No command {key[:80]!r}.")
        return found

    def head(self, id: str) -> SessionHead:
        """Return the top part of a session's page, or raise 404."""
        session, facts = self.session(id), self.store.facts.get(id)
        policy, queued = self.policy_of(session.project), self._queued().get(id)
        return session_head(session, facts, policy, self.store.clock(), queued)

    def timeline(self, id: str, before: int) -> Timeline:
        """Return what happened to a session before event number `before`, or raise 404."""
        session = self.session(id)
        events = self.store.history.page(id, before, _EVENTS)
        replies = replies_by_command(self.store.outbox.of(id))
        return Timeline(
            entries=tuple(timeline(events, session.work.base, replies)),
            earlier=events[-1].row.seq if len(events) == _EVENTS else None,
        )

    def screen(self, id: str) -> list[Piece]:
        """Return what a session's terminal shows; empty if there is nothing to read. Raises 404."""
        self.session(id)
        return pieces(self._terminal.screen(id))

    def changes(self, id: str) -> BranchDiff | str:
        """Return the changes of a session's branch, or a text that says why they are missing.

        Raises 404.
        """
        self.session(id)
        try:
            return self._terminal.changes(id)
        except NoChanges as problem:
            return str(problem)

    def steps(self, id: str) -> list[StepLog]:
        """Return the last attempt at each of `setup` and `teardown` in a session, or raise 404."""
        self.session(id)
        logs = self._terminal.steps(id)
        return [replace(one, log=page_text.block(one.log)) for one in logs]

    def check_reports(self, id: str) -> list[PullReport]:
        """Return the checks of a session's pull requests, the last pull first, or raise 404."""
        return [pull_report(pull) for pull in reversed(self.session(id).pulls)]

    def history(self, id: str, before: int, most: int) -> list[HistoryEntry]:
        """Return a session's last events before number `before`, newest first; checks no access."""
        return [history_entry(event) for event in self.store.history.page(id, before, most)]

    def events(self, after: int, most: int) -> list[HistoryEntry]:
        """Return at most `most` events of all sessions after number `after`, oldest first."""
        return [history_entry(event) for event in self.store.history.after(after, most)]

    def explain(self, id: str) -> Explanation:
        """Compute the decision on a session now, without acting on it, or raise 404."""
        session = self.session(id)
        return explain(self.store, id, self.policy_of(session.project), self.store.clock())

    def explained(self, id: str) -> ExplainedSession:
        """Return the result of `explain` in words and JSON, or raise 404."""
        found, policy = self.explain(id), self.policy_of(self.session(id).project)
        return explained_session(found, self.store.outbox.of(id), policy)

    def prices(self, id: str) -> PriceNotes:
        """Return the unpriced models of a session, and the day of the oldest configured price.

        An empty `id` stands for all sessions that the visitor sees. Raises 404.
        """
        if id:
            sessions = [self.session(id)]
        else:
            seen = self.reach.projects()
            everything = self.store.sessions.all()
            sessions = [one for one in everything if seen is None or one.project in seen]
        return price_notes(sessions, self._settings.prices)

    def log(self, id: str, run: int, start: int | None, most: int) -> LogPage:
        """Return lines that a run printed, or raise 404. Arguments: see `Terminal.log_page`."""
        self.session(id)
        with http_errors():
            return self._terminal.log_page(id, run, start, most)

    def transcript(self, id: str, run: int, first: int, most: int) -> list[Message]:
        """Return messages of a run, or raise 404. Arguments: see `Terminal.transcript`."""
        self.session(id)
        with http_errors():
            return self._terminal.transcript(id, run, first, most)

    def last_messages(self, id: str, run: int, most: int) -> tuple[int, list[Message]]:
        """Return the first index and the list of a run's last `most` messages, or raise 404."""
        self.session(id)
        with http_errors():
            return self._terminal.last(id, run, most)

    def page(self, query: SessionQuery) -> tuple[list[SessionSummary], str]:
        """Return a page of sessions and the next page's cursor, which is empty on the last page."""
        chosen = replace(query, projects=self.reach.projects())
        return list_sessions(self.store, chosen, self._caps())

    def board(self, filter: BoardFilter) -> Board:
        """Return the board for a filter."""
        return board(self.store, filter, self._caps(), self.reach.projects())

    def cards(self, ids: Iterable[str]) -> Iterator[Card]:
        """Yield the cards of sessions, without missing and unreadable ones. Checks no access."""
        queued = {one.session: one for one in self.store.slots.queue(self._caps())}
        for name in sorted(ids):
            try:
                session = self.store.sessions.get(name)
            except CorruptRow:
                continue  # The store has logged it.
            if session is not None:
                yield card(session, queued.get(name))

    def choices(self) -> BoardChoices:
        """Return the values that the board's filter offers."""
        return BoardChoices(
            projects=tuple(self.projects()),
            agents=tuple(sorted(requestable(self._settings.identities))),
            people=tuple(self.store.session_list.requesters(_PEOPLE, self.reach.projects())),
        )

    @property
    def polls(self) -> bool:
        """Whether the bot polls GitHub instead of receiving webhooks."""
        return self._settings.polls

    def projects(self) -> Mapping[str, ProjectSettings]:
        """Return the projects that the visitor sees, by name."""
        return self.reach.seen()

    def project_entries(self) -> tuple[ProjectEntry, ...]:
        """Return the projects that the visitor sees, each with its number of open sessions."""
        return project_entries(self.store, self.projects())

    def project_detail(self, name: str) -> ProjectDetail:
        """Return everything about a project, or raise 404."""
        self.project(name)
        policy = self.policy_of(name)
        return project_detail(self.store, self._settings, name, policy, self._caps())

    def project(self, name: str) -> ProjectSettings:
        """Return a project that the visitor sees, or raise 404."""
        projects = self.projects()
        if name not in projects:
            raise unknown(f"No project {name[:80]!r}.", sorted(projects))
        return projects[name]

    def check_agent(self, name: str) -> None:
        """Raise 404 unless `name` is empty, an agent, an agent type or `AGENT TYPE`."""
        known = requestable(self._settings.identities)
        if name and name not in known:
            raise unknown(f"No agent {name[:80]!r}.", sorted(known))

    def queue(self) -> list[QueuedSession]:
        """Return the sessions that wait for a slot, the next one first."""
        seen = self.reach.projects()
        queue = self.store.slots.queue(self._caps())
        return [one for one in queue if seen is None or one.project in seen]

    def agents(self) -> list[AgentRecord]:
        """Return each agent's statistics, from sessions in repositories that the visitor sees."""
        identities = self._settings.identities
        return self.store.agents.records(identities, self.reach.repositories())

    @property
    def agent_names(self) -> list[str]:
        """The names of the configured agents."""
        return sorted(self._settings.identities)

    def agent(self, name: str) -> AgentDetail:
        """Return an agent with its history, or raise 404."""
        identities = self._settings.identities
        now, seen = self.store.clock(), self.reach.repositories()
        found = agent_detail(self.store, identities, name, now, seen)
        if found is None:
            raise unknown(f"No agent {name[:80]!r}.", sorted(identities))
        return found

    def costs(self, filter: CostFilter) -> Costs:
        """Return the costs that a filter selects."""
        return costs(self.store, self.projects(), self._usage_filter(filter), filter)

    def usage_rows(self, filter: CostFilter) -> list[UsageRow]:
        """Return the usage that a filter selects, by day, session and agent."""
        return self.store.usage.rows(self._usage_filter(filter))

    def _usage_filter(self, filter: CostFilter) -> UsageFilter:
        return usage_filter(self.projects(), filter, self.reach.repositories())

    def _queued(self) -> dict[str, QueuedSession]:
        return {one.session: one for one in self.queue()}

    def notices(self) -> Notices:
        """Return the warnings, the open incidents and the freezes.

        Warnings and incidents of the whole bot may name any project, so they are shown only to
        visitors who see all projects.
        """
        warnings, incidents = tuple[str, ...](), list[Incident]()
        if self.reach.everywhere():
            warnings = (*problems(self._settings), *filter(None, [unisolated(self._settings)]))
            incidents = self.store.incidents.current()
        freezes = self.freezes.all()
        return Notices(warnings=warnings, incidents=tuple(incidents), freezes=tuple(freezes))

    def health(self) -> HealthReport:
        """Return whether the bot is healthy, with its problems and warnings."""
        process, now = process_state(self.store, self._health), self.store.clock()
        return health_report(self.store, self._settings, self._caps(), process, now)


def unknown(what: str, known: Iterable[str]) -> NotFoundException:
    """Return the error 404 for an unknown name. Its remedy lists the known names."""
    remedy = f"Known: {', '.join(known) or 'none'}."
    return NotFoundException(what, extra={"remedy": remedy})


@contextmanager
def http_errors() -> Iterator[None]:
    """Turn errors of commands, transcripts and output into the HTTP errors 400, 404 and 409."""
    try:
        yield
    except InvalidArgument as problem:
        raise ClientException(f"{problem}.") from problem
    except HeadChanged as problem:
        remedy = "Review the pull request's current commit, then give the command again."
        raise ClientException(f"{problem}.", status_code=409, extra={"remedy": remedy}) from problem
    except SessionExists as problem:
        remedy = "Ask for another session of the issue, or give this one a command."
        raise ClientException(f"{problem}.", status_code=409, extra={"remedy": remedy}) from problem
    except KeyReused as problem:
        raise ClientException(f"{problem}.", status_code=409) from problem
    except (NoTranscript, NoLog) as problem:
        raise NotFoundException(f"{problem}.") from problem
