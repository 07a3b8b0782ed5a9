"""The page: what every session is, why, what happened to it, and what can be asked of it."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.exceptions import HTTPException, InternalServerException
from litestar.middleware.rate_limit import RateLimitConfig
from litestar.params import FromPath, FromQuery, URLEncodedBody
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage
from markupsafe import Markup, escape
from msgspec import Struct

from bot.web.access import COOKIE, Access, remedy_of
from bot.web.api import LAST_MESSAGE
from bot.web.forms import buttons, choices, form_key, form_routes, sayings
from bot.web.groups import GROUPS, group_of, sort_key, tone
from bot.web.health import Health
from bot.web.live import Watchers
from bot.web.views import Views

_LOGINS_A_MINUTE = 20
_MESSAGES = 200  #: Of a transcript, on a page of it.

_Request = Request[object, object, State]


class _Login(Struct, frozen=True):
    token: str = ""


class _Changed(Struct, frozen=True):
    """What a page is told of a changed session."""

    id: str
    group: str
    html: str


def page_routes(
    views: Views, access: Access, watchers: Watchers, health: Callable[[], Health]
) -> Router:
    """Make the routes for people."""
    render = _templates()

    def changes(ids: Iterable[str]) -> bytes:
        return msgspec.json.encode(
            [
                _Changed(row.id, group_of(row), render("row.html", row=row))
                for row in views.rows(ids)
            ]
        )

    @get("/", guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)
    def board(request: _Request) -> str:
        rows = views.all_rows()
        groups = [(group, [row for row in rows if group_of(row) == group.key]) for group in GROUPS]
        return render(
            "board.html",
            groups=groups,
            health=health(),
            standing=views.standing(),
            word=access.form_word(request),
        )

    @get(
        "/sessions/{id:str}", guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True
    )
    def session_page(request: _Request, id: FromPath[str]) -> str:
        detail = views.detail(id)
        return render(
            "session.html",
            detail=detail,
            buttons=buttons(detail),
            sayings=sayings(detail.session),
            choices=choices(detail.session),
            warn=views.policies.of(detail.session.project).budget_warning,
            standing=views.standing(),
            word=access.form_word(request),
            key=form_key(),
        )

    @get(
        "/sessions/{id:str}/transcript",
        guards=[access.guard],
        media_type=MediaType.HTML,
        sync_to_thread=True,
    )
    def transcript_page(
        id: FromPath[str], run: FromQuery[int] = 0, first: FromQuery[int] = -1
    ) -> str:
        row = views.row(id)
        begins, said = (
            views.last_said(id, run, _MESSAGES)
            if first < 0
            else (first, views.transcript(id, run, min(first, LAST_MESSAGE), _MESSAGES))
        )
        return render(
            "transcript.html",
            row=row,
            run=run or row.run,
            first=begins,
            said=said,
            earlier=max(0, begins - _MESSAGES) if begins else None,
            later=begins + _MESSAGES if first >= 0 and len(said) == _MESSAGES else None,
        )

    @get("/agents", guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)
    def agents() -> str:
        return render("agents.html", agents=views.agents())

    @get("/login", media_type=MediaType.HTML, sync_to_thread=False)
    def login_page() -> str:
        access.check_configured()
        return render("login.html", wrong=False)

    # Each visitor may try a few tokens a minute; a long random token then outlives any guessing.
    throttle = RateLimitConfig(rate_limit=("minute", _LOGINS_A_MINUTE)).middleware

    @post("/login", middleware=[throttle], sync_to_thread=False)
    def login(request: _Request, data: URLEncodedBody[_Login]) -> Response[str]:
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

    @get("/events", guards=[access.guard], sync_to_thread=False)
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

    return Router(
        "/",
        route_handlers=[
            *(board, session_page, transcript_page, agents, login_page, login, logout, events),
            *form_routes(views, access),
        ],
        exception_handlers={HTTPException: as_page, Exception: _failed},
    )


def as_page(request: _Request, problem: HTTPException) -> Response[str]:
    """A problem for people: what is wrong, and what to do about it."""
    if problem.status_code == 401 and request.url.path != "/events":
        return Redirect("/login", status_code=303)
    remedy = remedy_of(problem) or _REMEDIES.get(problem.status_code, "")
    said = f"{problem.detail.rstrip('.')}. {remedy}"
    html = _templates()("message.html", title="That did not work", text=said)
    return Response(
        html,
        status_code=problem.status_code,
        media_type=MediaType.HTML,
        headers=problem.headers,
    )


def _failed(request: _Request, _: Exception) -> Response[str]:
    return as_page(request, InternalServerException("The server failed at this."))


_REMEDIES: Final[Mapping[int, str]] = {
    404: "All sessions there are stand on the first page.",
    405: "Go back, and use what stands on the page.",
    429: "Wait for a minute.",
    500: "The server's log says more.",
}


_CODE = re.compile("`([^`]+)`")


@cache
def _templates() -> Callable[..., str]:
    """What renders a template by its name; everything in it is escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(time=_time, tone=tone, sort_key=sort_key)
    environment.filters.update(sentence=_sentence, counted=_counted)

    def render(name: str, **values: object) -> str:
        return environment.get_template(name).render(values)

    return render


def _time(at: datetime) -> Markup:
    """A moment; the browser shows how long ago it was, and keeps that true."""
    shown = Markup('<time datetime="{}">{}</time>')
    return shown.format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC"))


def _sentence(text: str) -> Markup:
    """Evidence as a sentence of its own; names and identifiers keep their first letter.

    What stands in backticks, for comments on GitHub, is shown as code here too.
    """
    word = text.partition(" ")[0]
    named = ":" in word[:-1] or any(map(str.isdigit, word))  # Such as a commit.
    said = text if named else text[:1].upper() + text[1:]
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(said))))  # noqa: S704 - it was escaped


def _counted(count: int, noun: str) -> str:
    """So many of something."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
