"""Reads data about sessions and the bot from the API of a server on another machine."""

from collections.abc import Iterator
from typing import Final, Literal, TypeVar
from urllib.parse import quote

from msgspec import Struct

from bot.cli.options import PROBLEM, CliError
from bot.cli.remote import Forbidden, NotFound, RemoteServer, no_session
from bot.cli.tables import FoundAgent
from bot.show.costs import PriceNotes
from bot.show.deliveries import DeliveryEntry
from bot.show.run_log import LogPage
from bot.show.session_detail import ExplainedSession, SessionDetail
from bot.show.terminal import StepLog
from bot.store import (
    AgentRecord,
    Incident,
    QueuedSession,
    SessionQuery,
    UsageFilter,
    UsageTotal,
)
from runtimes.agents.shared.messages import Message

T = TypeVar("T")
UsageGroup = Literal["session", "run", "agent", "issue", "repository", "person", "day"]
_MOST_DELIVERIES: Final = 200
#: The greatest numbers that the API takes as `limit`.
_MOST_LINES, _MOST_MESSAGES = 2_000, 1_000


class _Deliveries(Struct):
    items: list[DeliveryEntry]
    cursor: str | None


class _Messages(Struct):
    items: list[Message]


class RemoteReader:
    """Reads a server's API; see `bot.cli.reading.SessionReader`."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server
        self.freezes = server.freezes
        self.projects = server.projects
        self.sessions = server.sessions

    def incidents(self) -> list[Incident]:
        try:
            found = self._server.get("incidents", list[Incident])
        except Forbidden:  # They may name any project, so not everybody may see them.
            return []
        return [one for one in found if one.cleared_at is None]

    def detail(self, id: str) -> SessionDetail:
        return of_session(self._server, id, "", SessionDetail)

    def explain(self, id: str) -> ExplainedSession:
        return of_session(self._server, id, "/why", ExplainedSession)

    def queue(self) -> list[QueuedSession]:
        return self._server.get("queue", list[QueuedSession])

    def usage(
        self, by: UsageGroup, session: str, project: str, among: UsageFilter
    ) -> list[UsageTotal]:
        if session:
            self.detail(session)  # The API also sums up what deleted sessions used.
        wanted = {
            "by": by,
            "session": session,
            "project": project,
            "agent": among.agent,
            "person": among.person,
            "from": among.first,
            "to": among.last,
        }
        return self._server.get("usage", list[UsageTotal], **wanted)

    def prices(self, session: str) -> PriceNotes:
        return self._server.get("prices", PriceNotes, session=session)

    def agents(self) -> list[AgentRecord]:
        return self._server.get("agents", list[AgentRecord])

    def agent(self, name: str) -> FoundAgent:
        path = f"agents/{quote(name, safe='')}"
        record = self._server.get(path, AgentRecord)
        query = SessionQuery(agent=name, scope="all", limit=10**6)
        return FoundAgent(
            record=record,
            types=tuple(self._server.get(f"{path}/types", list[str])),
            sessions=tuple(one for one in self.sessions(query) if one.agent == name),
        )

    def failed_deliveries(self) -> list[DeliveryEntry]:
        found, cursor = list[DeliveryEntry](), ""
        while True:
            page = self._server.get(
                "deliveries", _Deliveries, state="failed", limit=_MOST_DELIVERIES, cursor=cursor
            )
            found += page.items
            if not (cursor := page.cursor or ""):
                return found

    def last_deliveries(self) -> list[DeliveryEntry]:
        return self._server.get("deliveries", _Deliveries).items


class RemoteTranscript:
    """The messages of a run, each once, as `bot.show.transcripts.Transcript` returns them."""

    def __init__(self, server: RemoteServer, id: str, run: int) -> None:
        self._server = server
        self._id = id
        self._run = run
        self._next = 0

    def new(self) -> list[Message]:
        """Return the next messages, at most 1,000; empty if there are none yet."""
        if not self._run:  # The session may start another run meanwhile.
            self._run = of_session(self._server, self._id, "", SessionDetail).session.run
        wanted = {"run": self._run, "cursor": self._next, "limit": _MOST_MESSAGES}
        found = of_session(self._server, self._id, "/transcript", _Messages, **wanted)
        self._next += len(found.items)
        return found.items


class RemoteLog:
    """The lines that a run printed."""

    def __init__(self, server: RemoteServer, id: str, run: int, count: int) -> None:
        """Prepare to read a run's last `count` lines and what follows. Run 0 is the last one."""
        self._server = server
        self._id = id
        self._run = run
        self._count = count
        self._cursor: int | None = None

    def new(self) -> Iterator[str]:
        """Yield the lines added since the last call.

        The first call yields the last `count` lines. If these do not fit on one page of the API, it
        yields the whole run instead.
        """
        if self._cursor is None:
            page = self._page(limit=min(self._count, _MOST_LINES))
            self._run = page.run  # The session may start another run meanwhile.
            if len(page.lines) >= self._count:
                yield from page.lines
                self._cursor = page.cursor
            else:  # The last lines are more than one page has, or are all that there are.
                self._cursor = 0
        more = True
        while more:
            page = self._page(limit=_MOST_LINES, cursor=self._cursor)
            self._run, self._cursor, more = page.run, page.cursor, page.more and bool(page.lines)
            yield from page.lines

    def _page(self, **wanted: object) -> LogPage:
        return of_session(self._server, self._id, "/log", LogPage, run=self._run, **wanted)


def step_lines(server: RemoteServer, id: str, step: str) -> list[str]:
    """Return the end of what the last attempt at `setup` or `teardown` printed, as lines.

    `step` is one of these two words. Raises `CliError`, also if there was no attempt.
    """
    steps = of_session(server, id, "/steps", list[StepLog])
    for one in steps:
        if one.step == step:
            return one.log.splitlines()
    raise CliError(f"no {step} commands have run in {id} yet", PROBLEM)


def of_session(server: RemoteServer, id: str, path: str, kind: type[T], **wanted: object) -> T:
    """Return what the API has at `path` below a session, as `kind`. Raises `CliError`.

    `wanted` are as in `RemoteServer.get`.
    """
    try:
        return server.get(f"sessions/{quote(id, safe='')}{path}", kind, **wanted)
    except NotFound as problem:
        if path and server.find(id):
            raise CliError(str(problem).rstrip("."), PROBLEM) from None
        raise CliError(no_session(id)) from None
