"""The page *Account*: a person's roles and personal tokens, and how to sign out everywhere."""

from typing import Annotated

from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException, PermissionDeniedException
from litestar.params import URLEncodedBody
from litestar.response import Redirect
from msgspec import Meta, Struct

from bot.store import TokenScope
from bot.web.access import Access
from bot.web.forms import MAX_FORM_BYTES
from bot.web.personal_tokens import checked
from bot.web.rendering import navigation, templates
from bot.web.visitor import Visitor, anywhere
from lifecycle.model.roles import Role

_Request = Request[Visitor, object, State]
_DAYS = 30  #: How long a token is valid unless its owner chooses otherwise.


class _NewToken(Struct, frozen=True):
    csrf: str = ""
    name: Annotated[str, Meta(max_length=100)] = ""
    scope: TokenScope = TokenScope.READ
    days: float = _DAYS


class _Revoked(Struct, frozen=True):
    csrf: str = ""
    id: int = 0


class _Plain(Struct, frozen=True):
    csrf: str = ""


def account_routes(access: Access) -> Router:
    """Return the routes of the page.

    Its forms work only in signed-in browsers: no token may create or revoke tokens.
    """
    render, tokens, sign_ins = templates(), access.tokens, access.sign_ins

    def shown(request: _Request, made: str = "") -> str:
        visitor = request.user
        reach = access.reach(visitor)
        return render(
            "account.html",
            pages=navigation(reach),
            login=visitor.login,
            roles=reach.roles() if visitor.login else {},
            tokens=tokens.of(visitor),
            scopes=[str(scope) for scope in TokenScope],
            days=_DAYS,
            most_days=access.token_days,
            made=made,
            csrf=access.csrf_token(request),
        )

    def check(request: _Request, csrf: str) -> None:
        if request.user.bears:
            raise PermissionDeniedException(
                "A token cannot change an account.",
                extra={"remedy": "Sign in with a browser and open the page /account."},
            )
        access.check_form(request, csrf)

    @get("/account", media_type=MediaType.HTML, sync_to_thread=True)
    def account(request: _Request) -> str:
        return shown(request)

    @post("/account/tokens", media_type=MediaType.HTML, status_code=201, sync_to_thread=True)
    def create(request: _Request, data: URLEncodedBody[_NewToken]) -> str:
        check(request, data.csrf)
        visitor = request.user
        if not visitor.login:
            raise ClientException("Personal tokens are for people who sign in with GitHub.")
        try:
            name = checked(data.name, data.days, access.token_days)
        except ValueError as problem:
            raise ClientException(f"{problem}.") from problem
        made, _ = tokens.create(visitor.login, visitor.user, name, data.scope, data.days)
        return shown(request, made)

    @post("/account/tokens/revoke", sync_to_thread=True)
    def revoke(request: _Request, data: URLEncodedBody[_Revoked]) -> Redirect:
        check(request, data.csrf)
        tokens.revoke(data.id, request.user)
        return Redirect("/account", status_code=303)

    @post("/account/sign-out", sync_to_thread=True)
    def sign_out_everywhere(request: _Request, data: URLEncodedBody[_Plain]) -> Response[str]:
        check(request, data.csrf)
        sign_ins.end_all(request.user)
        return Redirect("/login", status_code=303, cookies=[sign_ins.removed()])

    return Router(
        "/",
        route_handlers=[account, create, revoke, sign_out_everywhere],
        guards=[access.guard],
        opt=anywhere(Role.READ),
        request_max_body_size=MAX_FORM_BYTES,
    )
