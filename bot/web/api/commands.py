"""Handlers of writes: start, command or freeze sessions, type, set metadata, retry deliveries."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response
from litestar.exceptions import ClientException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example, Schema
from litestar.params import Body, PathParameter
from msgspec import Meta, Struct

from bot.intake.commands import COMMANDS
from bot.intake.local_commands import (
    METADATA_KEY,
    add_command,
    add_start,
    build_command,
    parse_argument,
)
from bot.intake.spawning import (
    MOST_OF_PROMPT,
    MOST_USD,
    SpawnRequest,
    request_session,
    session_of,
)
from bot.show.command_outcome import CommandOutcome
from bot.store import Freeze, NewCommand
from bot.web.api.command_schema import COMMIT
from bot.web.api.operations import (
    CLOSED,
    AllViews,
    ApiRequest,
    DeliveryPath,
    IdempotencyKey,
    SessionPath,
    change,
    command,
    read,
)
from bot.web.terminal_keys import AcceptedKeys, Keyboard, KeysRequest, type_keys
from bot.web.views import Views, http_errors
from bot.web.visitor import anywhere, everywhere, in_session
from lifecycle.model.facts import Command
from lifecycle.model.names import API, agent_of
from lifecycle.model.roles import Role

_Target = Annotated[
    str,
    PathParameter(
        description="`all`, or `project:NAME`. For a session: its command `freeze`.",
        examples=[Example(value="all")],
        schema_extra={"pattern": "^(all|project:.+)$"},
    ),
]


class CommandRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command to give.

    The OpenAPI document replaces this by a schema for each kind of command.
    """

    kind: str
    text: str = ""
    head: Annotated[str, Meta(pattern=f"^({COMMIT})?$")] = ""


class SessionRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to open, for an issue, for a prompt, or as a chat."""

    project: Annotated[str, Meta(examples=["widgets"])]
    # GraphQL takes 32-bit integers.
    issue: (
        Annotated[int, Meta(ge=1, le=2**31 - 1, description="Its number.", examples=[12])] | None
    ) = None
    prompt: Annotated[
        str,
        Meta(
            max_length=MOST_OF_PROMPT,
            description="What to do, if there is no issue; for a chat, its first message, if any.",
        ),
    ] = ""
    agent: Annotated[
        str, Meta(description="As in the command `start`; if empty, the project's agent.")
    ] = ""
    permission_mode: Literal["", "auto", "confirm", "reject"] = ""
    branch: Annotated[
        str,
        Meta(
            max_length=100,
            description="The name of the new branch; if empty, it is made from the project's"
            " setting `branch`.",
        ),
    ] = ""
    budget_usd: Annotated[
        float, Meta(ge=0, le=MOST_USD, description="This session's; if 0, the project's.")
    ] = 0.0
    metadata: dict[str, str] = {}
    another: Annotated[
        bool, Meta(description="Open one more session if the issue has one already.")
    ] = False
    chat: Annotated[
        bool, Meta(description="Open a chat: a person talks to the agent in its terminal.")
    ] = False

    @property
    def plain(self) -> bool:
        """Whether the request, as a label does, only opens or restores a session of the issue."""
        given = (self.prompt, self.permission_mode, self.branch, self.budget_usd, self.metadata)
        return self.issue is not None and not any((*given, self.another, self.chat))


class AcceptedCommand(Struct, frozen=True):
    """A command that was accepted. The bot normally applies or refuses it within a second."""

    key: Annotated[str, Meta(description="Its `key` in the session's `commands`.")]
    session: Annotated[str, Meta(examples=["widgets-12"])]
    kind: str
    text: str
    new: Annotated[bool, Meta(description="If false, this request was accepted before.")]


_METADATA_NAME = Schema(pattern=f"^{METADATA_KEY.pattern}$")
_REPEATED = {
    200: ResponseSpec(
        AcceptedCommand, generate_examples=False, description="It was accepted before."
    )
}


async def _check_types(request: Request[Any, Any, Any]) -> None:
    """Raise 400 for values of a wrong type, because Litestar takes 0 for false, and "12" for 12."""
    try:
        body = msgspec.json.decode(await request.body(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # No object of JSON: Litestar says so.
    for name, value in body.items():
        if isinstance(value, float) and value.is_integer():
            body[name] = int(value)  # For JSON, 12.0 is an integer.
    try:
        msgspec.convert(body, SessionRequest)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise ValidationException(
            extra=[{"message": message, "key": place.rstrip("`") or "body"}]
        ) from None


@command(
    *("/sessions", "sessions"),
    anywhere(Role.WRITE),
    responses=_REPEATED,
    before_request=_check_types,
)
def start_session(
    request: ApiRequest,
    views: AllViews,
    data: Annotated[SessionRequest, Body(schema_extra=CLOSED)],
    idempotency_key: IdempotencyKey,
) -> Response[AcceptedCommand]:
    """Start an agent on an issue, with a prompt, or for a chat.

    The bot reads the issue, if there is one, and then creates the session. If the bot creates no
    session, `GET /api/v1/commands/KEY` says why. A comment on the issue also says why, unless the
    request came with the page token. If the body sets only `project`, `issue` and perhaps `agent`,
    an ended session of the issue is restored.
    """
    views.check_agent(agent_of(data.agent))
    repository = views.project(data.project).repository
    views.reach.check_command(repository, "start")
    actor = request.user.login or API
    if not data.plain:
        return _spawned(views, data, repository, actor, idempotency_key)
    first = f"{data.project}-{data.issue}"
    session = views.store.sessions.of_subject(repository, f"issue:{data.issue}") or first
    with http_errors():
        asked = NewCommand(
            key=f"api:{first}:{idempotency_key}",
            repository=repository,
            number=data.issue or 0,
            kind="start",
            actor=actor,
            text=parse_argument(COMMANDS["start"], data.agent),
            at=views.store.clock(),
        )
        return _accepted(session, asked, new=add_start(views.store, asked))


def _spawned(
    views: Views, data: SessionRequest, repository: str, actor: str, key: str
) -> Response[AcceptedCommand]:
    wanted = SpawnRequest(
        project=data.project,
        repository=repository,
        issue=data.issue or 0,
        prompt=data.prompt,
        agent=data.agent,
        permission_mode=data.permission_mode,
        branch=data.branch,
        budget_usd=data.budget_usd,
        metadata=data.metadata,
        another=data.another,
        chat=data.chat,
    )
    key = f"api:{data.project}:{key}"
    with http_errors():
        asked, new = request_session(
            views.store, wanted, actor=actor, key=key, at=views.store.clock()
        )
    return _accepted(session_of(asked), asked, new=new)


@command("/sessions/{id:str}/commands", "sessions", in_session(Role.TRIAGE), responses=_REPEATED)
def give_command(
    request: ApiRequest,
    views: AllViews,
    id: SessionPath,
    data: Annotated[CommandRequest, Body()],
    idempotency_key: IdempotencyKey,
) -> Response[AcceptedCommand]:
    """Give a session a command, such as stop, retry, tell, answer or merge.

    All commands that people can write in comments are available, except `adopt` and those that only
    show something. The reply is in the session's `commands` once the bot has applied the command.
    """
    session, key = views.session(id), f"api:{id}:{idempotency_key}"
    views.reach.check_command(session.repository, data.kind)
    with http_errors():
        asked = build_command(
            session,
            data.kind,
            data.text,
            actor=request.user.login or API,
            key=key,
            at=views.store.clock(),
            head=data.head,
        )
        return _accepted(id, asked, new=add_command(views.store, session, asked))


@command(
    *("/sessions/{id:str}/keys", "sessions"),
    in_session(Role.ADMIN),
    responses={
        200: ResponseSpec(
            AcceptedKeys, generate_examples=False, description="It was accepted before."
        )
    },
)
def press_keys(
    request: ApiRequest,
    views: AllViews,
    keyboard: Keyboard,
    id: SessionPath,
    data: Annotated[KeysRequest, Body(schema_extra={**CLOSED, "min_properties": 1})],
    idempotency_key: IdempotencyKey,
) -> Response[AcceptedKeys]:
    """Type into the terminal of a session that runs in a sandbox.

    The input goes directly to the agent's program, in the order of the requests, and at most
    once; commands such as `tell` wait for the end of the agent's turn instead. The history names
    who typed how many characters, not which ones. An idempotency key is kept for ten minutes.
    """
    by, key = request.user.login or API, f"api:{idempotency_key}"
    return type_keys(keyboard, views, id, data, by, key)


@read("/commands/{key:str}", "sessions", anywhere(Role.READ))
def get_command(
    views: AllViews,
    key: Annotated[
        str,
        PathParameter(
            description="The `key` in the response to the command.",
            examples=[Example(value="api:widgets-12:3f1c")],
        ),
    ],
) -> CommandOutcome:
    """Show the outcome of a command: whether it was applied or refused, and why."""
    return views.command(key)


@change("PATCH", "/sessions/{id:str}/metadata", "sessions", in_session(Role.WRITE))
def set_metadata(
    request: ApiRequest,
    views: AllViews,
    id: SessionPath,
    data: Annotated[dict[str, str | None], Body(schema_extra={"property_names": _METADATA_NAME})],
) -> dict[str, str]:
    """Set keys of a session's metadata, which the bot stores but does not use.

    The body is an object with the keys to set. The value null or an empty text removes a key; keys
    that the body does not name are kept. The response has all metadata of the session.
    """
    wrong = [key for key in data if not METADATA_KEY.fullmatch(key)]
    if wrong:
        raise ClientException(
            f"{wrong[0][:80]!r} is not a valid key.",
            extra={"remedy": "Use up to 64 letters, digits, dots, dashes and underscores."},
        )
    views.session(id)
    values = {key: value or "" for key, value in data.items()}
    views.store.metadata.set(id, values, request.user.login or API)
    return views.store.metadata.of(id)


@change("PUT", "/freezes/{target:str}", "bot", anywhere(Role.ADMIN))
def freeze(request: ApiRequest, views: AllViews, target: _Target) -> list[Freeze]:
    """Hold back all actions of a project or of the bot."""
    return views.freezes.add(_scope(target), request.user.login or API)


@change("DELETE", "/freezes/{target:str}", "bot", anywhere(Role.ADMIN))
def unfreeze(request: ApiRequest, views: AllViews, target: _Target) -> list[Freeze]:
    """Undo the freeze of a project or of the bot."""
    return views.freezes.remove(_scope(target), request.user.login or API)


@change("PUT", "/deliveries/{id:str}/retry", "bot", everywhere(Role.ADMIN))
def retry_delivery(request: ApiRequest, views: AllViews, id: DeliveryPath) -> dict[str, bool]:
    """Process a failed delivery again.

    `retried` is false if the delivery has not failed.
    """
    return {"retried": views.deliveries.retry(id, request.user.login or API)}


def _scope(target: str) -> str:
    return "" if target == "all" else target


def _accepted(
    session: str, command: Command | NewCommand, *, new: bool
) -> Response[AcceptedCommand]:
    taken = AcceptedCommand(command.key, session, command.kind, command.text, new)
    return Response(taken, status_code=202 if new else 200)
