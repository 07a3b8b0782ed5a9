"""Sign-in with the page token or with an account at GitHub, and sign-out."""

import re
import secrets
from hmac import compare_digest
from typing import Annotated
from urllib.parse import quote

from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import Cookie, State
from litestar.exceptions import (
    ClientException,
    HTTPException,
    NotFoundException,
    PermissionDeniedException,
)
from litestar.params import FromQuery, QueryParameter, URLEncodedBody
from litestar.response import Redirect
from msgspec import Struct

from bot.github.errors import Refused
from bot.github.sign_in import GitHubSignIn
from bot.web.access import Access, is_secure
from bot.web.forms import MAX_FORM_BYTES
from bot.web.page_token import Guesses
from bot.web.pages import as_page, sign_in_url
from bot.web.reach import github_errors
from bot.web.rendering import templates
from bot.web.sign_ins import host_cookie
from bot.web.visitor import Visitor, public
from config.settings import Settings

CALLBACK = "login/callback"
#: The name and the lifetime of the cookie that a browser has while its person is at GitHub. It
#: proves that the sign-in ends in the browser in which it began.
_ATTEMPT, _ATTEMPT_SECONDS = "mergewright-sign-in", 600
_AGAIN = {"remedy": "Open the page /login and sign in again."}

_Request = Request[Visitor, object, State]


#: A path on this server. Browsers take `//host` and `/\\host` for addresses of another site, also
#: with a tab in them.
_OWN_PAGE = re.compile(r"/(?![/\\])[!-\[\]-~]*")
_MOST_OF_PAGE = 1000  #: A longer path is left out.


class _Login(Struct, frozen=True):
    token: str = ""
    next: str = ""  #: The page to show after sign-in, to be checked by `own_page`.


def own_page(page: str) -> str:
    """Return `page` if it is a path on this server, with or without a query; otherwise `/`.

    Also returns `/` for the paths of sign-in and sign-out, and for very long ones.
    """
    if len(page) > _MOST_OF_PAGE or not _OWN_PAGE.fullmatch(page):
        return "/"
    return "/" if re.match(r"/log(in|out)\b", page) else page


def sign_in_routes(access: Access, settings: Settings, sign_in: GitHubSignIn | None) -> Router:
    """Return the routes. If `sign_in` is None, nobody can sign in with GitHub."""
    render, sign_ins = templates(), access.sign_ins
    https = settings.public_url.startswith("https:")
    callback = f"{settings.public_url}{CALLBACK}"
    attempt = host_cookie(_ATTEMPT, https=https)
    codes = Guesses("sign-ins")

    def form(page: str, *, wrong: bool) -> str:
        return render(
            "login.html",
            wrong=wrong,
            takes_token=settings.sign_in.takes_token and bool(access.page_token),
            github=f"{settings.public_url}{sign_in_url(page, 'login/github')}" if sign_in else "",
            next=page,
        )

    def signed_in(request: _Request, visitor: Visitor, page: str) -> Redirect:
        token = sign_ins.begin(visitor, request.cookies.get(sign_ins.name, ""))
        cookies = [sign_ins.cookie(token, visitor, secure=is_secure(request))]
        if visitor.login:
            cookies.append(sign_ins.removed(attempt))
        return Redirect(own_page(page), status_code=303, cookies=cookies)

    def check_attempt(request: _Request, given: str) -> tuple[str, str]:
        """Return the PKCE verifier and the target page of this browser's sign-in attempt.

        `given` is the `state` that GitHub sent back. Raises 400 if it is not that of the attempt.
        """
        # The page is last: it may contain dots.
        state, verifier, page = f"{request.cookies.get(attempt, '')}..".split(".", 2)
        if not state or not compare_digest(given.encode(), state.encode()):
            raise ClientException(
                "This sign-in began in another browser or more than ten minutes ago, or a newer one"
                " replaced it.",
                extra=_AGAIN,
            )
        return verifier, page.removesuffix("..")

    @get("/login", media_type=MediaType.HTML, sync_to_thread=False)
    def login_page(page: Annotated[str, QueryParameter(name="next")] = "") -> str:
        access.check_configured()
        return form(own_page(page), wrong=False)

    @post("/login", sync_to_thread=True, request_max_body_size=MAX_FORM_BYTES)
    def login(request: _Request, data: URLEncodedBody[_Login]) -> Response[str]:
        access.check_configured()
        if not settings.sign_in.takes_token or not access.page_token.opens(data.token):
            html = form(own_page(data.next), wrong=True)
            return Response(html, status_code=401, media_type=MediaType.HTML)
        return signed_in(request, Visitor(), data.next)

    @get("/login/github", sync_to_thread=False)
    def to_github(page: Annotated[str, QueryParameter(name="next")] = "") -> Redirect:
        if sign_in is None:
            raise NotFoundException("People do not sign in with GitHub here.")
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        cookie = Cookie(
            key=attempt,
            value=f"{state}.{verifier}.{quote(own_page(page), safe='')}",
            max_age=_ATTEMPT_SECONDS,
            path="/",
            httponly=True,
            samesite="lax",
            secure=https,
        )
        address = sign_in.address(callback, state, verifier)
        return Redirect(address, status_code=303, cookies=[cookie])

    @get(f"/{CALLBACK}", sync_to_thread=True)
    def from_github(
        request: _Request,
        code: FromQuery[str] = "",
        given: Annotated[str, QueryParameter(name="state")] = "",
        error: FromQuery[str] = "",
    ) -> Redirect:
        if sign_in is None:
            raise NotFoundException("People do not sign in with GitHub here.")
        verifier, page = check_attempt(request, given)
        if error:
            raise PermissionDeniedException(
                f"GitHub did not sign you in: {error[:80]}.", extra=_AGAIN
            )
        if codes.is_known(code):
            raise PermissionDeniedException("GitHub already refused this sign-in.", extra=_AGAIN)
        with github_errors():
            try:
                user = sign_in.user(code, callback, verifier)
            except Refused as refusal:
                codes.add(code)
                raise PermissionDeniedException(str(refusal), extra=_AGAIN) from refusal
        visitor = Visitor(login=user.login, user=user.id)
        if access.reach(visitor).snapshot() is None:
            raise PermissionDeniedException(
                f"@{user.login} has no role in any project here.",
                extra={
                    "remedy": "Ask an administrator of a repository to add you as a collaborator."
                    " Being able to read a public repository is not enough."
                },
            )
        return signed_in(request, visitor, page)

    @post("/logout", sync_to_thread=True)
    def logout(request: _Request) -> Redirect:
        sign_ins.end(request.cookies.get(sign_ins.name, ""))
        return Redirect("/login", status_code=303, cookies=[sign_ins.removed()])

    return Router(
        "/",
        route_handlers=[login_page, login, to_github, from_github, logout],
        guards=[access.guard],
        opt=public(),
        exception_handlers={HTTPException: as_page, Exception: as_page},
    )
