"""Signed-in browsers. Each has a cookie with a random token, of which only a hash is stored."""

import hashlib
import logging
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

from litestar.datastructures import Cookie

from bot.store import Store, StoreFailure
from bot.web.page_token import PageToken
from bot.web.visitor import Visitor
from config.tables import SignInSettings

_log = logging.getLogger(__name__)

COOKIE = "mergewright-page"
#: Requests of a signed-in browser are noted at most once in this time.
_NOTED = timedelta(minutes=1)
#: How long a browser keeps a cookie until it gets the next one, so that a stolen copy ends.
_RENEWED = timedelta(hours=1)
#: How long a cookie remains valid after the next one was first used, for requests under way.
_REMAINS = timedelta(minutes=1)


class SignIns:
    """Signs browsers in and out."""

    def __init__(
        self, store: Store, page_token: PageToken, settings: SignInSettings, *, https: bool
    ) -> None:
        """`https` says whether people reach the server by HTTPS only."""
        self._store = store
        self._page_token = page_token
        self._settings = settings
        self._https = https
        self._idle = timedelta(hours=settings.idle_hours)
        self._most = timedelta(hours=settings.most_hours)
        self.name = host_cookie(COOKIE, https=https)

    def begin(self, visitor: Visitor, before: str = "") -> str:
        """Sign a browser in, and return the token for its cookie.

        The token is always new. The browser's previous token `before` is invalidated, so that a
        token which somebody else put into the browser does not become a sign-in (session fixation).
        """
        token, now = _token(), self._store.clock()
        self._store.sign_ins.delete_old(now - self._most, now - self._idle)
        self.end(before)
        digest = self._digest(token, visitor)
        self._store.sign_ins.add(digest, visitor.login, visitor.user, now, now + _RENEWED)
        return token

    def find(self, token: str, *, note: bool = True) -> Visitor | None:
        """Return who is signed in with the cookie `token`; None for an unknown or expired cookie.

        Restarts the idle time. Set `note` to False for the regular checks of an open stream. Such a
        check does not restart the idle time, and accepts the cookie with which the stream began,
        even if the browser has a newer one.

        If a request has a replaced cookie that is no longer valid, this cookie or its replacement
        may have been stolen. Both are signed out, as RFC 9700 requires for refresh tokens:
        https://www.rfc-editor.org/rfc/rfc9700.html#section-4.14.2
        """
        now = self._store.clock()
        for digest in self._digests(token):
            found = self._store.sign_ins.get(digest)
            if found is None or now - found.created >= self._most or now - found.seen >= self._idle:
                continue
            if note and found.ends and found.ends <= now:
                who = f"@{found.login}" if found.login else "the page token"
                _log.warning(
                    "%s: a sign-in cookie was used after its replacement, as if stolen; signed out",
                    who,
                )
                self._store.sign_ins.end(digest)
                return None
            with suppress(StoreFailure):  # The disk is full, or another bot leads.
                if note and not found.used:
                    self._store.sign_ins.take(digest, now, now + _REMAINS)
                elif note and now - found.seen >= _NOTED:
                    self._store.sign_ins.see(digest, now)
            return Visitor(login=found.login, user=found.user, sign_in=found.first)
        return None

    def renewed(self, token: str, visitor: Visitor) -> str:
        """Create a browser's next cookie if it is due; return its token, else an empty string."""
        made, now = _token(), self._store.clock()
        digest, next_digest = self._digest(token, visitor), self._digest(made, visitor)
        found = self._store.sign_ins.get(digest)
        if found is None or found.ends or now < found.renews:
            return ""
        with suppress(StoreFailure):
            if self._store.sign_ins.renew(digest, next_digest, now, now + _RENEWED):
                return made
        return ""

    def end(self, token: str) -> None:
        """Sign a browser out."""
        for digest in self._digests(token):
            self._store.sign_ins.end(digest)

    def end_all(self, visitor: Visitor) -> None:
        """Sign out all browsers of a person, or all that signed in with the page token."""
        self._store.sign_ins.end_all(visitor.login)

    def cookie(self, token: str, visitor: Visitor, *, secure: bool) -> Cookie:
        """Return the cookie of a signed-in browser.

        After a sign-in with GitHub, its SameSite attribute is `lax`, not `strict`, because the
        browser has to send the cookie when GitHub redirects it back here.
        """
        return Cookie(
            key=self.name,
            value=token,
            max_age=int(self._most.total_seconds()),
            path="/",
            httponly=True,
            samesite="lax" if visitor.login else "strict",
            secure=secure or self._https,
        )

    def removed(self, name: str = "") -> Cookie:
        """Return a cookie that deletes the cookie `name`, by default that of the sign-in."""
        return Cookie(
            key=name or self.name,
            value="",
            max_age=0,
            path="/",
            httponly=True,
            secure=self._https,
        )

    def _digest(self, token: str, visitor: Visitor) -> str:
        return _digest(token) if visitor.login else self._page_token.seal(token)

    def _digests(self, token: str) -> Iterator[str]:
        """Yield the hashes of a token, one for each way to sign in that is switched on."""
        if token and self._settings.takes_people:
            yield _digest(token)
        if token and self._settings.takes_token and self._page_token:
            yield self._page_token.seal(token)


def _token() -> str:
    return secrets.token_urlsafe(32)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def host_cookie(name: str, *, https: bool) -> str:
    """Return a cookie's name, with a prefix that binds the cookie to this host if `https` is true.

    https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Set-Cookie#cookie_prefixes
    """
    return f"__Host-{name}" if https else name
