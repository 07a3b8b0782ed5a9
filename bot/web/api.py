"""The JSON API under `/api/`."""

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
from bot.intake.local_commands import (
    API,
    METADATA_KEY,
    KeyReused,
    add_command,
    add_start,
    build_command,
)
from bot.show.json_values import json_value
from bot.show.session_summary import SessionSummary
from bot.store import (
    USAGE_GROUPS,
    AgentRecord,
    Freeze,
    Incident,
    NewCommand,
    QueuedSession,
    UsageTotal,
)
from bot.system.clock import utc_now
from bot.web.access import Access, remedy_of
from bot.web.views import SessionDetail, Views
from lifecycle.model.facts import Facts
from runtimes.agents.shared.messages import Message

#: All routes with their documentation; a test checks that they exist.
ROUTES: Final[Mapping[tuple[str, str], str]] = {
    (
        "GET",
        "/api/sessions",
    ): "all sessions, newest first; `?live=true`: only those that have not ended",
    (
        "GET",
        "/api/sessions/ID",
    ): "one session with its facts, history, outbox, commands and last output",
    ("GET", "/api/sessions/ID/transcript"): (
        "the conversation of the last run, or of `?run=1`; `first=200&most=100`: a part of it"
    ),
    ("POST", "/api/sessions"): (
        'start an agent on an issue: `{"project": "widgets", "issue": 12, "agent": ""}`'
    ),
    ("POST", "/api/sessions/ID/commands"): (
        'give a command: `{"kind": "tell", "text": "..."}`; `head` binds a merge to a commit'
    ),
    ("POST", "/api/sessions/ID/metadata"): (
        'set metadata: `{"KEY": "VALUE"}`; an empty value removes a key'
    ),
    ("GET", "/api/agents"): "the agents with their sessions, outcomes and cost",
    (
        "GET",
        "/api/usage",
    ): "model usage and cost; `?by=session`, `run`, `agent`, `issue`, `repository` or `day`",
    ("GET", "/api/queue"): "queued sessions, why they wait and when they may start",
    ("GET", "/api/incidents"): "incidents of the whole bot, open and closed",
    ("GET", "/api/freezes"): "the freezes in effect",
    ("POST", "/api/freeze"): (
        'stop all actions, everywhere (`{"scope": ""}`) or of a project (`"project:NAME"`)'
    ),
    ("POST", "/api/unfreeze"): "undo a freeze of the same scope",
}

_Request = Request[object, object, State]
_MOST_BYTES = 100_000
_KEY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MOST_MESSAGES = 1000
LAST_MESSAGE = 10**9  #: More than any transcript has.
_IdempotencyKey = Annotated[str, HeaderParameter(name="idempotency-key")]


class CommandRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command to give."""

    kind: str
    text: str = ""
    head: str = ""  #: For `merge`: the reviewed commit.


class SessionRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issue to start an agent on."""

    project: str
    issue: Annotated[int, Meta(ge=1)]
    agent: str = ""  #: Empty: the project's agent.


class AcceptedCommand(Struct, frozen=True, kw_only=True):
    """A command that was accepted."""

    key: str
    session: str
    kind: str
    text: str
    new: bool  #: False: it was accepted before under this key.


class FreezeRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scope to freeze or unfreeze."""

    scope: str


class SessionWithFacts(SessionDetail, frozen=True, kw_only=True):
    """One session with the facts its status is derived from."""

    facts: Facts


class ApiError(Struct, frozen=True, kw_only=True):
    """The body of every error response."""

    error: str
    remedy: str


def api_routes(views: Views, access: Access) -> tuple[Router, Router]:
    """Return the read routes, which accept the page's cookie too, and the write routes."""
    store = views.store

    @get("/sessions", sync_to_thread=True)
    def sessions(live: FromQuery[bool | None] = None) -> list[SessionSummary]:
        return views.all_rows(live=live)

    @get("/sessions/{id:str}", sync_to_thread=True)
    def session(id: FromPath[str]) -> object:
        detail = views.detail(id)
        fields = {name: getattr(detail, name) for name in detail.__struct_fields__}
        return json_value(SessionWithFacts(**fields, facts=store.facts.get(id)))

    @get("/sessions/{id:str}/transcript", sync_to_thread=True)
    def transcript(
        id: FromPath[str],
        run: FromQuery[int] = 0,
        first: FromQuery[int] = 0,
        most: FromQuery[int] = 100,
    ) -> list[Message]:
        if not 0 <= first <= LAST_MESSAGE or not 1 <= most <= _MOST_MESSAGES:
            raise ClientException(
                "first or most is out of range.",
                extra={"remedy": f"most is 1 to {_MOST_MESSAGES}; messages are numbered from 0."},
            )
        return views.transcript(id, run, first, most)

    @get("/agents", sync_to_thread=True)
    def agents() -> list[AgentRecord]:
        return views.agents()

    @get("/usage", sync_to_thread=True)
    def usage(by: FromQuery[str] = "session", session: FromQuery[str] = "") -> list[UsageTotal]:
        if by not in USAGE_GROUPS:
            raise ClientException(
                f"Cannot group usage by {by[:80]!r}.",
                extra={"remedy": f"Known: {', '.join(USAGE_GROUPS)}."},
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

    # In the same router as the list, because two routers cannot share a path.
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
            new = add_start(store, command)
        except KeyReused as problem:
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
            asked = build_command(
                session, data.kind, data.text, actor=API, key=key, at=now, head=data.head
            )
            new = add_command(store, session, asked)
        except InvalidArgument as problem:
            raise ClientException(f"{problem}.") from problem
        except KeyReused as problem:
            raise _conflict(problem) from problem
        taken = AcceptedCommand(key=key, session=id, kind=asked.kind, text=asked.text, new=new)
        return Response(taken, status_code=202 if new else 200)

    @post("/sessions/{id:str}/metadata", status_code=200, sync_to_thread=True)
    def remember(id: FromPath[str], data: JSONBody[dict[str, str]]) -> dict[str, str]:
        wrong = [key for key in data if not METADATA_KEY.fullmatch(key)]
        if wrong:
            raise ClientException(
                f"{wrong[0][:80]!r} is not a valid key.",
                extra={"remedy": "Use up to 64 letters, digits, dots, dashes and underscores."},
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
            "The header Idempotency-Key is missing or invalid.",
            extra={
                "remedy": "Send a unique key of up to 100 letters, digits, dots, dashes and"
                " underscores, and the same key when you retry a request."
            },
        )


def _conflict(problem: KeyReused) -> ClientException:
    remedy = {"remedy": "Use a new Idempotency-Key."}
    return ClientException(f"{problem}.", status_code=409, extra=remedy)


def as_json(_: _Request, problem: HTTPException) -> Response[ApiError]:
    """Return an error as JSON: what is wrong and what to do about it."""
    said = problem.detail
    if isinstance(problem.extra, list):  # Validation errors.
        found = (f"{one.get('key', 'body')}: {one['message']}" for one in problem.extra)
        said = f"{said}: {'; '.join(found)}"
    remedy = remedy_of(problem) or _REMEDIES.get(problem.status_code, "")
    answer = ApiError(error=said, remedy=remedy)
    return Response(answer, status_code=problem.status_code, headers=problem.headers)


def _no_json(request: _Request, _: Exception) -> Response[ApiError]:
    return as_json(request, ClientException("The body is not valid JSON."))


def _failed(request: _Request, _: Exception) -> Response[ApiError]:
    return as_json(request, InternalServerException("The server could not answer this request."))


#: The decoder raises two exceptions of its own: for invalid UTF-8 and for deep nesting.
_HANDLERS: Final[ExceptionHandlersMap] = {
    HTTPException: as_json,
    UnicodeDecodeError: _no_json,
    RecursionError: _no_json,
    Exception: _failed,
}

_REMEDIES: Final[Mapping[int, str]] = {
    400: "See docs/commands.md for the parameters of each route.",
    404: "GET /api/sessions lists the sessions; docs/commands.md lists the routes.",
    405: "docs/commands.md lists the routes and their methods.",
    413: f"Send at most {_MOST_BYTES} bytes.",
    500: "See the server's log for details.",
}
