"""The HTML pages: the board, a session, its transcript, the agents and the sign-in."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import MediaType, Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.exceptions import HTTPException, InternalServerException
from litestar.params import FromPath, FromQuery, URLEncodedBody
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage
from markupsafe import Markup, escape
from msgspec import Struct

from bot.show.session_summary import SessionSummary
from bot.text import page_text
from bot.web.access import COOKIE, FAILED, Access, remedy_of
from bot.web.api.router import document
from bot.web.forms import MAX_FORM_BYTES, buttons, choices, form_key, form_routes, message_buttons
from bot.web.health import Health
from bot.web.live import Watchers
from bot.web.page_feed import PageFeed
from bot.web.views import LAST_MESSAGE, Views
from lifecycle.model.status import Status

_MESSAGES = 200  #: Messages on one page of a transcript.

_Request = Request[object, object, State]


class _Login(Struct, frozen=True):
    token: str = ""


class _Changed(Struct, frozen=True):
    """A changed session, as sent to open pages."""

    id: str
    group: str
    html: str


class StatusGroup(Struct, frozen=True):
    """Statuses shown together on the board."""

    key: str
    title: str
    statuses: Mapping[Status, str]  #: Each with its CSS class.


#: The groups of the board; those that need a person come first.
GROUPS = (
    StatusGroup(
        "people",
        "Needs a person",
        {Status.NEEDS_INPUT: "warn", Status.STUCK: "bad", Status.PAUSED: "warn"},
    ),
    StatusGroup(
        "review",
        "In review",
        {
            Status.CI_FAILED: "bad",
            Status.CHANGES_REQUESTED: "warn",
            Status.MERGEABLE: "good",
            Status.APPROVED: "good",
            Status.REVIEW_PENDING: "busy",
            Status.PR_OPEN: "busy",
        },
    ),
    StatusGroup(
        "work", "Working", {Status.WORKING: "busy", Status.SPAWNING: "busy", Status.QUEUED: "calm"}
    ),
    StatusGroup(
        "over",
        "Finished",
        {
            Status.CLEANUP: "calm",
            Status.MERGED: "landed",
            Status.DONE: "landed",
            Status.ERRORED: "bad",
            Status.KILLED: "calm",
            Status.TERMINATED: "calm",
        },
    ),
)
_GROUP_OF: Mapping[str, StatusGroup] = {
    status: group for group in GROUPS for status in group.statuses
}


def tone(status: str) -> str:
    """The CSS class of a status."""
    return _GROUP_OF[status].statuses[Status(status)]


def group_of(row: SessionSummary) -> str:
    """The key of the group that a session belongs to."""
    return GROUPS[0].key if row.needs_person else _GROUP_OF[row.status].key


def sort_key(row: SessionSummary) -> str:
    """Return the key by which page.js sorts sessions; newer sessions have greater keys."""
    return f"{row.created.timestamp():017.6f} {row.id}"


def page_routes(
    views: Views,
    access: Access,
    watchers: Watchers,
    health: Callable[[], Health],
    *,
    https: bool,
) -> Router:
    """Return the routes of the pages. `https`: whether people reach them by HTTPS only."""
    render = _templates()
    page = partial(get, guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)

    def changes(ids: frozenset[str]) -> bytes:
        return msgspec.json.encode(
            [
                _Changed(row.id, group_of(row), render("row.html", row=row))
                for row in views.rows(ids)
            ]
        )

    @page("/")
    def board(request: _Request) -> str:
        rows = views.all_rows()
        groups = [(group, [row for row in rows if group_of(row) == group.key]) for group in GROUPS]
        shown = {"health": health(), "notices": views.notices(), "projects": views.projects()}
        return render("board.html", groups=groups, **shown, csrf=access.csrf_token(request))

    @page("/sessions/{id:str}")
    def session_page(request: _Request, id: FromPath[str]) -> str:
        detail = views.detail(id)
        return render(
            "session.html",
            detail=detail,
            buttons=buttons(detail),
            message_buttons=message_buttons(detail.session),
            choices=choices(detail.session),
            warn=views.policy_of(detail.session.project).budget_warning,
            notices=views.notices(),
            csrf=access.csrf_token(request),
            key=form_key(),
        )

    @page("/sessions/{id:str}/transcript")
    def transcript_page(
        id: FromPath[str], run: FromQuery[int] = 0, first: FromQuery[int] = -1
    ) -> str:
        row = views.row(id)
        begins, messages = (
            views.last_messages(id, run, _MESSAGES)
            if first < 0
            else (first, views.transcript(id, run, min(first, LAST_MESSAGE), _MESSAGES))
        )
        return render(
            "transcript.html",
            row=row,
            run=run or row.run,
            first=begins,
            messages=messages,
            earlier=max(0, begins - _MESSAGES) if begins else None,
            later=begins + _MESSAGES if first >= 0 and len(messages) == _MESSAGES else None,
        )

    @page("/agents")
    def agents() -> str:
        return render("agents.html", agents=views.agents())

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
        # A proxy in front that ends TLS may say so; a lie can only keep the cookie off plain HTTP.
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
            *(board, session_page, transcript_page, agents, api_page, events),
            *(login_page, login, logout),
            form_routes(views, access),
        ],
        exception_handlers={HTTPException: as_page, Exception: as_page},
    )


def as_page(request: _Request, problem: Exception) -> Response[str]:
    """Return an error page: what is wrong and what to do about it."""
    error = problem if isinstance(problem, HTTPException) else InternalServerException(FAILED)
    if error.status_code == 401 and request.url.path != "/events":
        return Redirect("/login", status_code=303)
    title, remedy = _ERRORS.get(error.status_code, ("Error", ""))
    text = f"{error.detail.rstrip('.')}. {remedy_of(error) or remedy}"
    html = _templates()("message.html", title=title, text=text)
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
_CODE = re.compile("`([^`]+)`")


@cache
def _templates() -> Callable[..., str]:
    """Return a function that renders a template by its name, with everything escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(time=_time, tone=tone, sort_key=sort_key)
    environment.filters.update(
        sentence=_sentence, marked=_marked, counted=_counted, words=page_text.status_words
    )

    def render(name: str, **values: object) -> str:
        return environment.get_template(name).render(values)

    return render


def _time(at: datetime) -> Markup:
    """A time element; page.js replaces its text by the age and keeps it up to date."""
    shown = Markup('<time datetime="{}">{}</time>')
    return shown.format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC"))


def _sentence(text: str) -> Markup:
    """A phrase as a sentence."""
    return _marked(page_text.sentence(text))


def _marked(text: str) -> Markup:
    """A text in which backticks become code, as in comments on GitHub."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it was escaped


def _counted(count: int, noun: str) -> str:
    """A count with its noun in singular or plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
