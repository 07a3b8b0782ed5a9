"""The JSON interface under `/api/`: what programs read, and what they may ask for."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from litestar import Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException, HTTPException, InternalServerException
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody
from litestar.types import ExceptionHandlersMap
from msgspec import Meta, Struct

from bot.intake.commands import InvalidArgument
from bot.intake.local_commands import API, METADATA_KEY, AskedOtherwise, ask, ask_anew, command_of
from bot.show.session_summary import SessionSummary
from bot.store import GROUPS, AgentRecord, Freeze, Incident, NewCommand, QueuedSession, UsageTotal
from bot.system.clock import utc_now
from bot.web.access import Access, remedy_of
from bot.web.detail import SessionDetail
from bot.web.views import Views
from lifecycle.model.facts import Facts
from runtimes.agents.shared.messages import Message

#: Everything there is, in the words of the documentation; a test holds it against the routes.
ROUTES: Final[Mapping[tuple[str, str], str]] = {
    ("GET", "/api/sessions"): "all sessions, newest first; `?live=true`: those with something left",
    ("GET", "/api/sessions/ID"): "one session: its facts, history, outbox, commands, last output",
    ("GET", "/api/sessions/ID/transcript"): (
        "what was said in its last run, or in `?run=1`; `first=200&most=100`: a part of it"
    ),
    ("POST", "/api/sessions"): (
        'have an agent work on an issue: `{"project": "widgets", "issue": 12, "agent": ""}`'
    ),
    ("POST", "/api/sessions/ID/commands"): (
        'ask for something: `{"kind": "tell", "text": "..."}`; `head` binds a merge to a commit'
    ),
    ("POST", "/api/sessions/ID/metadata"): (
        'remember `{"KEY": "VALUE"}` about it; an empty value forgets'
    ),
    ("GET", "/api/agents"): "the agents, with their sessions, outcomes and cost",
    ("GET", "/api/usage"): "what models were used for, and its cost; `?by=day` and the like",
    ("GET", "/api/queue"): "who waits for a slot, why, and when it may be its turn",
    ("GET", "/api/incidents"): "what is or was wrong with the whole",
    ("GET", "/api/freezes"): "where every effect is stopped",
    ("POST", "/api/freeze"): (
        'stop every effect, everywhere (`{"scope": ""}`) or of a project (`"project:NAME"`)'
    ),
    ("POST", "/api/unfreeze"): "let effects out again, of the same scope",
}

_Request = Request[object, object, State]
_MOST_BYTES = 100_000
_KEY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MOST_MESSAGES = 1000
LAST_MESSAGE = 10**9  #: No transcript has more.
_IdempotencyKey = Annotated[str, HeaderParameter(name="idempotency-key")]


class CommandRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked for."""

    kind: str
    text: str = ""
    head: str = ""  #: For `merge`: the commit that was looked at.


class SessionRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issue that an agent is to work on."""

    project: str
    issue: Annotated[int, Meta(ge=1)]
    agent: str = ""  #: Empty: the project's.


class AcceptedCommand(Struct, frozen=True, kw_only=True):
    """That it was written down."""

    key: str
    session: str
    kind: str
    text: str
    new: bool  #: False: the same was asked before with this key.


class FreezeRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is frozen."""

    scope: str


class SessionWithFacts(SessionDetail, frozen=True, kw_only=True):
    """One session, with all the facts it is judged by."""

    facts: Facts


class ApiError(Struct, frozen=True, kw_only=True):
    """Every answer that is no success."""

    error: str
    remedy: str


def api_routes(views: Views, access: Access) -> tuple[Router, Router]:
    """Make the routes that read, open to the page's cookie too, and those that write."""
    store = views.store

    @get("/sessions", sync_to_thread=True)
    def sessions(live: FromQuery[bool | None] = None) -> list[SessionSummary]:
        return views.all_rows(live=live)

    @get("/sessions/{id:str}", sync_to_thread=True)
    def session(id: FromPath[str]) -> SessionWithFacts:
        detail = views.detail(id)
        fields = {name: getattr(detail, name) for name in detail.__struct_fields__}
        return SessionWithFacts(**fields, facts=store.facts.get(id))

    @get("/sessions/{id:str}/transcript", sync_to_thread=True)
    def transcript(
        id: FromPath[str],
        run: FromQuery[int] = 0,
        first: FromQuery[int] = 0,
        most: FromQuery[int] = 100,
    ) -> list[Message]:
        if not 0 <= first <= LAST_MESSAGE or not 1 <= most <= _MOST_MESSAGES:
            raise ClientException(
                "No transcript has such a part.",
                extra={"remedy": f"Ask for 1 to {_MOST_MESSAGES} messages, the first is 0."},
            )
        return views.transcript(id, run, first, most)

    @get("/agents", sync_to_thread=True)
    def agents() -> list[AgentRecord]:
        return views.agents()

    @get("/usage", sync_to_thread=True)
    def usage(by: FromQuery[str] = "session", session: FromQuery[str] = "") -> list[UsageTotal]:
        if by not in GROUPS:
            raise ClientException(
                f"Nothing is summed up by {by[:80]!r}.",
                extra={"remedy": f"Known: {', '.join(GROUPS)}."},
            )
        return store.usage.totals(by, session)

    @get("/queue", sync_to_thread=True)
    def queue() -> list[QueuedSession]:
        return views.queue()

    @get("/incidents", sync_to_thread=True)
    def incidents() -> list[Incident]:
        return store.incidents.recent()

    @get("/freezes", sync_to_thread=True)
    def freezes() -> list[Freeze]:
        return store.freezes.all()

    # Beside the list of the same path, since no two routers may share one.
    @post(
        "/sessions",
        status_code=202,
        sync_to_thread=True,
        guards=[access.guard_writing],
        request_max_body_size=_MOST_BYTES,
    )
    def begin(
        data: JSONBody[SessionRequest], idempotency_key: _IdempotencyKey = ""
    ) -> Response[AcceptedCommand]:
        _check(idempotency_key)
        views.check_agent(data.agent)
        session = f"{data.project}-{data.issue}"
        command = NewCommand(
            key=f"api:{session}:{idempotency_key}",
            repository=views.project(data.project).repository,
            number=data.issue,
            kind="start",
            actor=API,
            text=data.agent,
            at=utc_now(),
        )
        try:
            new = ask_anew(store, command)
        except AskedOtherwise as problem:
            raise _conflict(problem) from problem
        taken = AcceptedCommand(
            key=command.key, session=session, kind=command.kind, text=command.text, new=new
        )
        return Response(taken, status_code=202 if new else 200)

    @post("/sessions/{id:str}/commands", status_code=202, sync_to_thread=True)
    def command(
        id: FromPath[str], data: JSONBody[CommandRequest], idempotency_key: _IdempotencyKey = ""
    ) -> Response[AcceptedCommand]:
        _check(idempotency_key)
        session = views.session(id)
        key = f"api:{id}:{idempotency_key}"
        now = utc_now()
        try:
            asked = command_of(
                session, data.kind, data.text, actor=API, key=key, at=now, head=data.head
            )
            new = ask(store, session, asked)
        except InvalidArgument as problem:
            raise ClientException(f"{problem}.") from problem
        except AskedOtherwise as problem:
            raise _conflict(problem) from problem
        taken = AcceptedCommand(key=key, session=id, kind=asked.kind, text=asked.text, new=new)
        return Response(taken, status_code=202 if new else 200)

    @post("/sessions/{id:str}/metadata", status_code=200, sync_to_thread=True)
    def remember(id: FromPath[str], data: JSONBody[dict[str, str]]) -> dict[str, str]:
        wrong = [key for key in data if not METADATA_KEY.fullmatch(key)]
        if wrong:
            raise ClientException(
                f"{wrong[0][:80]!r} is no key.",
                extra={"remedy": "Use up to 64 letters, digits, dots and dashes."},
            )
        views.session(id)
        store.metadata.set(id, data)
        return store.metadata.of(id)

    @post("/freeze", status_code=200, sync_to_thread=True)
    def freeze(data: JSONBody[FreezeRequest]) -> list[Freeze]:
        views.check_scope(data.scope)
        store.freezes.add(data.scope, API)
        return store.freezes.all()

    @post("/unfreeze", status_code=200, sync_to_thread=True)
    def unfreeze(data: JSONBody[FreezeRequest]) -> list[Freeze]:
        views.check_scope(data.scope)
        store.freezes.remove(data.scope, API)
        return store.freezes.all()

    reading = Router(
        "/api",
        route_handlers=[
            sessions,
            begin,
            session,
            transcript,
            agents,
            usage,
            queue,
            incidents,
            freezes,
        ],
        guards=[access.guard],
        exception_handlers=_HANDLERS,
    )
    writing = Router(
        "/api",
        route_handlers=[command, remember, freeze, unfreeze],
        guards=[access.guard_writing],
        exception_handlers=_HANDLERS,
        request_max_body_size=_MOST_BYTES,
    )
    return reading, writing


def _check(idempotency_key: str) -> None:
    if not _KEY.fullmatch(idempotency_key):
        raise ClientException(
            "The header Idempotency-Key is missing or malformed.",
            extra={
                "remedy": "Send up to 100 letters, digits, dots and dashes of your own, and"
                " the same ones when you repeat a request."
            },
        )


def _conflict(problem: AskedOtherwise) -> ClientException:
    remedy = {"remedy": "Take another Idempotency-Key."}
    return ClientException(f"{problem}.", status_code=409, extra=remedy)


def as_json(_: _Request, problem: HTTPException) -> Response[ApiError]:
    """A problem for programs: what is wrong, and what to do about it."""
    said = problem.detail
    if isinstance(problem.extra, list):  # What a body or a parameter lacks, one by one.
        found = (f"{one.get('key', 'body')}: {one['message']}" for one in problem.extra)
        said = f"{said}: {'; '.join(found)}"
    remedy = remedy_of(problem) or _REMEDIES.get(problem.status_code, "")
    answer = ApiError(error=said, remedy=remedy)
    return Response(answer, status_code=problem.status_code, headers=problem.headers)


def _no_json(request: _Request, _: Exception) -> Response[ApiError]:
    return as_json(request, ClientException("The body is no JSON."))


def _failed(request: _Request, _: Exception) -> Response[ApiError]:
    return as_json(request, InternalServerException("The server failed at this."))


#: The decoder lets two of its own failures out: letters that are none, and too deep a nesting.
_HANDLERS: Final[ExceptionHandlersMap] = {
    HTTPException: as_json,
    UnicodeDecodeError: _no_json,
    RecursionError: _no_json,
    Exception: _failed,
}

_REMEDIES: Final[Mapping[int, str]] = {
    400: "docs/commands.md says what every route takes.",
    404: "GET /api/sessions lists the sessions; docs/commands.md has the routes.",
    405: "docs/commands.md has the routes and their methods.",
    413: f"Send at most {_MOST_BYTES} bytes.",
    500: "The server's log says more.",
}
