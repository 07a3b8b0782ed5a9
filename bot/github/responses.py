"""Maps responses of GitHub to failures, by status, headers and error text.

A rate limit without a time means at least one minute:
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from bot.github.errors import EVERYTHING, Limited, NotInstalled, Refused, TryLater

LIMIT_TEXTS = ("rate limit", "abuse detection")
LIMIT_PAUSE = timedelta(seconds=60)
TEXT_LIMIT = 300
SUSPENDED_TEXT = "installation has been suspended"
ARCHIVED_TEXT = "repository was archived"
#: The wait before looking again whether the App is installed, or the repository unarchived.
REINSTALL = timedelta(minutes=5)

#: What msgspec raises for bytes that are not JSON of the expected shape.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

REMEDIES = {
    301: "The repository was renamed or moved: put its new name into the configuration.",
    307: "The repository was renamed or moved: put its new name into the configuration.",
    308: "The repository was renamed or moved: put its new name into the configuration.",
    401: "Check that the token, or the App's id and key, are valid and not revoked.",
    403: "Give the token or the App the permission it lacks for this repository.",
    404: "Check that it exists and that the token or the App may see this repository.",
    410: "It was deleted, or the feature is switched off in this repository.",
    451: "GitHub has blocked it for legal reasons.",
}


class ErrorDetail(Struct, frozen=True):
    """An entry of `errors` in a REST error."""

    message: str | None = None
    code: str | None = None
    field: str | None = None


class ErrorBody(Struct, frozen=True):
    """The body of a REST error."""

    message: str = ""
    errors: tuple[ErrorDetail | str, ...] | str = ()


class GraphQLError(Struct, frozen=True):
    """An entry of `errors` in a GraphQL response."""

    message: str = ""
    type: str = ""
    path: tuple[str | int, ...] | None = None
    extensions: Mapping[str, object] | None = None


def http_failure(
    request: str, status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> TryLater | Refused:
    """The failure that an HTTP response outside 200-299 means."""
    error = error_message(body)
    message = f"{request}: GitHub answered {status}{': ' + error if error else ''}."
    if status in (403, 429) and (limit := _limit_of(message, headers, error, now)):
        return limit
    if status == 403 and SUSPENDED_TEXT in error.lower():
        return NotInstalled(f"{message} Unsuspend the App's installation.", now + REINSTALL)
    if status == 403 and ARCHIVED_TEXT in error.lower():
        # Sessions act until the bot knows that it is archived; their actions wait.
        return TryLater(f"{message} It waits until the repository is unarchived.", now + REINSTALL)
    if status in (408, 429) or status >= 500:
        return TryLater(f"{message} It is retried later.", _wait_of(headers, now))
    return Refused(f"{message} {REMEDIES.get(status, '')}".rstrip(), status)


def graphql_failure(
    request: str, problems: Iterable[GraphQLError], headers: Mapping[str, str], now: datetime
) -> TryLater | Refused:
    """The failure that the errors of a GraphQL response mean, the most lasting one first."""
    problems = tuple(problems)
    error = _short("; ".join(problem.message for problem in problems))
    message = f"{request}: GitHub answered: {error}."
    types = {problem.type for problem in problems}
    if types & {"RATE_LIMITED", "RATE_LIMIT"}:
        return Limited(message, _reset_of(headers, now) or now + LIMIT_PAUSE, "graphql")
    for kind, status in (("FORBIDDEN", 403), ("INSUFFICIENT_SCOPES", 403), ("NOT_FOUND", 404)):
        if kind in types:
            return Refused(f"{message} {REMEDIES[status]}", status)
    if "UNPROCESSABLE" in types:
        return Refused(message, 422)
    if any((problem.extensions or {}).get("code") for problem in problems):
        # The server does not know a field of the query.
        return Refused(f"{message} This GitHub is too old for Mergewright.", 400)
    return TryLater(f"{message} It is retried later.")


def exhausted_limit(
    request: str, headers: Mapping[str, str], now: datetime, resource: str = EVERYTHING
) -> Limited | None:
    """The rate limit that this response exhausted, or None.

    `resource` is what the limit applies to if the response does not say.
    """
    if headers.get("x-ratelimit-remaining") != "0":
        return None
    resource = headers.get("x-ratelimit-resource", resource)
    return Limited(request, _reset_of(headers, now) or now + LIMIT_PAUSE, resource)


def error_message(body: bytes) -> str:
    """The message of an error body in one short line; empty for any other body."""
    try:
        parsed = msgspec.json.decode(body, type=ErrorBody)
    except UNDECODABLE:
        return ""
    errors = (parsed.errors,) if isinstance(parsed.errors, str) else parsed.errors
    details = (
        error
        if isinstance(error, str)
        else error.message or f"{error.field or ''} {error.code or ''}"
        for error in errors
    )
    return _short("; ".join(part for part in (parsed.message, *details) if part.strip()))


def _limit_of(
    message: str, headers: Mapping[str, str], error: str, now: datetime
) -> Limited | None:
    """The rate limit that a 403 or 429 means, or None."""
    if "retry-after" in headers:
        return Limited(message, _wait_of(headers, now) or now + LIMIT_PAUSE)
    if limit := exhausted_limit(message, headers, now):
        return limit
    if any(text in error.lower() for text in LIMIT_TEXTS):
        return Limited(message, now + LIMIT_PAUSE)
    return None


def _wait_of(headers: Mapping[str, str], now: datetime) -> datetime | None:
    seconds = headers.get("retry-after", "")
    # A proxy may send a date or something else, which is ignored.
    return now + timedelta(seconds=int(seconds)) if _plausible(seconds) else None


def _reset_of(headers: Mapping[str, str], now: datetime) -> datetime | None:
    reset = headers.get("x-ratelimit-reset", "")
    return max(now, datetime.fromtimestamp(int(reset), UTC)) if _plausible(reset) else None


def _plausible(number: str) -> bool:
    return number.isdecimal() and len(number) <= 10


def _short(text: str) -> str:
    line = "".join(sign if sign.isprintable() else " " for sign in text).strip(" .")
    return line if len(line) <= TEXT_LIMIT else line[: TEXT_LIMIT - 1] + "…"
