"""Decorators for the API's handlers, whose docstrings become texts of the OpenAPI document."""

from collections.abc import Callable, Mapping
from inspect import cleandoc, iscoroutinefunction
from typing import Annotated, Any, Final

from litestar import Request, delete, get, patch, post, put
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import Example
from litestar.params import HeaderParameter, PathParameter, QueryParameter
from litestar.types import AnyCallable

from bot.store import CURSOR
from bot.web.api.problems import IDEMPOTENCY_KEY, responses
from bot.web.views import Views
from bot.web.visitor import Needs, Visitor

#: A handler's argument that reads what its visitor may see.
AllViews = NamedDependency[Views]
ApiRequest = Request[Visitor, object, State]
MOST_ITEMS: Final = 200
SessionPath = Annotated[
    str, PathParameter(description="The ID of a session.", examples=[Example(value="widgets-12")])
]
#: The delivery's ID in the examples.
DELIVERY: Final = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
DeliveryPath = Annotated[
    str,
    PathParameter(description="The ID of a delivery.", examples=[Example(value=DELIVERY)]),
]
RunNumber = Annotated[
    int, QueryParameter(gt=-1, le=10**9, description="The number of the run; if 0, the last one.")
]
Limit = Annotated[
    int, QueryParameter(ge=1, le=MOST_ITEMS, description="Maximum number of items on a page.")
]
Cursor = Annotated[
    str | None,
    QueryParameter(
        pattern=CURSOR,
        description="The `cursor` of the page before; leave it out for the first page.",
    ),
]
IdempotencyKey = Annotated[
    str,
    HeaderParameter(
        name=IDEMPOTENCY_KEY,
        pattern="^[A-Za-z0-9._-]{1,100}$",
        description="A unique key. A request that is repeated with the same key has no further"
        " effect; one that differs is refused with status 409.",
    ),
]

#: The part of a body's schema that allows no unknown fields.
CLOSED: Final[dict[str, Any]] = {"additional_properties": False}

_Declare = Callable[[AnyCallable], HTTPRouteHandler]


def read(path: str, tag: str, needs: Mapping[str, Needs], **options: Any) -> _Declare:
    """Make a function the handler of GET. `needs` says who may use it, see `bot.web.visitor`."""
    return _declare(get, path, tag, (400, 401, 403, 404, 429, 500, 503), needs, options)


def command(path: str, tag: str, needs: Mapping[str, Needs], **options: Any) -> _Declare:
    """Make a function the handler of POST, which takes an idempotency key and answers 202."""
    options = {"status_code": 202, **options}
    errors = (400, 401, 403, 404, 409, 413, 429, 500, 503)
    return _declare(post, path, tag, errors, needs, options)


def change(
    method: str, path: str, tag: str, needs: Mapping[str, Needs], **options: Any
) -> _Declare:
    """Make a function the handler of PUT, PATCH or DELETE.

    A repeated request has no further effect.
    """
    handler = {"PUT": put, "PATCH": patch, "DELETE": delete}[method]
    options = {"status_code": 200, **options}
    return _declare(handler, path, tag, (400, 401, 403, 404, 413, 429, 500, 503), needs, options)


def _declare(
    method: Callable[..., _Declare],
    path: str,
    tag: str,
    errors: tuple[int, ...],
    needs: Mapping[str, Needs],
    options: dict[str, Any],
) -> _Declare:
    others = options.pop("responses", {})

    def declare(function: AnyCallable) -> HTTPRouteHandler:
        text = cleandoc(function.__doc__ or "")
        threaded = {} if iscoroutinefunction(function) else {"sync_to_thread": True}
        return method(
            path,
            operation_id=function.__name__,
            summary=text.partition("\n")[0].rstrip("."),
            description=text,
            tags=[tag],
            security=[{"bearer": []}],
            responses=responses(*errors) | others,
            opt=needs,
            **threaded,
            **options,
        )(function)

    return declare
