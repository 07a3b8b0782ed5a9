"""What pages and programs are shown, looked up in the store."""

from collections.abc import Iterable, Iterator

from litestar.exceptions import ClientException, NotFoundException
from msgspec import Struct

from bot.decide.assignment import all_agents, caps
from bot.decide.policies import Policies
from bot.show.budget_usage import budget_usage
from bot.show.session_summary import SessionSummary, summarize
from bot.show.terminal import Terminal
from bot.show.transcripts import NoTranscript
from bot.store import AgentRecord, CorruptRow, Freeze, Incident, QueuedSession, Session, Store
from bot.web.detail import SessionDetail, detail_of
from config.settings import ProjectSettings, Settings
from runtimes.agents.shared.messages import Message


class Notices(Struct, frozen=True, kw_only=True):
    """What concerns more than one session, shown above everything else."""

    incidents: tuple[Incident, ...]
    freezes: tuple[Freeze, ...]


class Views:
    """Looks things up; what is not there is said as an HTTP error."""

    def __init__(
        self, store: Store, settings: Settings, policies: Policies, terminal: Terminal
    ) -> None:
        self.store = store
        self.policies = policies
        self._settings = settings
        self._terminal = terminal

    def session(self, id: str) -> Session:
        """One session; 404 where there is none."""
        session = self.store.sessions.get(id)
        if session is None:
            raise NotFoundException(f"There is no session {id}.")
        return session

    def row(self, id: str) -> SessionSummary:
        """One session as lists show it; 404 where there is none."""
        return summarize(self.session(id))

    def detail(self, id: str) -> SessionDetail:
        """Everything about one session; 404 where there is none."""
        session, facts = self.session(id), self.store.facts.get(id)
        return detail_of(
            *(
                session,
                self._line().get(id),
                facts,
                self.store.history.of(id),
                self.store.outbox.of(id),
            ),
            attach=self._terminal.attach(id),
            log=self._terminal.log(id),
            budgets=budget_usage(facts, self.policies.of(session.project), self.store.clock()),
            used=self.store.usage.totals("run", id),
        )

    def transcript(self, id: str, run: int, first: int, most: int) -> list[Message]:
        """What was said in a run (0: the last), from a message on; 404 where there is none."""
        self.session(id)
        try:
            return self._terminal.transcript(id, run, first, most)
        except NoTranscript as nothing:
            raise NotFoundException(f"{nothing}.") from nothing

    def last_said(self, id: str, run: int, most: int) -> tuple[int, list[Message]]:
        """The last that was said in a run, behind the place of the first of it; 404: nothing."""
        self.session(id)
        try:
            return self._terminal.last(id, run, most)
        except NoTranscript as nothing:
            raise NotFoundException(f"{nothing}.") from nothing

    def all_rows(self, *, live: bool | None = None) -> list[SessionSummary]:
        """Every session, newest first; `live`: only those with (or without) something left."""
        line = self._line()
        return [summarize(one, line.get(one.id)) for one in self.store.sessions.all(live=live)]

    def rows(self, ids: Iterable[str]) -> Iterator[SessionSummary]:
        """The sessions of these names that are there and can be read."""
        line = self._line()
        for name in sorted(ids):
            try:
                session = self.store.sessions.get(name)
            except CorruptRow:
                continue  # the store has logged it; the list leaves it out too
            if session is not None:
                yield summarize(session, line.get(name))

    def project(self, name: str) -> ProjectSettings:
        """One project of the configuration; 400 where there is none of this name."""
        projects = self._settings.projects
        if name not in projects:
            known = ", ".join(sorted(projects)) or "none"
            raise ClientException(
                f"There is no project {name[:80]!r}.", extra={"remedy": f"Known: {known}."}
            )
        return projects[name]

    def check_agent(self, name: str) -> None:
        """Raise 400 for what is no agent; empty is the project's own."""
        known = self._settings.identities.keys() | self._settings.agent_types.keys()
        if name and name not in known:
            raise ClientException(
                f"There is no agent {name[:80]!r}.",
                extra={"remedy": f"Known: {', '.join(sorted(known))}."},
            )

    def queue(self) -> list[QueuedSession]:
        """Those that wait for a slot, who is next first."""
        return self.store.slots.queue(caps(self._settings))

    def agents(self) -> list[AgentRecord]:
        """The records of all agents."""
        return all_agents(self.store.agents.records(), self._settings.identities)

    def _line(self) -> dict[str, QueuedSession]:
        return {one.session: one for one in self.queue()}

    def standing(self) -> Notices:
        """What concerns more than one session."""
        incidents, freezes = self.store.incidents.current(), self.store.freezes.all()
        return Notices(incidents=tuple(incidents), freezes=tuple(freezes))

    def check_scope(self, scope: str) -> None:
        """Raise 400 for what is no scope of a freeze; one session is frozen by a command."""
        kind, _, name = scope.partition(":")
        if not scope or (kind == "project" and name in self._settings.projects):
            return
        known = ", ".join(sorted(self._settings.projects)) or "none"
        raise ClientException(
            f"{scope[:80]!r} is nothing that can be frozen.",
            extra={
                "remedy": f"Use an empty scope for everything, project:NAME (known: {known});"
                " for one session, ask for `freeze`."
            },
        )
