"""Access to the pages and the API: a bearer token, or in browsers a cookie derived from it."""

import hashlib
import hmac
import threading
import time
from collections.abc import Callable
from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, State
from litestar.exceptions import (
    HTTPException,
    NotAuthorizedException,
    PermissionDeniedException,
    TooManyRequestsException,
)
from litestar.handlers import BaseRouteHandler

Visitor = ASGIConnection[Any, Any, Any, State]

COOKIE = "mergewright-page"
FAILED = "The server could not answer this request."
_SECONDS = 7 * 24 * 3600
#: The most different wrong tokens in a minute, from all visitors, as bearer tokens and at sign-in.
_GUESSES_A_MINUTE = 60
_MINUTE = 60.0
_NOT_CONFIGURED = (
    "Set MERGEWRIGHT_PAGE_TOKEN to a long random value in the server's environment and restart it."
)
_BEARER = "Send the header Authorization: Bearer TOKEN with the page's token."


def remedy_of(problem: HTTPException) -> str:
    """Return the remedy in an exception's `extra`, or an empty string."""
    return str(problem.extra.get("remedy", "")) if isinstance(problem.extra, dict) else ""


class Access:
    """Checks the tokens and cookies of visitors against the configured token."""

    def __init__(self, token: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """An empty `token` denies access to everyone; `clock` returns monotonic seconds."""
        self._token = token
        self._guesses = _Guesses(clock)

    def __deepcopy__(self, memo: object) -> "Access":
        """Return itself: Litestar copies guards, but all must count the same wrong tokens."""
        return self

    def opens(self, token: str) -> bool:
        """Whether this is the configured token, compared in constant time.

        Raises 429, without a comparison, after too many wrong tokens. Cookies stay valid.
        """
        shown, right = (hashlib.sha256(word.encode()).digest() for word in (token, self._token))
        if self._guesses.is_known(shown):
            return False
        found = bool(self._token) and hmac.compare_digest(shown, right)
        if not found:
            self._guesses.add(shown)
        return found

    def cookie(self, *, secure: bool) -> Cookie:
        """Return a cookie that is valid for a week; changing the token invalidates it."""
        until = str(int(time.time()) + _SECONDS)
        return Cookie(
            key=COOKIE,
            value=f"{until}.{self._seal(f'page:{until}')}",
            max_age=_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def guard(self, connection: Visitor, _handler: BaseRouteHandler) -> None:
        """Raise 403 if no token is configured, 401 if the visitor has no valid token or cookie."""
        self.check_configured()
        if not self._bears(connection) and not self._admitted(connection.cookies.get(COOKIE, "")):
            raise NotAuthorizedException(
                "The page's token is required.",
                headers={"www-authenticate": "Bearer"},
                extra={"remedy": _BEARER},
            )

    def guard_api(self, connection: Visitor, handler: BaseRouteHandler) -> None:
        """Raise as `guard` does, and raise 403 for a write with a cookie instead of a bearer token.

        A browser adds its cookie to requests that other sites cause (CSRF).
        """
        self.guard(connection, handler)
        reads = connection.scope.get("method") in ("GET", "HEAD", "OPTIONS")
        # A bearer token proves that no other site made the request: none knows the token.
        if not reads and not self._bears(connection):
            raise PermissionDeniedException(
                "A cookie is not enough to change anything here.", extra={"remedy": _BEARER}
            )

    def csrf_token(self, connection: Visitor) -> str:
        """Return the CSRF token for this visitor's forms, derived from the visitor's cookie."""
        return self._seal(f"form:{connection.cookies.get(COOKIE, '')}")

    def check_form(self, connection: Visitor, token: str) -> None:
        """Raise 403 unless the form carries this visitor's CSRF token."""
        if not hmac.compare_digest(token.encode(), self.csrf_token(connection).encode()):
            raise PermissionDeniedException(
                "This form has expired or comes from another site.",
                extra={"remedy": "Reload the page and submit the form again."},
            )

    def check_configured(self) -> None:
        """Raise 403 if no token is configured."""
        if not self._token:
            raise PermissionDeniedException(
                "The page is disabled because no token is configured.",
                extra={"remedy": _NOT_CONFIGURED},
            )

    def _bears(self, connection: Visitor) -> bool:
        # Headers are decoded as Latin-1; tokens with other letters are sent as UTF-8.
        shown = (
            connection.headers.get("authorization", "").encode("latin-1").decode(errors="replace")
        )
        scheme, _, token = shown.partition(" ")
        return scheme.lower() == "bearer" and self.opens(token.strip())

    def _admitted(self, cookie: str) -> bool:
        until, _, seal = cookie.partition(".")
        if not hmac.compare_digest(seal.encode(), self._seal(f"page:{until}").encode()):
            return False
        return time.time() < int(until)

    def _seal(self, text: str) -> str:
        return hmac.new(self._token.encode(), text.encode(), "sha256").hexdigest()


class _Guesses:
    """The wrong tokens of the current minute, from all visitors: IP addresses can be forged.

    Only different tokens count, so that a program with an old token locks nobody out.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = 0.0
        self._wrong: set[bytes] = set()  # SHA-256.
        self._lock = threading.Lock()

    def is_known(self, digest: bytes) -> bool:
        """Whether a token is known as wrong. After too many wrong ones, raises 429 for others."""
        with self._lock:
            if self._clock() >= self._until:
                self._until = self._clock() + _MINUTE
                self._wrong.clear()
            if digest in self._wrong:
                return True
            if len(self._wrong) >= _GUESSES_A_MINUTE:
                raise TooManyRequestsException(
                    "Too many wrong tokens were tried.",
                    headers={"retry-after": str(int(self._until - self._clock()) + 1)},
                    extra={"remedy": "Wait a minute and try again."},
                )
            return False

    def add(self, digest: bytes) -> None:
        """Count a wrong token."""
        with self._lock:
            self._wrong.add(digest)
