"""Exceptions for failed requests to GitHub, and the functions that derive them from responses.

Each exception class stands for one way in which callers should react. If a response reports an
exhausted rate limit without saying when the limit ends, the bot waits for one minute:
https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Struct

from lifecycle.model.times import from_seconds

EVERYTHING = ""  #: The resource of a rate limit that applies to all requests.
_LIMIT_TEXTS = ("rate limit", "abuse detection")
LIMIT_PAUSE = timedelta(seconds=60)
_TEXT_LIMIT = 300
#: The pause before it is checked again whether the App is installed or the repository unarchived.
REINSTALL = timedelta(minutes=5)

#: The exceptions that msgspec raises for bytes that are not JSON of the expected shape.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_REMEDIES = {
    **dict.fromkeys(
        (301, 307, 308),
        "The repository was renamed or moved: put its new name into the configuration.",
    ),
    401: "Check that the token, or the App's id and key, are valid and not revoked.",
    403: "Give the token or the App the permission it lacks for this repository.",
    404: "Check that what the request names exists, and that the token or the App may see the"
    " repository.",
    410: "What the request names was deleted, or the feature is switched off in this repository.",
    451: "GitHub has blocked access to what the request names, for legal reasons.",
}

#: Fields that the bot can do without. GitHub returns null if the bot may not read one.
_OPTIONAL = {"branchProtectionRule", "refUpdateRule", "rules"}
_UNREADABLE = {"FORBIDDEN", "INSUFFICIENT_SCOPES", "NOT_FOUND"}


class GitHubFailure(Exception):
    """A request failed; the message names the request, the reason and, if known, the remedy."""


class TryLater(GitHubFailure):
    """GitHub cannot answer now: an outage, a timeout, a rate limit, an invalid response.

    A write may have taken effect nevertheless. Also raised for a write that the bot itself defers.
    """

    def __init__(self, message: str, at: datetime | None = None) -> None:
        super().__init__(message)
        self.at = at  #: When to retry; None if that is not known.


class Limited(TryLater):
    """A rate limit is exhausted; the client sends no request under this limit before `until`."""

    def __init__(self, message: str, until: datetime, resource: str = EVERYTHING) -> None:
        super().__init__(f"{message} The rate limit is used up until {until:%H:%M:%S} UTC.", until)
        self.until = until
        self.resource = resource  #: As GitHub names it, such as `core`; or `EVERYTHING`.


class NotInstalled(TryLater):
    """The App is suspended, or not installed for the repository. Work waits until that changes."""


class Refused(GitHubFailure):
    """GitHub refuses the request, and would refuse it again unless something changes."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Conflicted(Refused):
    """GitHub refuses, perhaps because the pull request has changed: read the pull request again."""


class IgnoreRefused:
    """Context manager that suppresses a `Refused` by its status code, or part of its message."""

    def __init__(self, *known: int | str) -> None:
        self._known = known

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> bool:
        return isinstance(error, Refused) and any(
            one == error.status if isinstance(one, int) else one in str(error)
            for one in self._known
        )


class ErrorDetail(Struct, frozen=True):
    message: str | None = None
    code: str | None = None
    field: str | None = None


class ErrorBody(Struct, frozen=True):
    message: str = ""
    errors: tuple[ErrorDetail | str, ...] | str = ()


class GraphQLError(Struct, frozen=True):
    """An entry of `errors` in a GraphQL response."""

    message: str = ""
    type: str = ""
    path: tuple[str | int, ...] | None = None
    extensions: Mapping[str, object] | None = None

    @property
    def is_optional(self) -> bool:
        """Whether the error hides only a field that the bot can do without, such as `rules`."""
        return self.type in _UNREADABLE and not _OPTIONAL.isdisjoint(self.path or ())

    @property
    def is_missing(self) -> bool:
        """Whether the repository exists but the requested object in it does not."""
        path = self.path or ()
        return self.type == "NOT_FOUND" and len(path) == 2 and path[0] == "repository"


def http_failure(
    request: str, status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> TryLater | Refused:
    """Return the failure for an HTTP response whose status is outside 200-299."""
    error = error_message(body)
    message = f"{request}: GitHub answered {status}{': ' + error if error else ''}."
    if status in (403, 429) and (limit := _limit_of(message, headers, error, now)):
        return limit
    if status == 403 and "installation has been suspended" in error.lower():
        return NotInstalled(f"{message} Unsuspend the App's installation.", now + REINSTALL)
    if status == 403 and "repository was archived" in error.lower():
        # Until the bot knows that the repository is archived, sessions still order actions.
        return TryLater(
            f"{message} The request is sent again once the repository is unarchived.",
            now + REINSTALL,
        )
    if status in (408, 429) or status >= 500:
        return TryLater(message, _wait_of(headers, now))
    return Refused(f"{message} {_REMEDIES.get(status, '')}".rstrip(), status)


def graphql_failure(
    request: str, problems: Collection[GraphQLError], headers: Mapping[str, str], now: datetime
) -> TryLater | Refused:
    """Return the failure for a GraphQL response with errors.

    It is `Limited` for a rate limit, `Refused` if the type or the code of an error says that a
    retry is useless, and otherwise `TryLater`.
    """
    error = _short("; ".join(problem.message for problem in problems))
    message = f"{request}: GitHub answered: {error}."
    types = {problem.type for problem in problems}
    if types & {"RATE_LIMITED", "RATE_LIMIT"}:
        return Limited(message, _reset_of(headers, now), "graphql")
    for kind, status in (("FORBIDDEN", 403), ("INSUFFICIENT_SCOPES", 403), ("NOT_FOUND", 404)):
        if kind in types:
            return Refused(f"{message} {_REMEDIES[status]}", status)
    if "UNPROCESSABLE" in types:
        return Refused(message, 422)
    if any((problem.extensions or {}).get("code") for problem in problems):
        # The server does not know a field of the query.
        return Refused(f"{message} This GitHub is too old for Mergewright.", 400)
    return TryLater(message)


def exhausted_limit(
    request: str, headers: Mapping[str, str], now: datetime, resource: str = EVERYTHING
) -> Limited | None:
    """Return the rate limit that this response exhausted; None if it exhausted none.

    `request` begins the exception's message. `resource` is what the limit applies to if the
    response does not name a resource.
    """
    if headers.get("x-ratelimit-remaining") != "0":
        return None
    resource = headers.get("x-ratelimit-resource", resource)
    return Limited(request, _reset_of(headers, now), resource)


def error_message(body: bytes) -> str:
    """Return the message of an error body as one short line; empty if the body has none."""
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
    """Return the rate limit that caused a 403 or 429; None if the response has another cause."""
    if "retry-after" in headers:
        return Limited(message, _wait_of(headers, now) or now + LIMIT_PAUSE)
    if limit := exhausted_limit(message, headers, now):
        return limit
    if any(text in error.lower() for text in _LIMIT_TEXTS):
        return Limited(message, now + LIMIT_PAUSE)
    return None


def _wait_of(headers: Mapping[str, str], now: datetime) -> datetime | None:
    seconds = headers.get("retry-after", "")
    # A proxy may send a date or something else, which is ignored.
    return now + timedelta(seconds=int(seconds)) if _plausible(seconds) else None


def _reset_of(headers: Mapping[str, str], now: datetime) -> datetime:
    reset = headers.get("x-ratelimit-reset", "")
    if not _plausible(reset):
        return now + LIMIT_PAUSE
    # By GitHub's clock, which may differ from the machine's.
    left = from_seconds(int(reset)) - (date_of(headers) or now)
    return max(now, now + left)


def date_of(headers: Mapping[str, str]) -> datetime | None:
    """Return the time at which GitHub sent a response; None if it does not say."""
    try:
        return parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None


def _plausible(number: str) -> bool:
    return number.isdecimal() and len(number) <= 10


def _short(text: str) -> str:
    line = "".join(sign if sign.isprintable() else " " for sign in text).strip(" .")
    return line if len(line) <= _TEXT_LIMIT else line[: _TEXT_LIMIT - 1] + "…"
