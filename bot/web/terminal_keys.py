"""Accepts what people type into terminals on pages and through the API."""

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.exceptions import (
    ClientException,
    HTTPException,
    PermissionDeniedException,
    ServiceUnavailableException,
    TooManyRequestsException,
)
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, URLEncodedBody
from msgspec import Meta, Struct

from bot.intake.terminal_input import (
    MOST_KEYS,
    MOST_PASTED,
    NotTypable,
    TerminalInput,
    TypedTooFast,
    TypingStalled,
)
from bot.web.access import Access
from bot.web.api.operations import AllViews
from bot.web.api.problems import as_problem
from bot.web.views import Views, http_errors
from bot.web.visitor import Visitor, in_session
from lifecycle.model.names import PAGE
from lifecycle.model.roles import Role
from runtimes.base import KEY

_MOST_KEY: Final = 100  #: The most characters of an idempotency key.
#: The limit for the requests of pages, in which a character takes up to 12 bytes.
_MOST_BYTES: Final = 12 * MOST_PASTED + 10_000
KEY_PATTERN: Final = f"^({KEY.pattern})$"
Keyboard = NamedDependency[TerminalInput]


class KeysRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to type: a text to paste, keys to press after it, or both."""

    paste: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MOST_PASTED,
            description="A text, which is pasted and not submitted; control characters other than"
            " line breaks and tabs are left out.",
            examples=["Use tabs."],
        ),
    ] = ""
    keys: Annotated[
        list[Annotated[str, Meta(pattern=KEY_PATTERN)]],
        Meta(
            min_length=1,
            max_length=MOST_KEYS,
            description="Characters, and names of keys as in tmux: `Enter`, `Tab`, `BTab`,"
            " `Escape`, `BSpace`, `DC` (Delete), `Up`, `PageDown`, `F1`, with `C-` (Control), `M-`"
            " (Alt) and `S-` (Shift), such as `C-c`.",
            examples=[["Enter"]],
        ),
    ] = []


class AcceptedKeys(Struct, frozen=True, kw_only=True):
    """What was accepted. The bot types it at once, or drops it if ten seconds have passed."""

    session: Annotated[str, Meta(examples=["widgets-12"])]
    run: Annotated[int, Meta(description="The run whose terminal it is typed into.", examples=[1])]
    count: Annotated[int, Meta(description="How many characters and keys.", examples=[1])]
    new: Annotated[bool, Meta(description="False: this request was accepted before.")]


class _Keys(Struct, frozen=True):
    keys: str = ""  #: A list in JSON, as `KeysRequest.keys`; empty: none.
    paste: str = ""
    csrf: str = ""  #: As that of all forms.
    key: str = ""  #: The idempotency key.


def type_keys(
    keyboard: TerminalInput, views: Views, id: str, wanted: KeysRequest, by: str, request: str
) -> Response[AcceptedKeys]:
    """Queue keys for a session's terminal, or raise an HTTP error that says why not.

    The status is 202, or 200 if the same request was accepted before. `by` is the person who
    types. `request` is the idempotency key.
    """
    session = views.session(id)
    try:
        with http_errors():
            action, new = keyboard.add(
                session, by=by, request=request, pressed=wanted.keys, paste=wanted.paste
            )
    except NotTypable as problem:
        refusal = PermissionDeniedException if problem.forbidden else ClientException
        raise refusal(
            f"{str(problem)[:1].upper()}{str(problem)[1:]}.",
            status_code=403 if problem.forbidden else 409,
            extra={"remedy": problem.remedy},
        ) from problem
    except TypedTooFast as problem:
        raise TooManyRequestsException(
            f"{problem}.", headers={"retry-after": "1"}, extra={"remedy": "Wait for a second."}
        ) from problem
    except TypingStalled as problem:
        remedy = "Try again in a few seconds; the page Health says whether the bot works."
        raise ServiceUnavailableException(f"{problem}.", extra={"remedy": remedy}) from problem
    taken = AcceptedKeys(session=id, run=action.run, count=action.count, new=new)
    return Response(taken, status_code=202 if new else 200)


def keys_route(access: Access, keyboard: TerminalInput) -> HTTPRouteHandler:
    """Return the route to which the script of the terminal's page sends what people type."""

    @post(
        "/sessions/{id:str}/keys",
        guards=[access.guard],
        opt=in_session(Role.ADMIN),
        request_max_body_size=_MOST_BYTES,
        exception_handlers={HTTPException: as_problem, Exception: as_problem},
        sync_to_thread=True,
    )
    def types(
        request: Request[Visitor, object, State],
        views: AllViews,
        id: FromPath[str],
        data: URLEncodedBody[_Keys],
    ) -> Response[Any]:
        access.check_form(request, data.csrf)
        if not 0 < len(data.key) <= _MOST_KEY:
            raise ClientException(f"The field key has 1 to {_MOST_KEY} characters.")
        given: dict[str, Any] = {"keys": msgspec.Raw(data.keys.encode())} if data.keys else {}
        if data.paste:
            given["paste"] = data.paste
        try:
            wanted = msgspec.json.decode(msgspec.json.encode(given), type=KeysRequest)
        except msgspec.MsgspecError as problem:
            raise ClientException(f"{problem}.") from problem
        by, key = request.user.login or PAGE, f"page:{data.key}"
        return type_keys(keyboard, views, id, wanted, by, key)

    return types
