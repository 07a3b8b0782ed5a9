"""The event stream of the API: the history of all sessions, read once for all clients."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from bot.show.session_detail import HistoryEntry
from bot.store import StoreFailure
from bot.web.feed import Feed
from bot.web.live import Watchers

_log = logging.getLogger(__name__)

#: The number of events in memory; clients that are further behind read from the store.
_KEPT = 2000
_BATCH = 500  #: The most events that are read from the store at once.
#: The history is read at least this often, because changes by other processes are not reported.
_POLL_SECONDS = 0.2


class EventFeed(Feed[HistoryEntry]):
    """The newest events of all sessions."""

    def __init__(
        self,
        watchers: Watchers,
        after: Callable[[int, int], Sequence[HistoryEntry]],
        newest: Callable[[], int],
    ) -> None:
        """`after(number, limit)` reads later events; `newest` returns the last event's number."""
        super().__init__(_KEPT)
        self._watchers = watchers
        self._after = after
        self._newest = newest

    async def _begin(self) -> int:
        return await asyncio.to_thread(self._newest)

    async def _older(self, place: int) -> Sequence[tuple[int, HistoryEntry]]:
        events = await asyncio.to_thread(self._after, place, _BATCH)
        return [(event.id, event) for event in events]

    async def _read(self, last: int) -> None:
        async with aclosing(self._watchers.watch(_POLL_SECONDS)) as changes:
            async for _ in changes:
                try:
                    events = await asyncio.to_thread(self._after, last, _BATCH)
                except StoreFailure:
                    _log.exception("the history cannot be read; streams stay open and get it later")
                    continue
                if events:
                    last = events[-1].id
                    self._add([(event.id, event) for event in events])
