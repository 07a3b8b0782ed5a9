"""Who is watching: tells every open page which sessions changed, without ever waiting for one."""

import asyncio
from collections.abc import AsyncGenerator

#: Changes of this long are told together; a sweep over many sessions is one message.
_GATHER_SECONDS = 0.1
#: A sign of life, so that proxies keep the stream and a dead browser is noticed.
_PULSE_SECONDS = 15.0


class Watchers:
    """The open streams of one server. Lives on the server's event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams: set[_Stream] = set()
        self._closed = False

    def open(self) -> None:
        """Bind to the running event loop, before the first request."""
        self._loop = asyncio.get_running_loop()

    def changed(self, session: str) -> None:
        """Say that a session changed. From any thread; returns at once."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, session)

    def close(self) -> None:
        """End all streams, and those to come. From any thread.

        A server that waits for its connections to end would otherwise wait for ever.
        """
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    async def watch(self) -> AsyncGenerator[frozenset[str], None]:
        """Yield the ids of changed sessions as they change; an empty set as a sign of life."""
        stream = _Stream()
        self._streams.add(stream)
        try:
            yield frozenset()  # the first bytes tell the browser that it is connected
            while not self._closed:
                yield await stream.next()
        finally:
            self._streams.discard(stream)

    def _tell(self, session: str) -> None:
        for stream in self._streams:
            stream.add(session)

    def _wake(self) -> None:
        for stream in self._streams:
            stream.woken.set()


class _Stream:
    """What one page has not been told yet: a set, so that a slow page costs no more memory."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self._ids: set[str] = set()

    def add(self, session: str) -> None:
        self._ids.add(session)
        self.woken.set()

    async def next(self) -> frozenset[str]:
        try:
            async with asyncio.timeout(_PULSE_SECONDS):
                await self.woken.wait()
            await asyncio.sleep(_GATHER_SECONDS)
        except TimeoutError:
            pass
        ids, self._ids = frozenset(self._ids), set()
        self.woken.clear()
        return ids
