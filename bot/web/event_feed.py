"""The event stream of the API: the history of all sessions, read once for all its clients."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

from bot.show.session_detail import HistoryEntry
from bot.store import StoreFailure
from bot.web.live import PULSE_SECONDS, Watchers

_log = logging.getLogger(__name__)

#: Events that are kept for slow clients, who read older ones from the store.
_KEPT = 2000
_BATCH = 500
#: How often the history is read without a notice: of changes by other processes there is none.
_POLL_SECONDS = 0.2


class EventFeed:
    """The newest events, shared by all clients. Lives on the server's event loop.

    Events are read while there are clients, and once for all of them; a client keeps no queue but
    the number of its last event.
    """

    def __init__(
        self,
        watchers: Watchers,
        after: Callable[[int, int], Sequence[HistoryEntry]],
        newest: Callable[[], int],
    ) -> None:
        """`after` reads events after a number, at most so many; `newest` is the last number."""
        self._watchers = watchers
        self._after = after
        self._newest = newest
        self._clients = 0
        self._reading: asyncio.Task[None] | None = None
        self._recent: deque[HistoryEntry] = deque(maxlen=_KEPT)
        self._before = 0  #: The number of the last event that is too old to be kept.
        self._grown = asyncio.Event()

    async def follow(self, last: int | None) -> AsyncGenerator[Sequence[HistoryEntry], None]:
        """Yield the events after number `last`, or from now on; empty as a keepalive.

        Ends when the server stops.
        """
        self._clients += 1
        try:
            latest = await asyncio.to_thread(self._newest)
            if self._reading is None:
                self._recent.clear()
                self._before = latest
                self._reading = asyncio.create_task(self._read(latest))
            place = latest if last is None else last
            yield ()  # The first bytes show that it is connected.
            while self._reading is not None and not self._reading.done():
                grown = self._grown
                if events := await self._next(place):
                    place = events[-1].id
                    yield events
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(PULSE_SECONDS):
                        await grown.wait()
                        continue
                yield ()
        finally:
            self._clients -= 1
            if not self._clients and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _next(self, place: int) -> Sequence[HistoryEntry]:
        if place < self._before:
            return await asyncio.to_thread(self._after, place, _BATCH)
        newer = []
        for event in reversed(self._recent):
            if event.id <= place:
                break
            newer.append(event)
        return newer[::-1]

    async def _read(self, last: int) -> None:
        """Read what is new at each change, until nobody follows or the server stops."""
        try:
            async with aclosing(self._watchers.watch(_POLL_SECONDS)) as changes:
                async for _ in changes:
                    try:
                        events = await asyncio.to_thread(self._after, last, _BATCH)
                    except StoreFailure:
                        _log.exception("the history cannot be read")
                        continue
                    if events:
                        last = events[-1].id
                        self._add(events)
        finally:
            self._wake()

    def _add(self, events: Sequence[HistoryEntry]) -> None:
        for event in events:
            if len(self._recent) == _KEPT:
                self._before = self._recent[0].id
            self._recent.append(event)
        self._wake()

    def _wake(self) -> None:
        """Wake all clients once."""
        self._grown.set()
        self._grown = asyncio.Event()
