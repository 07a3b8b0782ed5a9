"""What an answer of GitHub means: which of our failures a status, a header or an error text is.

Rules: GitHub's "Rate limits for the REST API" and "Rate limits and query limits for the GraphQL
API". A secondary limit without a time means at least one minute.
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
#: How long an App that is not installed any more waits before it looks whether it is again.
REINSTALL = timedelta(minutes=5)

#: What msgspec raises at bytes that are no JSON of the wanted shape.
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
    """One entry of `errors` in a refusal."""

    message: str | None = None
    code: str | None = None
    field: str | None = None


class ErrorBody(Struct, frozen=True):
    """The body GitHub sends with an error."""

    message: str = ""
    errors: tuple[ErrorDetail | str, ...] | str = ()


class GraphQLError(Struct, frozen=True):
    """One entry of `errors` in an answer of GraphQL."""

    message: str = ""
    type: str = ""
    path: tuple[str | int, ...] | None = None
    extensions: Mapping[str, object] | None = None


def http_failure(
    asked: str, status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> TryLater | Refused:
    """The failure an HTTP answer outside 200-299 stands for."""
    said = error_message(body)
    message = f"{asked}: GitHub answered {status}{': ' + said if said else ''}."
    if status in (403, 429) and (limit := _limit_of(message, headers, said, now)):
        return limit
    if status == 403 and SUSPENDED_TEXT in said.lower():
        return NotInstalled(f"{message} Unsuspend the App's installation.", now + REINSTALL)
    if status == 403 and ARCHIVED_TEXT in said.lower():
        # Until that is known its sessions act; what they came upon it with is not lost for that.
        return TryLater(
            f"{message} It waits until the repository is not any more.", now + REINSTALL
        )
    if status in (408, 429) or status >= 500:
        return TryLater(f"{message} It is asked again later.", _wait_of(headers, now))
    return Refused(f"{message} {REMEDIES.get(status, '')}".rstrip(), status)


def graphql_failure(
    asked: str, problems: Iterable[GraphQLError], headers: Mapping[str, str], now: datetime
) -> TryLater | Refused:
    """The failure that the errors of a GraphQL answer stand for, the most lasting one first."""
    problems = tuple(problems)
    said = _short("; ".join(problem.message for problem in problems))
    message = f"{asked}: GitHub answered: {said}."
    types = {problem.type for problem in problems}
    if types & {"RATE_LIMITED", "RATE_LIMIT"}:
        return Limited(message, _reset_of(headers, now) or now + LIMIT_PAUSE, "graphql")
    for kind, status in (("FORBIDDEN", 403), ("INSUFFICIENT_SCOPES", 403), ("NOT_FOUND", 404)):
        if kind in types:
            return Refused(f"{message} {REMEDIES[status]}", status)
    if "UNPROCESSABLE" in types:
        return Refused(message, 422)
    if any((problem.extensions or {}).get("code") for problem in problems):
        # The query itself is not understood, which no waiting changes.
        return Refused(f"{message} This GitHub is too old for Mergewright.", 400)
    return TryLater(f"{message} It is asked again later.")


def exhausted_limit(
    asked: str, headers: Mapping[str, str], now: datetime, resource: str = EVERYTHING
) -> Limited | None:
    """The limit that was reached with this answer; None: there is more, or nobody says.

    `resource`: what it is of, where the answer does not say.
    """
    if headers.get("x-ratelimit-remaining") != "0":
        return None
    resource = headers.get("x-ratelimit-resource", resource)
    return Limited(asked, _reset_of(headers, now) or now + LIMIT_PAUSE, resource)


def error_message(body: bytes) -> str:
    """What GitHub's error body says, in one short line; empty where it is no such body."""
    try:
        said = msgspec.json.decode(body, type=ErrorBody)
    except UNDECODABLE:
        return ""
    errors = (said.errors,) if isinstance(said.errors, str) else said.errors
    details = (
        error
        if isinstance(error, str)
        else error.message or f"{error.field or ''} {error.code or ''}"
        for error in errors
    )
    return _short("; ".join(part for part in (said.message, *details) if part.strip()))


def _limit_of(message: str, headers: Mapping[str, str], said: str, now: datetime) -> Limited | None:
    """The limit that was reached, or None where the answer is no limit but a plain refusal."""
    if "retry-after" in headers:
        return Limited(message, _wait_of(headers, now) or now + LIMIT_PAUSE)
    if limit := exhausted_limit(message, headers, now):
        return limit
    if any(text in said.lower() for text in LIMIT_TEXTS):
        return Limited(message, now + LIMIT_PAUSE)
    return None


def _wait_of(headers: Mapping[str, str], now: datetime) -> datetime | None:
    seconds = headers.get("retry-after", "")
    # A server in between may send a date, or nonsense; then we do not know.
    return now + timedelta(seconds=int(seconds)) if _plausible(seconds) else None


def _reset_of(headers: Mapping[str, str], now: datetime) -> datetime | None:
    reset = headers.get("x-ratelimit-reset", "")
    return max(now, datetime.fromtimestamp(int(reset), UTC)) if _plausible(reset) else None


def _plausible(number: str) -> bool:
    return number.isdecimal() and len(number) <= 10


def _short(text: str) -> str:
    line = "".join(sign if sign.isprintable() else " " for sign in text).strip(" .")
    return line if len(line) <= TEXT_LIMIT else line[: TEXT_LIMIT - 1] + "…"
