"""Who may see the page: one token, as a bearer or, in a browser, as a cookie worked out from it."""

import hashlib
import hmac
import time

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, State
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers import BaseRouteHandler

COOKIE = "mergewright-page"
_SECONDS = 7 * 24 * 3600
_NOT_CONFIGURED = (
    "This page is closed: no token is configured. Set MERGEWRIGHT_PAGE_TOKEN to a long random"
    " word where the server starts, and start it again."
)


class Access:
    """Compares what a visitor shows with the configured token."""

    def __init__(self, token: str) -> None:
        """An empty token means that nobody gets in."""
        self._token = token

    def opens(self, token: str) -> bool:
        """Whether this is the token; takes equally long for every wrong one."""
        shown, right = (hashlib.sha256(word.encode()).digest() for word in (token, self._token))
        return bool(self._token) and hmac.compare_digest(shown, right)

    def cookie(self, *, secure: bool) -> Cookie:
        """A week's admission; it does not tell the token, and a new token voids it."""
        until = str(int(time.time()) + _SECONDS)
        return Cookie(
            key=COOKIE,
            value=f"{until}.{self._seal(until)}",
            max_age=_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def guard(
        self, connection: ASGIConnection[object, object, object, State], _handler: BaseRouteHandler
    ) -> None:
        """Let only admitted visitors through.

        Raises 403 with the remedy where no token is configured, 401 where none or a wrong one is
        shown.
        """
        self.check_configured()
        # Headers are read as Latin-1; a token with other letters was sent as UTF-8.
        shown = (
            connection.headers.get("authorization", "").encode("latin-1").decode(errors="replace")
        )
        scheme, _, token = shown.partition(" ")
        if scheme.lower() == "bearer" and self.opens(token.strip()):
            return
        if not self._admitted(connection.cookies.get(COOKIE, "")):
            raise NotAuthorizedException(
                "Show the page's token: Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer"},
            )

    def check_configured(self) -> None:
        """Raise 403 with the remedy where no token is configured."""
        if not self._token:
            raise PermissionDeniedException(_NOT_CONFIGURED)

    def _admitted(self, cookie: str) -> bool:
        until, _, seal = cookie.partition(".")
        if not hmac.compare_digest(seal.encode(), self._seal(until).encode()):
            return False
        return time.time() < int(until)

    def _seal(self, until: str) -> str:
        return hmac.new(self._token.encode(), f"page:{until}".encode(), "sha256").hexdigest()
