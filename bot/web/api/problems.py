"""Formats errors of the API as problem details: https://www.rfc-editor.org/rfc/rfc9457"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import ClientException, HTTPException, InternalServerException
from litestar.openapi.datastructures import ResponseSpec
from msgspec import Meta, Struct

from bot.web.access import FAILED, remedy_of

MOST_BYTES = 100_000  #: The limit of a request's body.
IDEMPOTENCY_KEY: Final = "Idempotency-Key"  #: The name of the header.
MEDIA_TYPE: Final = "application/problem+json"

_HEADERS: Final[Mapping[str, str]] = {
    "idempotency_key": IDEMPOTENCY_KEY,
    "last_event_id": "Last-Event-ID",
}
_REMEDIES: Final[Mapping[int, str]] = {
    400: "See /api/v1/openapi.json or docs/api.md for the parameters of each route.",
    404: "GET /api/v1/sessions lists the sessions; docs/api.md lists the routes.",
    405: "docs/api.md lists the routes and their methods.",
    409: "Use a new Idempotency-Key.",
    413: f"Send at most {MOST_BYTES} bytes.",
    500: "See the server's log for details.",
    503: "Try again in a minute.",
}


class InvalidField(Struct, frozen=True, kw_only=True):
    """A part of a request that is not valid."""

    field: Annotated[str, Meta(description="A field of the body, a parameter or a header.")]
    message: str


class Problem(Struct, frozen=True, kw_only=True):
    """An error in the form of RFC 9457 (problem details), with what to do about it."""

    status: Annotated[int, Meta(description="The HTTP status.", examples=[404])]
    title: Annotated[str, Meta(description="The HTTP status in words.", examples=["Not Found"])]
    detail: Annotated[
        str, Meta(description="What is wrong.", examples=["There is no session widgets-99."])
    ]
    remedy: Annotated[str, Meta(description="What you can do about it.")]
    errors: Annotated[
        tuple[InvalidField, ...], Meta(description="Each part of the request that is not valid.")
    ] = ()


def as_problem(_: Request[object, object, State], problem: Exception) -> Response[Problem]:
    """Return an exception as problem details."""
    match problem:
        case HTTPException():
            error = problem
        case UnicodeDecodeError() | RecursionError():  # Raised by the JSON decoder.
            error = ClientException("The body is not valid JSON.")
        case _:
            error = InternalServerException(FAILED)
    invalid = tuple(map(_invalid, error.extra)) if isinstance(error.extra, list) else ()
    detail = "; ".join(f"{one.field}: {one.message}" for one in invalid) or error.detail
    found = Problem(
        status=error.status_code,
        title=HTTPStatus(error.status_code).phrase,
        detail=detail,
        remedy=remedy_of(error) or _remedy(error.status_code, detail),
        errors=invalid,
    )
    return Response(
        found, status_code=error.status_code, headers=error.headers, media_type=MEDIA_TYPE
    )


def _remedy(status: int, detail: str) -> str:
    if status == HTTPStatus.BAD_REQUEST and IDEMPOTENCY_KEY in detail:
        return (
            "Send a unique key of up to 100 letters, digits, dots, dashes and underscores, and the"
            " same key when you retry a request."
        )
    return _REMEDIES.get(status, "")


def _invalid(error: Mapping[str, Any]) -> InvalidField:
    field = error.get("key", "body")
    named = _HEADERS.get(field, field)  # For headers, Litestar gives the argument's name.
    return InvalidField(field=named, message=error["message"])


def responses(*statuses: int) -> dict[int, ResponseSpec]:
    """Return the error responses with these statuses, in the form for the OpenAPI document."""
    return {
        status: ResponseSpec(
            Problem,
            generate_examples=False,
            description=HTTPStatus(status).phrase,
            media_type=MEDIA_TYPE,
        )
        for status in statuses
    }
