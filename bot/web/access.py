"""Access to the pages and the API: who sends a request, and may this person use the route?"""

import asyncio
import hmac
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from litestar.exceptions import (
    ClientException,
    HTTPException,
    NotAuthorizedException,
    PermissionDeniedException,
)
from litestar.handlers import BaseRouteHandler
from litestar.types import Message, Scope

from bot.github.write_access import WriteAccess
from bot.store import Store
from bot.web.page_token import PageToken
from bot.web.personal_tokens import PREFIX, PersonalTokens
from bot.web.reach import Reach, no_session, refused
from bot.web.sign_ins import SignIns
from bot.web.visitor import NEEDS, Connection, Needs, Visitor, Where
from config.settings import Settings
from lifecycle.model.roles import Role

FAILED = "The server could not answer this request."
_NOT_CONFIGURED = (
    "Set MERGEWRIGHT_PAGE_TOKEN to a long random value in the server's environment and restart it."
)
_BEARER = "Send the header Authorization: Bearer TOKEN with the page token."
_PERSONAL = "Send the header Authorization: Bearer TOKEN with a personal token."
_OWN_BEARER = "Send the header Authorization: Bearer TOKEN with a personal token, or sign in."
_PUBLIC_URL = "Open it at its public URL, which an administrator sets with `server.public-url`."
_READS = ("GET", "HEAD", "OPTIONS")
#: The key of the browser's next cookie in the state of its request.
_NEXT_COOKIE = "next-cookie"
#: The interval at which an open stream checks whether its visitor may still see it.
_STREAM_SECONDS = 15.0


def remedy_of(problem: HTTPException) -> str:
    """Return the remedy in an exception's `extra`, or an empty string."""
    return str(problem.extra.get("remedy", "")) if isinstance(problem.extra, dict) else ""


class Access:
    """Decides who may use which route."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        page_token: PageToken,
        sign_ins: SignIns,
        people: WriteAccess | None,
    ) -> None:
        """`people` reads visitors' permissions at GitHub."""
        self.page_token = page_token
        self.sign_ins = sign_ins
        self.tokens = PersonalTokens(store)
        self.token_days = settings.sign_in.token_days
        self._store = store
        self._people = people
        self._projects = settings.projects
        self._settings = settings.sign_in
        self._within = timedelta(seconds=settings.sign_in.permission_seconds)
        public = urlsplit(settings.public_url)
        self._hosts = {public.hostname, settings.server.host.lower(), "localhost"}
        self._origin = public.netloc

    def __deepcopy__(self, memo: object) -> "Access":
        """Return itself: Litestar copies guards, but they must count wrong tokens together."""
        return self

    def reach(self, visitor: Visitor) -> Reach:
        """Return what a visitor may see and do."""
        return Reach(visitor, self._projects, self._people, self._within)

    def guard(self, connection: Connection, handler: BaseRouteHandler) -> None:
        """Raise an error unless the visitor may use this route; set `connection.user` to them.

        400: the request has an unknown host name. 401: nobody is signed in. 403: the visitor lacks
        the role, no way to sign in is configured, or another site sent the request. 404: the
        session does not exist, or the visitor may not know of it. 429: too many wrong tokens were
        tried. 503: GitHub does not say what the visitor may do.

        On a public route, only the site is checked (400, 403), and `connection.user` is not set.
        """
        needs = handler.opt.get(NEEDS)
        if needs is None:
            raise PermissionDeniedException("This route does not say who may use it.")
        if needs.where is Where.NOWHERE:
            self._check_site(connection)
            return
        self.check_configured()
        visitor = self._by_token(connection)
        if visitor is None:
            self._check_site(connection)
            visitor = self._by_cookie(connection)
        if visitor is None:
            raise self._not_signed_in()
        connection.scope["user"] = visitor
        if visitor.login:
            self._check_role(connection, self.reach(visitor), needs)
        if not visitor.bears and connection.scope.get("method") == "GET":
            self._renew_cookie(connection, visitor)

    def _renew_cookie(self, connection: Connection, visitor: Visitor) -> None:
        """Prepare the browser's next cookie if it is due. `send_cookie` adds it to the response."""
        before = connection.cookies.get(self.sign_ins.name, "")
        if token := self.sign_ins.renewed(before, visitor):
            cookie = self.sign_ins.cookie(token, visitor, secure=is_secure(connection))
            connection.scope.setdefault("state", {})[_NEXT_COOKIE] = cookie

    def guard_api(self, connection: Connection, handler: BaseRouteHandler) -> None:
        """Raise the errors of `guard`, and 403 for a write that has a cookie instead of a token.

        A cookie is not enough, because browsers add it to requests that other sites cause (CSRF).
        """
        self.guard(connection, handler)
        # Another site can set this header, but does not know the token.
        if connection.scope.get("method") not in _READS and not connection.user.bears:
            remedy = _PERSONAL if self._settings.takes_people else _BEARER
            raise PermissionDeniedException(
                "A cookie is not enough to change anything here.", extra={"remedy": remedy}
            )

    def check_configured(self) -> None:
        """Raise 403 if there is no way to sign in."""
        if not self._settings.takes_people and not self.page_token:
            raise PermissionDeniedException(
                "The page is disabled because no token is configured.",
                extra={"remedy": _NOT_CONFIGURED},
            )

    def csrf_token(self, connection: Connection) -> str:
        """Return the CSRF token for this visitor's forms. It is valid until they sign out."""
        return hmac.new(connection.user.sign_in.encode(), b"form", "sha256").hexdigest()

    def check_form(self, connection: Connection, token: str) -> None:
        """Raise 403 unless the form carries this visitor's CSRF token."""
        if not hmac.compare_digest(token.encode(), self.csrf_token(connection).encode()):
            raise PermissionDeniedException(
                "This form has expired or comes from another site.",
                extra={"remedy": "Reload the page and submit the form again."},
            )

    def roles_now(self, connection: Connection) -> Callable[[str], Role] | None:
        """Return the visitor's roles at this moment: a function from a project to the role there.

        Open streams call `roles_now` again and again. They have to end if it returns None: the
        visitor is no longer signed in, or has no role in any project. Raises 429 and 503 as
        `guard`.
        """
        visitor = self._by_token(connection) or self._by_cookie(connection, note=False)
        return None if visitor is None else self.reach(visitor).snapshot()

    def _by_token(self, connection: Connection) -> Visitor | None:
        bearer = _bearer(connection)
        if self._settings.takes_people and bearer.startswith(PREFIX):
            return self.tokens.find(bearer)
        if bearer and self._settings.takes_token and self.page_token.opens(bearer):
            return Visitor(bears=True)
        return None

    def _by_cookie(self, connection: Connection, *, note: bool = True) -> Visitor | None:
        return self.sign_ins.find(connection.cookies.get(self.sign_ins.name, ""), note=note)

    def _not_signed_in(self) -> NotAuthorizedException:
        says, remedy = "The page token is missing or wrong.", _BEARER
        if self._settings.takes_people:
            says, remedy = (
                "You are not signed in, or your token is unknown, revoked or expired.",
                _OWN_BEARER,
            )
        headers = {"www-authenticate": "Bearer"}
        return NotAuthorizedException(says, headers=headers, extra={"remedy": remedy})

    def _check_role(self, connection: Connection, reach: Reach, needs: Needs) -> None:
        if needs.where is Where.SESSION:
            name = str(connection.path_params["id"])
            session = self._store.sessions.get(name)
            role = reach.role(session.project) if session else Role.NONE
            if session is None or not role:
                raise no_session(self._store, reach, name)
            if role < needs.role:
                raise refused(needs.role, session.repository)
        elif needs.where is Where.ANYWHERE:
            role = max(reach.roles().values(), default=Role.NONE)
            if role < needs.role:
                raise refused(needs.role, "the repository of a project")
        elif reach.everywhere() < needs.role:
            raise refused(needs.role, "the repositories of all projects")

    def _check_site(self, connection: Connection) -> None:
        """Raise an error if a page of another site may have made the browser send this request.

        400: the host is neither a known name nor an IP address. An unknown name may belong to the
        other site and resolve to this server (DNS rebinding). 403: the request would write, and
        comes from the other site's page, such as a form (CSRF).
        """
        host = connection.headers.get("host", "")
        name = _split(f"//{host}").hostname or ""
        if name not in self._hosts and not _is_address(name):
            raise ClientException(
                f"This server is not named {name[:80] or '(no name)'}.",
                extra={"remedy": _PUBLIC_URL},
            )
        if connection.scope.get("method") in _READS:
            return
        origin = connection.headers.get("origin")
        # Newer browsers say it themselves: https://web.dev/articles/fetch-metadata
        site = connection.headers.get("sec-fetch-site")
        own = site in ("same-origin", "none")
        if site is None:
            own = origin is None or _split(origin).netloc in (host, self._origin)
        if not own:
            raise PermissionDeniedException(
                "This request comes from another site.",
                extra={"remedy": "Open this server's own page and try again."},
            )


def is_secure(connection: Connection) -> bool:
    """Whether the visitor reached a proxy in front of this server by HTTPS.

    The header X-Forwarded-Proto may be forged, but the only effect is that the cookie is not sent
    over plain HTTP.
    """
    return connection.headers.get("x-forwarded-proto") == "https"


async def send_cookie(message: Message, scope: Scope) -> None:
    """Add the cookie with which the browser replaces its sign-in cookie to the response."""
    cookie = scope.get("state", {}).get(_NEXT_COOKIE)
    if cookie and message["type"] == "http.response.start":
        message["headers"] = [*message["headers"], cookie.to_encoded_header()]


class LiveReach:
    """What the visitor of an open stream may see, checked again every 15 seconds."""

    def __init__(self, access: Access, connection: Connection) -> None:
        self._read = partial(access.roles_now, connection)
        self._until = 0.0
        self._roles: Callable[[str], Role] | None = None

    async def roles(self) -> Callable[[str], Role] | None:
        """Return a function from a project to the visitor's role; None if the stream has to end."""
        if time.monotonic() >= self._until:
            with suppress(HTTPException):  # 429 or 503: what is known remains.
                self._roles = await asyncio.to_thread(self._read)
            self._until = time.monotonic() + _STREAM_SECONDS
        return self._roles


def _bearer(connection: Connection) -> str:
    """Return the bearer token of the Authorization header; empty if there is none."""
    # Headers are decoded as Latin-1; tokens with other letters are sent as UTF-8.
    shown = connection.headers.get("authorization", "").encode("latin-1").decode(errors="replace")
    scheme, _, token = shown.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _split(url: str) -> SplitResult:
    """Split a URL that another program sent. The parts of a malformed one are empty."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
