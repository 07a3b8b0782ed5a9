"""A stream of messages. Each message is made once and sent to all clients."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from bot.store import StoreFailure
from bot.web.live import PULSE_SECONDS

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Feed(ABC, Generic[T]):
    """The newest messages, numbered in ascending order. Use it on the server's event loop only.

    Messages are made only while there are clients. A client has no queue; only the number of the
    last message that it received is kept.
    """

    def __init__(self, kept: int) -> None:
        """`kept` is the number of messages that stay in memory for slow clients."""
        self._clients = 0
        self._reading: asyncio.Task[None] | None = None
        self._recent: deque[tuple[int, T]] = deque(maxlen=kept)
        self._before = 0  #: The number of the last message that is too old to be kept.
        self._grown = asyncio.Event()

    @abstractmethod
    async def _begin(self) -> int:
        """Return the number of the newest message."""

    @abstractmethod
    async def _read(self, last: int) -> None:
        """Add the messages after number `last`, and new ones until the server stops."""

    @abstractmethod
    async def _older(self, place: int) -> Sequence[tuple[int, T]] | None:
        """Return the next messages after number `place`, perhaps not all; None if they are lost.

        This is called only if some of these messages are no longer in memory.
        """

    async def follow(self, last: int | None = None) -> AsyncGenerator[Sequence[T], None]:
        """Yield the messages after number `last`; an empty sequence is a keepalive.

        If `last` is None, only new messages are yielded. Ends when the server stops, when `_read`
        fails, or when messages that the client has not received are lost.
        """
        self._clients += 1
        try:
            latest = await self._begin()
            if self._reading is None or self._reading.done():
                self._recent.clear()
                self._before = latest
                self._reading = asyncio.create_task(self._run(latest))
            place = latest if last is None else last
            yield ()  # The first bytes show clients that they are connected.
            while self._reading is not None and not self._reading.done():
                grown = self._grown
                messages = await self._next(place)
                if messages is None:
                    return
                if messages:
                    place = messages[-1][0]
                    yield [message for _, message in messages]
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

    async def _next(self, place: int) -> Sequence[tuple[int, T]] | None:
        if place < self._before:
            return await self._older(place)
        newer = []
        for number, message in reversed(self._recent):
            if number <= place:
                break
            newer.append((number, message))
        return newer[::-1]

    async def _run(self, last: int) -> None:
        try:
            await self._read(last)
        except StoreFailure:
            _log.exception(
                "the database cannot be read: event streams end, and their clients connect again"
            )
        finally:
            self._wake()

    def _add(self, messages: Sequence[tuple[int, T]]) -> None:
        for message in messages:
            if len(self._recent) == self._recent.maxlen:
                self._before = self._recent[0][0]
            self._recent.append(message)
        self._wake()

    def _wake(self) -> None:
        """Wake all clients once."""
        self._grown.set()
        self._grown = asyncio.Event()
