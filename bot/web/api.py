"""The JSON API under `/api/`."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from litestar import Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.exceptions import ClientException, HTTPException, InternalServerException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody
from litestar.types import AnyCallable
from msgspec import Meta, Struct
from msgspec.structs import asdict

from bot.intake.commands import COMMANDS
from bot.intake.local_commands import (
    API,
    METADATA_KEY,
    add_command,
    add_start,
    build_command,
    parse_argument,
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
from bot.web.access import FAILED, Access, remedy_of
from bot.web.views import Views, http_errors, unknown
from lifecycle.model.facts import Command
from lifecycle.model.names import agent_of
from runtimes.agents.shared.messages import Message

_Request = Request[object, object, State]
_MOST_BYTES = 100_000
_KEY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MOST_MESSAGES = 1000
LAST_MESSAGE = 10**9  #: More than any transcript has.
_Views = NamedDependency[Views]
_IdempotencyKey = Annotated[str, HeaderParameter(name="idempotency-key")]


def _read(path: str, says: str) -> Callable[[AnyCallable], HTTPRouteHandler]:
    """Make a function the handler of GET; `says` is its line in docs/commands.md."""
    return get(path, description=says, sync_to_thread=True)


def _write(path: str, says: str) -> Callable[[AnyCallable], HTTPRouteHandler]:
    """Make a function the handler of POST; `says` is its line in docs/commands.md."""
    return post(path, description=says, sync_to_thread=True, status_code=200)


class CommandRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command to give."""

    kind: str
    text: str = ""
    head: str = ""  #: For `merge`: the reviewed commit.


class SessionRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issue to start an agent on."""

    project: str
    issue: Annotated[int, Meta(ge=1, le=2**31 - 1)]  #: GraphQL takes 32-bit integers.
    #: As in the command `start`; empty: the project's agent.
    agent: str = ""


class AcceptedCommand(Struct, frozen=True):
    """A command that was accepted."""

    key: str
    session: str
    kind: str
    text: str
    new: bool  #: False: it was accepted before under this key.


class FreezeRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scope to freeze or unfreeze."""

    scope: str


class ApiError(Struct, frozen=True, kw_only=True):
    """The body of every error response."""

    error: str
    remedy: str


@_read("/sessions", "all sessions, newest first; `?live=true`: only those that have not ended")
def sessions(views: _Views, live: FromQuery[bool | None] = None) -> list[SessionSummary]:
    return views.all_rows(live=live)


@_read(
    "/sessions/{id:str}", "one session with its facts, history, outbox, commands and last output"
)
def session(views: _Views, id: FromPath[str]) -> object:
    return json_value({**asdict(views.detail(id)), "facts": views.store.facts.get(id)})


@_read(
    "/sessions/{id:str}/transcript",
    "the conversation of the last run, or of `?run=1`; `first=200&most=100`: a part of it",
)
def transcript(
    views: _Views,
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


@_write(
    "/sessions", 'start an agent on an issue: `{"project": "widgets", "issue": 12, "agent": ""}`'
)
def begin(
    views: _Views, data: JSONBody[SessionRequest], idempotency_key: _IdempotencyKey = ""
) -> Response[AcceptedCommand]:
    _check(idempotency_key)
    views.check_agent(agent_of(data.agent))
    session = f"{data.project}-{data.issue}"
    with http_errors():
        command = NewCommand(
            key=f"api:{session}:{idempotency_key}",
            repository=views.project(data.project).repository,
            number=data.issue,
            kind="start",
            actor=API,
            text=parse_argument(COMMANDS["start"], data.agent),
            at=views.store.clock(),
        )
        return _accepted(session, command, new=add_start(views.store, command))


@_write(
    "/sessions/{id:str}/commands",
    'give a command: `{"kind": "tell", "text": "..."}`; `head` binds a merge to a commit',
)
def command(
    views: _Views,
    id: FromPath[str],
    data: JSONBody[CommandRequest],
    idempotency_key: _IdempotencyKey = "",
) -> Response[AcceptedCommand]:
    _check(idempotency_key)
    session, key = views.session(id), f"api:{id}:{idempotency_key}"
    with http_errors():
        asked = build_command(
            session,
            data.kind,
            data.text,
            actor=API,
            key=key,
            at=views.store.clock(),
            head=data.head,
        )
        return _accepted(id, asked, new=add_command(views.store, session, asked))


@_write(
    "/sessions/{id:str}/metadata", 'set metadata: `{"KEY": "VALUE"}`; an empty value removes a key'
)
def remember(views: _Views, id: FromPath[str], data: JSONBody[dict[str, str]]) -> dict[str, str]:
    wrong = [key for key in data if not METADATA_KEY.fullmatch(key)]
    if wrong:
        raise ClientException(
            f"{wrong[0][:80]!r} is not a valid key.",
            extra={"remedy": "Use up to 64 letters, digits, dots, dashes and underscores."},
        )
    views.session(id)
    views.store.metadata.set(id, data)
    return views.store.metadata.of(id)


@_read("/agents", "the agents with their sessions, outcomes and cost")
def agents(views: _Views) -> list[AgentRecord]:
    return views.agents()


@_read(
    "/usage", "model usage and cost; `?by=session`, `run`, `agent`, `issue`, `repository` or `day`"
)
def usage(
    views: _Views, by: FromQuery[str] = "session", session: FromQuery[str] = ""
) -> list[UsageTotal]:
    if by not in USAGE_GROUPS:
        raise unknown(f"Cannot group usage by {by[:80]!r}.", USAGE_GROUPS)
    return views.store.usage.totals(by, session)


@_read("/queue", "queued sessions, why they wait and when they may start")
def queue(views: _Views) -> list[QueuedSession]:
    return views.queue()


@_read("/incidents", "incidents of the whole bot, open and closed")
def incidents(views: _Views) -> list[Incident]:
    return views.store.incidents.recent()


@_read("/freezes", "the freezes in effect")
def freezes(views: _Views) -> list[Freeze]:
    return views.store.freezes.all()


@_write(
    "/freeze", 'stop all actions, everywhere (`{"scope": ""}`) or of a project (`"project:NAME"`)'
)
def freeze(views: _Views, data: JSONBody[FreezeRequest]) -> list[Freeze]:
    return views.freeze(data.scope, API)


@_write("/unfreeze", "undo a freeze of the same scope")
def unfreeze(views: _Views, data: JSONBody[FreezeRequest]) -> list[Freeze]:
    return views.unfreeze(data.scope, API)


#: All routes; those that only read accept the page's cookie too.
ROUTES: Final = (
    *(sessions, session, transcript, begin, command, remember, agents, usage, queue, incidents),
    *(freezes, freeze, unfreeze),
)


def api_routes(views: Views, access: Access) -> Router:
    """Return the API."""
    return Router(
        "/api",
        route_handlers=ROUTES,
        guards=[access.guard_api],
        dependencies={"views": Provide(lambda: views, sync_to_thread=False)},
        exception_handlers={HTTPException: as_json, Exception: as_json},
        request_max_body_size=_MOST_BYTES,
    )


def _check(idempotency_key: str) -> None:
    if not _KEY.fullmatch(idempotency_key):
        raise ClientException(
            "The header Idempotency-Key is missing or invalid.",
            extra={
                "remedy": "Send a unique key of up to 100 letters, digits, dots, dashes and"
                " underscores, and the same key when you retry a request."
            },
        )


def _accepted(
    session: str, command: Command | NewCommand, *, new: bool
) -> Response[AcceptedCommand]:
    taken = AcceptedCommand(command.key, session, command.kind, command.text, new)
    return Response(taken, status_code=202 if new else 200)


def as_json(_: _Request, problem: Exception) -> Response[ApiError]:
    """Return an error as JSON: what is wrong and what to do about it."""
    match problem:
        case HTTPException():
            error = problem
        case UnicodeDecodeError() | RecursionError():  # The decoder's own exceptions.
            error = ClientException("The body is not valid JSON.")
        case _:
            error = InternalServerException(FAILED)
    message = error.detail
    if isinstance(error.extra, list):  # Validation errors.
        found = (f"{one.get('key', 'body')}: {one['message']}" for one in error.extra)
        message = f"{message}: {'; '.join(found)}"
    remedy = remedy_of(error) or _REMEDIES.get(error.status_code, "")
    answer = ApiError(error=message, remedy=remedy)
    return Response(answer, status_code=error.status_code, headers=error.headers)


_REMEDIES: Final[Mapping[int, str]] = {
    400: "See docs/commands.md for the parameters of each route.",
    404: "GET /api/sessions lists the sessions; docs/commands.md lists the routes.",
    405: "docs/commands.md lists the routes and their methods.",
    409: "Use a new Idempotency-Key.",
    413: f"Send at most {_MOST_BYTES} bytes.",
    500: "See the server's log for details.",
}
