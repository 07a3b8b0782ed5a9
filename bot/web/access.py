"""Who may see the page: one token, as a bearer or, in a browser, as a cookie worked out from it."""

import hashlib
import hmac
import time
from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, State
from litestar.exceptions import (
    HTTPException,
    NotAuthorizedException,
    PermissionDeniedException,
)
from litestar.handlers import BaseRouteHandler

Visitor = ASGIConnection[Any, Any, Any, State]

COOKIE = "mergewright-page"
_SECONDS = 7 * 24 * 3600
_NOT_CONFIGURED = (
    "Set MERGEWRIGHT_PAGE_TOKEN to a long random word where the server starts, and start it again."
)
_BEARER = "Show the page's token: Authorization: Bearer TOKEN"


def remedy_of(problem: HTTPException) -> str:
    """What to do about a problem, where whoever raised it said so."""
    return str(problem.extra.get("remedy", "")) if isinstance(problem.extra, dict) else ""


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
            value=f"{until}.{self._seal(f'page:{until}')}",
            max_age=_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def guard(self, connection: Visitor, _handler: BaseRouteHandler) -> None:
        """Let only admitted visitors through.

        Raises 403 with the remedy where no token is configured, 401 where none or a wrong one is
        shown.
        """
        self.check_configured()
        if not self._bears(connection) and not self._admitted(connection.cookies.get(COOKIE, "")):
            raise NotAuthorizedException(
                "This is for those who show the page's token.",
                headers={"www-authenticate": "Bearer"},
                extra={"remedy": _BEARER},
            )

    def guard_writing(self, connection: Visitor, handler: BaseRouteHandler) -> None:
        """Let only bearers through: a browser sends its cookie for whatever page asks it to.

        Raises what `guard` raises, and 403 with the remedy for a cookie alone.
        """
        self.guard(connection, handler)
        # Another page can have a browser send a header of that name, but never with the token.
        if not self._bears(connection):
            raise PermissionDeniedException(
                "A cookie alone may not write here.", extra={"remedy": _BEARER}
            )

    def form_word(self, connection: Visitor) -> str:
        """What a form of this visitor carries, so that no other page can send it for him."""
        return self._seal(f"form:{connection.cookies.get(COOKIE, '')}")

    def check_form(self, connection: Visitor, word: str) -> None:
        """Raise 403 with the remedy unless the form was made for this visitor."""
        if not hmac.compare_digest(word.encode(), self.form_word(connection).encode()):
            raise PermissionDeniedException(
                "This form was not made by this page, or for another sign-in.",
                extra={"remedy": "Load the page again and repeat it."},
            )

    def check_configured(self) -> None:
        """Raise 403 with the remedy where no token is configured."""
        if not self._token:
            raise PermissionDeniedException(
                "This page is closed: no token is configured.", extra={"remedy": _NOT_CONFIGURED}
            )

    def _bears(self, connection: Visitor) -> bool:
        # Headers are read as Latin-1; a token with other letters was sent as UTF-8.
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
