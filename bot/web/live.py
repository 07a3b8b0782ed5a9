"""Tells open event streams and waiting requests which sessions have changed."""

import asyncio
from collections.abc import AsyncGenerator

#: Changes within this time become one message, such as the changes of one sweep.
_GATHER_SECONDS = 0.05
#: Keepalive interval, so that proxies keep the stream and closed browsers are noticed.
PULSE_SECONDS = 15.0


class Watchers:
    """The open event streams of one server. Other threads may call only the thread-safe methods."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams: set[_Stream] = set()
        self._closed = False

    def open(self) -> None:
        """Bind to the running event loop, before the first request."""
        self._loop = asyncio.get_running_loop()

    def changed(self, session: str) -> None:
        """Report a changed session. Thread-safe; returns at once."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, session)

    def close(self) -> None:
        """End all streams, including those opened later. Thread-safe.

        Without this, the server would never stop, because it waits until its connections end.
        """
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    async def watch(self, pulse: float = PULSE_SECONDS) -> AsyncGenerator[frozenset[str], None]:
        """Yield the IDs of changed sessions.

        The set is empty at first, and whenever nothing has changed for `pulse` seconds. Ends when
        the server stops.
        """
        stream = _Stream()
        self._streams.add(stream)
        try:
            yield frozenset()  # The first bytes let browsers show that they are connected.
            while not self._closed:
                yield await stream.next(pulse)
        finally:
            self._streams.discard(stream)

    def _tell(self, session: str) -> None:
        for stream in self._streams:
            stream.add(session)

    def _wake(self) -> None:
        for stream in self._streams:
            stream.woken.set()


class _Stream:
    """The changed sessions that one client has not received yet.

    They are a set, so that repeated changes of a session take no more memory.
    """

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self._ids: set[str] = set()

    def add(self, session: str) -> None:
        self._ids.add(session)
        self.woken.set()

    async def next(self, pulse: float) -> frozenset[str]:
        try:
            async with asyncio.timeout(pulse):
                await self.woken.wait()
            await asyncio.sleep(_GATHER_SECONDS)
        except TimeoutError:
            pass
        ids, self._ids = frozenset(self._ids), set()
        self.woken.clear()
        return ids
