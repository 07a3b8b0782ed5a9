"""Counts refused connections in memory, so that a program's retries cause few writes."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping

from bot.store import Destination, StoreFailure

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0  #: The pause between two writes.
_MOST = 1000  #: The most hosts recorded between two writes; further hosts are ignored.


class RefusalLog:
    """Counts the connections refused since the last write. Use it in one event loop only."""

    def __init__(self, record: Callable[[Mapping[Destination, int]], None]) -> None:
        """`record` writes the number of refusals by host. It may raise `StoreFailure`."""
        self._record = record
        self._waiting: Counter[Destination] = Counter()
        self._writes: asyncio.Task[None] | None = None

    def add(self, refused: Destination) -> None:
        """Count a refusal, which is written within about a second.

        The refusal is ignored if too many other hosts wait to be written.
        """
        if refused in self._waiting or len(self._waiting) < _MOST:
            self._waiting[refused] += 1
        if self._writes is None:
            self._writes = asyncio.create_task(self._write_all())

    async def close(self) -> None:
        """Write the refusals counted since the last write."""
        if self._writes is not None:
            self._writes.cancel()
            await asyncio.wait([self._writes])
        await self._write()

    async def _write_all(self) -> None:
        while self._waiting:
            await self._write()
            await asyncio.sleep(_PAUSE_SECONDS)
        self._writes = None

    async def _write(self) -> None:
        written, self._waiting = self._waiting, Counter()
        try:
            if written:
                await asyncio.to_thread(self._record, written)
        except StoreFailure as failure:
            _log.error("refused connections not recorded: %s", failure)
