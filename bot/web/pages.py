"""The HTML page of the board, the page that documents the API, and what all pages share.

The pages of a session are in `session_pages`, sign-in in `sign_in_pages`, most others in
`overview_pages`.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from litestar import MediaType, Request, Response, Router, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException, InternalServerException
from litestar.params import QueryParameter
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage
from msgspec import Struct

from bot.intake.terminal_input import TerminalInput
from bot.show.board import DEFAULT_SORT, GROUPS, BoardFilter, Card
from bot.store import SessionSort
from bot.web.access import FAILED, Access, LiveReach, remedy_of
from bot.web.account_pages import account_routes
from bot.web.api.operations import AllViews, Cursor
from bot.web.api.router import document
from bot.web.forms import form_key, form_routes
from bot.web.health import Health
from bot.web.live import Watchers
from bot.web.overview_pages import overview_routes
from bot.web.page_feed import PageFeed
from bot.web.rendering import navigation, templates
from bot.web.session_pages import session_routes
from bot.web.terminal_keys import keys_route
from bot.web.views import Views
from bot.web.visitor import Visitor, anywhere
from lifecycle.model.roles import Role

_Request = Request[Visitor, object, State]


#: A field of the board's filter.
_Word = Annotated[str, QueryParameter(max_length=400)]


class _Changed(Struct, frozen=True):
    """A changed session, in the form in which open pages receive it."""

    id: str
    group: str
    html: str


class _News(Struct, frozen=True):
    """A changed session as JSON, in two versions: for visitors with write access, and others."""

    project: str
    steered: bytes
    seen: bytes

    def of(self, role: Role) -> bytes:
        """Return the JSON for a visitor with this role, who may see the session."""
        return self.steered if role >= Role.WRITE else self.seen


def page_routes(
    everything: Views,
    access: Access,
    watchers: Watchers,
    health: Callable[[], Health],
    keyboard: TerminalInput,
) -> Router:
    """Return the routes of the pages.

    `everything` is the `Views` without a visitor; its `seen_by` reads what a visitor may see.
    """
    render = templates()
    page = partial(get, guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)

    def seen(request: _Request) -> Views:
        return everything.seen_by(access.reach(request.user))

    def changed(card: Card, *, steers: bool) -> bytes:
        # For all visitors: page.js adds their own token.
        html = render("card.html", card=card, steers=lambda _: steers, csrf="", key=form_key())
        return msgspec.json.encode(_Changed(card.row.id, card.group, html))

    def changes(ids: frozenset[str]) -> list[_News]:
        return [
            _News(card.row.project, changed(card, steers=True), changed(card, steers=False))
            for card in everything.cards(ids)
        ]

    @page("/", opt=anywhere(Role.READ))
    def board(
        request: _Request,
        views: AllViews,
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
            pages=navigation(views.reach),
            board=views.board(chosen),
            choices=views.choices(),
            statuses=[str(status) for group in GROUPS for status in group.statuses],
            health=health(),
            notices=views.notices(),
            projects=views.projects(),
            steers=lambda project: views.reach.role(project) >= Role.WRITE,
            starts=[one for one in views.projects() if views.reach.role(one) >= Role.WRITE],
            may_freeze=views.freezes.may_change,
            login=request.user.login,
            csrf=access.csrf_token(request),
            key=form_key(),
        )

    @page("/api", opt=anywhere(Role.READ))
    def api_page(views: AllViews) -> str:
        described = msgspec.json.decode(document())
        return render("api.html", pages=navigation(views.reach), document=described)

    @get("/events", guards=[access.guard], opt=anywhere(Role.READ), sync_to_thread=False)
    def events(request: _Request) -> ServerSentEvent:
        return ServerSentEvent(stream(LiveReach(access, request)))

    feed = PageFeed(watchers, changes)

    async def stream(live: LiveReach) -> AsyncIterator[ServerSentEventMessage]:
        async with aclosing(feed.follow()) as news:
            async for messages in news:
                role = await live.roles()
                if role is None:
                    return
                if not messages:
                    yield ServerSentEventMessage(comment="alive", data=None)
                for message in messages:
                    theirs = [one.of(role(one.project)) for one in message if role(one.project)]
                    if theirs:
                        data = b"[" + b",".join(theirs) + b"]"
                        yield ServerSentEventMessage(event="sessions", data=data)

    return Router(
        "/",
        route_handlers=[
            *(board, api_page, events),
            overview_routes(access),
            session_routes(access, keyboard),
            keys_route(access, keyboard),
            form_routes(access),
            account_routes(access),
        ],
        dependencies={"views": Provide(seen, sync_to_thread=False)},
        exception_handlers={HTTPException: as_page, Exception: as_page},
    )


def as_page(request: Request[Any, Any, State], problem: Exception) -> Response[str]:
    """Return an error page, which says what is wrong and what to do about it.

    For 401, redirects to the sign-in, unless the request is for the stream of events.
    """
    error = problem if isinstance(problem, HTTPException) else InternalServerException(FAILED)
    if error.status_code == 401 and request.url.path != "/events":
        return Redirect(sign_in_url(_page_of(request)), status_code=303)
    title, remedy = _ERRORS.get(error.status_code, ("Error", ""))
    what = _NO_PAGE if error.detail == HTTPStatus.NOT_FOUND.phrase else error.detail
    text = f"{what.rstrip('.')}. {remedy_of(error) or remedy}"
    html = templates()("message.html", title=title, text=text)
    return Response(
        html, status_code=error.status_code, media_type=MediaType.HTML, headers=error.headers
    )


def sign_in_url(page: str, path: str = "/login") -> str:
    """Return the address of the sign-in, from which the browser is sent on to `page`.

    `page` is a path, with or without a query.
    """
    return f"{path}?{urlencode({'next': page})}" if page not in ("", "/") else path


def _page_of(request: Request[Any, Any, State]) -> str:
    """Return the path and query of a browser's request for a page; empty for other requests."""
    opens = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{request.url.path}{query}" if opens else ""


#: Replaces Litestar's words for an address without a route.
_NO_PAGE: Final = "There is no page at this address"
#: The title and the remedy of an error page, by status.
_ERRORS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("Request not accepted", ""),
    403: ("Access denied", ""),
    404: ("Page not found", "The sessions page lists all sessions."),
    405: ("Error", "Go back and use the buttons on the page."),
    409: ("Request not accepted", "Reload the page and submit the form again."),
    429: ("Too many requests", "Wait a minute and try again."),
    500: ("Server error", "See the server's log for details."),
    503: ("Try again later", "Wait a minute and reload the page."),
}
