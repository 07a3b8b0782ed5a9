"""The HTML pages: the board, the API's page, the sign-in and errors.

The pages of a session are in `session_pages`, all others in `overview_pages`.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.exceptions import HTTPException, InternalServerException
from litestar.params import QueryParameter, URLEncodedBody
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage
from msgspec import Struct

from bot.show.board import DEFAULT_SORT, GROUPS, BoardFilter
from bot.store import SessionSort
from bot.web.access import COOKIE, FAILED, Access, remedy_of
from bot.web.api.operations import Cursor
from bot.web.api.router import document
from bot.web.forms import MAX_FORM_BYTES, form_key, form_routes
from bot.web.health import Health
from bot.web.live import Watchers
from bot.web.overview_pages import overview_routes
from bot.web.page_feed import PageFeed
from bot.web.rendering import templates
from bot.web.session_pages import session_routes
from bot.web.views import Views

_Request = Request[object, object, State]


#: A field of the board's filter.
_Word = Annotated[str, QueryParameter(max_length=400)]


class _Login(Struct, frozen=True):
    token: str = ""


class _Changed(Struct, frozen=True):
    """A changed session, as open pages receive it."""

    id: str
    group: str
    html: str


def page_routes(
    views: Views,
    access: Access,
    watchers: Watchers,
    health: Callable[[], Health],
    *,
    https: bool,
) -> Router:
    """Return the routes of the pages. `https`: whether people reach them by HTTPS only."""
    render = templates()
    page = partial(get, guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)

    def changes(ids: frozenset[str]) -> bytes:
        return msgspec.json.encode(
            [
                _Changed(
                    card.row.id,
                    card.group,
                    # The same for all visitors: page.js adds the CSRF token of each.
                    render("card.html", card=card, csrf="", key=form_key()),
                )
                for card in views.cards(ids)
            ]
        )

    @page("/")
    def board(
        request: _Request,
        group: _Word = "",
        project: _Word = "",
        agent: _Word = "",
        status: _Word = "",
        person: _Word = "",
        search: _Word = "",
        sort: Annotated[SessionSort, QueryParameter()] = DEFAULT_SORT,
        after: Cursor = None,
    ) -> str:
        chosen = BoardFilter(
            group=group,
            project=project,
            agent=agent,
            status=status,
            person=person,
            search=search.strip(),
            sort=sort,
            after=after or "",
        )
        return render(
            "board.html",
            board=views.board(chosen),
            choices=views.choices(),
            statuses=[str(status) for group in GROUPS for status in group.statuses],
            health=health(),
            notices=views.notices(),
            projects=views.projects(),
            csrf=access.csrf_token(request),
            key=form_key(),
        )

    @page("/api")
    def api_page() -> str:
        return render("api.html", document=msgspec.json.decode(document()))

    @get("/login", media_type=MediaType.HTML, sync_to_thread=False)
    def login_page() -> str:
        access.check_configured()
        return render("login.html", wrong=False)

    @post("/login", sync_to_thread=False, request_max_body_size=MAX_FORM_BYTES)
    def login(request: _Request, data: URLEncodedBody[_Login]) -> Response[str]:
        access.check_configured()
        if not access.opens(data.token):
            return Response(
                render("login.html", wrong=True), status_code=401, media_type=MediaType.HTML
            )
        # A proxy that ends TLS may set this header; forged, it keeps the cookie off plain HTTP.
        secure = https or request.headers.get("x-forwarded-proto") == "https"
        cookie = access.cookie(secure=secure)
        return Redirect("/", status_code=303, cookies=[cookie])

    @post("/logout", sync_to_thread=False)
    def logout() -> Redirect:
        answer = Redirect("/login", status_code=303)
        answer.delete_cookie(COOKIE)
        return answer

    @get("/events", guards=[access.guard], sync_to_thread=False)
    def events() -> ServerSentEvent:
        return ServerSentEvent(stream())

    feed = PageFeed(watchers, changes)

    async def stream() -> AsyncIterator[ServerSentEventMessage]:
        async with aclosing(feed.follow()) as news:
            async for messages in news:
                if not messages:
                    yield ServerSentEventMessage(comment="alive", data=None)
                for message in messages:
                    yield ServerSentEventMessage(event="sessions", data=message)

    return Router(
        "/",
        route_handlers=[
            *(board, api_page, events, login_page, login, logout),
            overview_routes(views, access),
            session_routes(views, access),
            form_routes(views, access),
        ],
        exception_handlers={HTTPException: as_page, Exception: as_page},
    )


def as_page(request: _Request, problem: Exception) -> Response[str]:
    """Return an error page with the remedy; for a 401, redirect to the sign-in."""
    error = problem if isinstance(problem, HTTPException) else InternalServerException(FAILED)
    if error.status_code == 401 and request.url.path != "/events":
        return Redirect("/login", status_code=303)
    title, remedy = _ERRORS.get(error.status_code, ("Error", ""))
    text = f"{error.detail.rstrip('.')}. {remedy_of(error) or remedy}"
    html = templates()("message.html", title=title, text=text)
    return Response(
        html, status_code=error.status_code, media_type=MediaType.HTML, headers=error.headers
    )


#: The title and the remedy of an error page, by status.
_ERRORS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("Request not accepted", ""),
    403: ("Access denied", ""),
    404: ("Page not found", "The sessions page lists all sessions."),
    405: ("Error", "Go back and use the buttons on the page."),
    409: ("Request not accepted", "Reload the page and submit the form again."),
    429: ("Too many requests", "Wait a minute and try again."),
    500: ("Server error", "See the server's log for details."),
}
