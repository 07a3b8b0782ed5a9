"""Handlers of the streams of server-sent events: the history, and the output of a run."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Final

import msgspec
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromQuery, HeaderParameter, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage
from msgspec import Meta, Struct

from bot.show.run_log import LogPage
from bot.show.session_detail import LAST_EVENT, HistoryEntry
from bot.web.access import LiveReach
from bot.web.api.operations import MOST_ITEMS, AllViews, RunNumber, SessionPath, read
from bot.web.event_feed import EventFeed
from bot.web.live import PULSE_SECONDS, Watchers
from bot.web.visitor import anywhere, in_session
from lifecycle.model.roles import Role

_MEDIA_TYPE: Final = "text/event-stream"
_LAST_EVENT_ID: Final = "Last-Event-ID"
_AS_LAST_EVENT_ID: Final = f"The same as {_LAST_EVENT_ID}, for clients that cannot set headers."
#: The interval at which the output of a run is read.
_LOG_SECONDS = 0.5
#: The pattern of a run's number and a byte offset in its output.
_LOG_PLACE: Final = "[0-9]{1,9}:[0-9]{1,15}"


class StreamEvent(Struct, frozen=True, kw_only=True):
    """One server-sent event, by its fields."""

    id: Annotated[str, Meta(description="Send it as Last-Event-ID to resume after this event.")]
    data: Annotated[str, Meta(description="JSON, of the type that the route names.")]


def _stream(data: type[Struct]) -> dict[int, ResponseSpec]:
    says = f"Server-sent events. The `data` of each is a {data.__name__} as JSON."
    return {
        200: ResponseSpec(
            StreamEvent, generate_examples=False, description=says, media_type=_MEDIA_TYPE
        )
    }


@read(
    "/events",
    "events",
    anywhere(Role.READ),
    responses=_stream(HistoryEntry),
    media_type=_MEDIA_TYPE,
)
async def follow_events(
    feed: NamedDependency[EventFeed],
    live: NamedDependency[LiveReach],
    session: FromQuery[str] = "",
    project: FromQuery[str] = "",
    after: Annotated[
        int | None, QueryParameter(gt=-1, le=LAST_EVENT, description=_AS_LAST_EVENT_ID)
    ] = None,
    last_event_id: Annotated[
        int | None,
        HeaderParameter(
            name=_LAST_EVENT_ID,
            gt=-1,
            le=LAST_EVENT,
            description="Resume after this event; without it, from now on. Browsers send it when"
            " they reconnect.",
        ),
    ] = None,
) -> ServerSentEvent:
    """Follow what happens in all sessions, in those of a project, or in one session.

    Events arrive in order, each once, within a quarter of a second. The `id` of each event is the
    `id` of its entry in the history.
    """
    wanted = {"session": session, "project": project}
    last = after if last_event_id is None else last_event_id

    def matches(event: HistoryEntry) -> bool:
        return all(not value or getattr(event, name) == value for name, value in wanted.items())

    async def messages() -> AsyncIterator[ServerSentEventMessage]:
        async with aclosing(feed.follow(last)) as batches:
            async for events in batches:
                role = await live.roles()
                if role is None:
                    return
                if not events:
                    yield _ALIVE
                for event in filter(matches, events):
                    if role(event.project):
                        yield _message(event.id, event)

    return ServerSentEvent(messages())


@read(
    "/sessions/{id:str}/log/stream",
    "sessions",
    in_session(Role.READ),
    responses=_stream(LogPage),
    media_type=_MEDIA_TYPE,
)
async def follow_log(
    views: AllViews,
    watchers: NamedDependency[Watchers],
    live: NamedDependency[LiveReach],
    id: SessionPath,
    run: RunNumber = 0,
    after: Annotated[
        str | None, QueryParameter(pattern=f"^{_LOG_PLACE}$", description=_AS_LAST_EVENT_ID)
    ] = None,
    last_event_id: Annotated[
        str,
        HeaderParameter(
            name=_LAST_EVENT_ID,
            pattern=f"^({_LOG_PLACE})?$",
            description="Resume after this event; without it, with the last lines. Browsers send it"
            " when they reconnect.",
        ),
    ] = "",
) -> ServerSentEvent:
    """Follow the lines that a run's program prints.

    Lines arrive within a second. Each event has a page of lines as its `data`, and `RUN:CURSOR` as
    its `id`, where CURSOR is the page's `cursor`. The stream ends after a page whose `ended` is
    true; the next run's output is another stream.
    """
    begun, _, start = (last_event_id or after or "").partition(":")
    number, place = (int(begun), int(start)) if start else (run, None)
    first = await asyncio.to_thread(views.log, id, number, place, MOST_ITEMS)

    async def messages() -> AsyncIterator[ServerSentEventMessage]:
        async with aclosing(_pages(views, watchers, id, first)) as pages:
            async for page in pages:
                if await live.roles() is None:
                    return
                yield _message(f"{page.run}:{page.cursor}", page) if page else _ALIVE

    return ServerSentEvent(messages())


async def _pages(
    views: AllViews, watchers: Watchers, id: str, page: LogPage
) -> AsyncGenerator[LogPage | None, None]:
    """Yield `page` and the pages after it; None as a keepalive.

    Ends after the last page of an ended run, when the session is deleted, or when the server stops.
    """
    now = asyncio.get_running_loop().time
    yield page
    sent = now()
    with suppress(NotFoundException):  # The session has been deleted meanwhile.
        async with aclosing(watchers.watch(_LOG_SECONDS)) as pulses:
            async for _ in pulses:
                grows = True
                while grows and not page.ended:
                    page = await asyncio.to_thread(views.log, id, page.run, page.cursor, MOST_ITEMS)
                    grows = page.more and bool(page.lines)
                    if page.lines or page.ended:
                        yield page
                        sent = now()
                if page.ended:
                    return
                if now() - sent >= PULSE_SECONDS:
                    yield None
                    sent = now()


_ALIVE: Final = ServerSentEventMessage(comment="alive", data=None)


def _message(id: object, data: Struct) -> ServerSentEventMessage:
    return ServerSentEventMessage(id=str(id), data=msgspec.json.encode(data))
