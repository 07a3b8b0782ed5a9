"""The stream of changed sessions, rendered once for all open pages."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeVar

from bot.web.feed import Feed
from bot.web.live import Watchers

T = TypeVar("T")

#: How many messages are kept for slow pages. A page that is further behind connects again and
#: reloads.
_KEPT = 50


class PageFeed(Feed[T]):
    """Messages for open pages, each with the sessions that changed since the previous one."""

    def __init__(self, watchers: Watchers, render: Callable[[frozenset[str]], T]) -> None:
        """`render` takes the IDs of changed sessions and returns the message about them."""
        super().__init__(_KEPT)
        self._watchers = watchers
        self._render = render
        self._sent = 0

    async def _begin(self) -> int:
        return self._sent

    async def _older(self, place: int) -> None:
        return None

    async def _read(self, last: int) -> None:
        async with aclosing(self._watchers.watch()) as changes:
            async for ids in changes:
                if ids:
                    message = await asyncio.to_thread(self._render, ids)
                    self._sent += 1
                    self._add([(self._sent, message)])
