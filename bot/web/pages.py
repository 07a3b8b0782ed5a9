"""The page and its JSON: what every session is, why, and what happened to it. Reading only."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.exceptions import HTTPException, NotFoundException
from litestar.middleware.rate_limit import RateLimitConfig
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage
from markupsafe import Markup
from msgspec import Struct

from bot.store import BadRow, Session, Store
from bot.web.access import COOKIE, Access
from bot.web.health import Health
from bot.web.live import Watchers
from bot.web.rows import GROUPS, Detail, Row, detail_of, row_of, tone

_LOGINS_A_MINUTE = 20


class Terminal(Struct, frozen=True, kw_only=True):
    """How the pages learn of a session's program; each is given the session's id."""

    attach: Callable[[str], str]  #: The command line to look at it; empty: there is none.
    log: Callable[[str], str]  #: The last lines it printed.


class _Login(Struct, frozen=True):
    token: str = ""


class _Changed(Struct, frozen=True):
    """What a page is told of a changed session."""

    id: str
    group: str
    html: str


def page_routes(
    store: Store,
    access: Access,
    watchers: Watchers,
    health: Callable[[], Health],
    terminal: Terminal,
) -> tuple[Router, Router]:
    """Make the routes for people and those for programs."""
    render = _templates()

    def detail(id: str) -> Detail:
        session = store.session(id)
        if session is None:
            raise NotFoundException(f"There is no session {id}.")
        return detail_of(
            session, store.facts(id), store.history(id), terminal.attach(id), terminal.log(id)
        )

    def changes(ids: Iterable[str]) -> bytes:
        rows = (row_of(session) for session in _readable(store, ids))
        return msgspec.json.encode(
            [_Changed(row.id, row.group, render("row.html", row=row)) for row in rows]
        )

    @get("/", guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)
    def board() -> str:
        rows = [row_of(session) for session in store.sessions()]
        groups = [(group, [row for row in rows if row.group == group.key]) for group in GROUPS]
        return render("board.html", groups=groups, health=health())

    @get(
        "/sessions/{id:str}", guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True
    )
    def session_page(id: FromPath[str]) -> str:
        return render("session.html", detail=detail(id))

    @get("/login", media_type=MediaType.HTML, sync_to_thread=False)
    def login_page() -> str:
        access.check_configured()
        return render("login.html", wrong=False)

    # Each visitor may try a few tokens a minute; a long random token then outlives any guessing.
    throttle = RateLimitConfig(rate_limit=("minute", _LOGINS_A_MINUTE)).middleware

    @post("/login", middleware=[throttle], sync_to_thread=False)
    def login(
        request: Request[object, object, State], data: URLEncodedBody[_Login]
    ) -> Response[str]:
        access.check_configured()
        if not access.opens(data.token):
            return Response(
                render("login.html", wrong=True), status_code=401, media_type=MediaType.HTML
            )
        cookie = access.cookie(secure=request.url.scheme == "https")
        return Redirect("/", status_code=303, cookies=[cookie])

    @post("/logout", sync_to_thread=False)
    def logout() -> Redirect:
        answer = Redirect("/login", status_code=303)
        answer.delete_cookie(COOKIE)
        return answer

    @get("/api/sessions", sync_to_thread=True)
    def api_sessions() -> list[Row]:
        return [row_of(session) for session in store.sessions()]

    @get("/api/sessions/{id:str}", sync_to_thread=True)
    def api_session(id: FromPath[str]) -> Detail:
        return detail(id)

    @get("/events", sync_to_thread=False)
    def events() -> ServerSentEvent:
        return ServerSentEvent(stream())

    async def stream() -> AsyncIterator[ServerSentEventMessage]:
        async with aclosing(watchers.watch()) as news:
            async for ids in news:
                if ids:
                    data = await asyncio.to_thread(changes, ids)
                    yield ServerSentEventMessage(event="sessions", data=data)
                else:
                    yield ServerSentEventMessage(comment="alive", data=None)

    def as_page(_: Request[object, object, State], problem: HTTPException) -> Response[str]:
        if problem.status_code == 401:
            return Redirect("/login", status_code=303)
        html = render("message.html", title="That did not work", text=problem.detail)
        return Response(html, status_code=problem.status_code, media_type=MediaType.HTML)

    people = Router(
        "/",
        route_handlers=[board, session_page, login_page, login, logout],
        exception_handlers={HTTPException: as_page},
    )
    programs = Router(
        "/", route_handlers=[api_sessions, api_session, events], guards=[access.guard]
    )
    return people, programs


def _templates() -> Callable[..., str]:
    """What renders a template by its name; everything in it is escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(time=_time, tone=tone)
    environment.filters["sentence"] = _sentence

    def render(name: str, **values: object) -> str:
        return environment.get_template(name).render(values)

    return render


def _time(at: datetime) -> Markup:
    """A moment; the browser shows how long ago it was, and keeps that true."""
    shown = Markup('<time datetime="{}">{}</time>')
    return shown.format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC"))


def _sentence(text: str) -> str:
    """Evidence as a sentence of its own; names and identifiers keep their first letter."""
    return text[:1].upper() + text[1:]


def _readable(store: Store, ids: Iterable[str]) -> Iterable[Session]:
    for name in sorted(ids):
        try:
            session = store.session(name)
        except BadRow:
            continue  # the store has logged it; the list leaves it out too
        if session is not None:
            yield session
