"""The handler of the event stream."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

import msgspec
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromQuery, HeaderParameter, QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage

from bot.show.session_detail import LAST_EVENT, HistoryEntry
from bot.web.api.operations import read
from bot.web.event_feed import EventFeed

_STREAM = {
    200: ResponseSpec(
        str,
        generate_examples=False,
        description="Server-sent events. The `data` of each is a HistoryEntry, its `id` the"
        " entry's.",
        media_type="text/event-stream",
    )
}


@read("/events", "events", responses=_STREAM, media_type="text/event-stream")
async def follow_events(
    feed: NamedDependency[EventFeed],
    session: FromQuery[str] = "",
    project: FromQuery[str] = "",
    after: Annotated[
        int | None,
        QueryParameter(
            gt=-1, le=LAST_EVENT, description="As Last-Event-ID, for clients that cannot set it."
        ),
    ] = None,
    last_event_id: Annotated[
        int | None,
        HeaderParameter(
            name="Last-Event-ID",
            gt=-1,
            le=LAST_EVENT,
            description="Resume after this event; without it, from now on. Browsers send it when"
            " they reconnect.",
        ),
    ] = None,
) -> ServerSentEvent:
    """Follow what happens in all sessions, or in those of a session or project.

    Events arrive in order, each once, within a quarter of a second.
    """
    wanted = {"session": session, "project": project}
    last = after if last_event_id is None else last_event_id

    def matches(event: HistoryEntry) -> bool:
        return all(not value or getattr(event, name) == value for name, value in wanted.items())

    async def messages() -> AsyncIterator[ServerSentEventMessage]:
        async with aclosing(feed.follow(last)) as batches:
            async for events in batches:
                if not events:
                    yield ServerSentEventMessage(comment="alive", data=None)
                for event in filter(matches, events):
                    data = msgspec.json.encode(event)
                    yield ServerSentEventMessage(id=str(event.id), data=data)

    return ServerSentEvent(messages())
