"""Reads what commands show: from this machine's database and files, or from a server's API."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from bot.cli import context
from bot.cli.options import CliError
from bot.cli.remote import RemoteServer
from bot.cli.remote_reader import RemoteReader, UsageGroup
from bot.cli.tables import FoundAgent
from bot.decide.assignment import caps
from bot.show.costs import PriceNotes, price_notes
from bot.show.deliveries import DeliveryEntry, delivery_entries
from bot.show.session_detail import (
    ExplainedSession,
    SessionDetail,
    explain,
    explained_session,
    session_detail,
)
from bot.show.session_list import list_sessions
from bot.show.session_summary import SessionSummary
from bot.show.terminal import Terminal, terminal
from bot.store import (
    AgentRecord,
    DeliveryQuery,
    Freeze,
    Incident,
    QueuedSession,
    SessionQuery,
    Store,
    UsageFilter,
    UsageTotal,
)
from bot.system.isolation import isolation_of
from bot.system.locations import Locations, Paths, programs
from bot.system.redaction import Redaction
from config.contradictions import nearest
from config.settings import Settings


class SessionReader(Protocol):
    """Reads the data of sessions and of the whole bot. Its methods raise `CliError`."""

    def projects(self) -> Sequence[str]:
        """Return the names of the projects."""

    def sessions(self, query: SessionQuery) -> list[SessionSummary]:
        """Return the sessions that match, at most `query.limit`."""

    def incidents(self) -> list[Incident]:
        """Return the open incidents that the person may see."""

    def freezes(self) -> list[Freeze]:
        """Return the freezes that the person may see."""

    def detail(self, id: str) -> SessionDetail:
        """Return everything about a session."""

    def explain(self, id: str) -> ExplainedSession:
        """Return the facts of a session and the decision that follows from them now."""

    def queue(self) -> list[QueuedSession]:
        """Return the sessions that wait for a slot, the next one first."""

    def usage(
        self, by: UsageGroup, session: str, project: str, among: UsageFilter
    ) -> list[UsageTotal]:
        """Return sums of usage, one for each session, day or whatever else `by` names.

        `session`, `project` and the agent, person and days of `among` select the usage; an empty
        text selects all.
        """

    def prices(self, session: str) -> PriceNotes:
        """Return the unpriced models of a session, and the day of the oldest configured price.

        If `session` is empty, the models are those of all sessions.
        """

    def agents(self) -> list[AgentRecord]:
        """Return the records of all agents that are configured or ever had a session."""

    def agent(self, name: str) -> FoundAgent:
        """Return one agent with all its sessions, including ended ones."""

    def failed_deliveries(self) -> list[DeliveryEntry]:
        """Return all webhook deliveries that could not be processed, newest first."""

    def last_deliveries(self) -> list[DeliveryEntry]:
        """Return the last 50 webhook deliveries, whatever their states, newest first."""


class LocalReader:
    """Reads the database and the files of this machine."""

    def __init__(self, store: Store, settings: Settings, redact: Redaction) -> None:
        self._store = store
        self._settings = settings
        self._redact = redact

    def projects(self) -> Sequence[str]:
        return list(self._settings.projects)

    def sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return list_sessions(self._store, query, caps(self._settings))[0]

    def incidents(self) -> list[Incident]:
        return self._store.incidents.current()

    def freezes(self) -> list[Freeze]:
        return self._store.freezes.all()

    def detail(self, id: str) -> SessionDetail:
        session = context.session(self._store, id)
        policy = context.policies(self._settings, self._store).of(session.project)
        queued = context.queue(self._settings, self._store).get(session.id)
        return session_detail(self._store, session, policy, queued, self._terminal())

    def explain(self, id: str) -> ExplainedSession:
        session = context.session(self._store, id)
        policy = context.policies(self._settings, self._store).of(session.project)
        found = explain(self._store, session.id, policy, self._store.clock())
        return explained_session(found, self._store.outbox.of(session.id), policy)

    def queue(self) -> list[QueuedSession]:
        return list(context.queue(self._settings, self._store).values())

    def usage(
        self, by: UsageGroup, session: str, project: str, among: UsageFilter
    ) -> list[UsageTotal]:
        projects = self._settings.projects
        if project and project not in projects:
            raise CliError(f"no project {project!r}; {nearest(project, projects)}")
        if session:
            context.session(self._store, session)
        repository = projects[project].repository if project else ""
        return self._store.usage.totals(by, session, replace(among, repository=repository))

    def prices(self, session: str) -> PriceNotes:
        store = self._store
        sessions = [context.session(store, session)] if session else store.sessions.all()
        return price_notes(sessions, self._settings.prices)

    def agents(self) -> list[AgentRecord]:
        return self._store.agents.records(self._settings.identities)

    def agent(self, name: str) -> FoundAgent:
        by_name = {one.agent: one for one in self.agents() if one.agent}
        query = SessionQuery(agent=name, scope="all", limit=10**6)
        sessions = tuple(one for one in self.sessions(query) if one.agent == name)
        return configured(self._settings, name, by_name, sessions)

    def failed_deliveries(self) -> list[DeliveryEntry]:
        found, query = list[DeliveryEntry](), DeliveryQuery(state="failed")
        while True:
            records, cursor = self._store.deliveries.page(query)
            found += delivery_entries(self._store, records)
            if not cursor:
                return found
            query = replace(query, cursor=cursor)

    def last_deliveries(self) -> list[DeliveryEntry]:
        return delivery_entries(self._store, self._store.deliveries.page(DeliveryQuery())[0])

    def _terminal(self) -> Terminal:
        settings, paths = self._settings, Paths(self._settings.data)
        locations = Locations(
            *(paths, settings.projects, settings.github.git_base, lambda _: ""),
            *(context.runtime(settings), programs(settings), partial(isolation_of, settings)),
        )
        return terminal(self._store, locations, self._redact)


def configured(
    settings: Settings,
    name: str,
    records: Mapping[str, AgentRecord],
    sessions: tuple[SessionSummary, ...],
) -> FoundAgent:
    """Return an agent with its sessions and its configuration, if it has one.

    `records` has the records of all agents, by name. `sessions` are this agent's. Raises `CliError`
    if `records` does not have the agent.
    """
    if name not in records:
        raise CliError(f"no agent {name!r}; {nearest(name, records)}")
    known = settings.identities.get(name)
    return FoundAgent(
        record=records[name],
        types=known.types if known else (),
        sessions=sessions,
        prompt=known.system_prompt if known else "",
    )


@contextmanager
def reader(config: Path | None, server: str) -> Iterator[SessionReader]:
    """Open the API of the server with the URL `server` or, if it is empty, this machine's database.

    Raises `CliError`.
    """
    if server:
        with closing(RemoteServer(server)) as remote:
            yield RemoteReader(remote)
        return
    settings, redact = context.redacting(config)
    with context.store(settings) as store:
        yield LocalReader(store, settings, redact)
