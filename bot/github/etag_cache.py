"""Caches responses by ETag: an unchanged one does not count against the rate limit.

https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from msgspec import Struct

#: The least recently used response is dropped first.
_CACHE_SIZE = 500


class CachedResponse(Struct, frozen=True, kw_only=True):
    """A response's body."""

    content: bytes
    more: bool  #: Whether another page follows.
    etag: str  #: Empty if GitHub sent none.


class EtagCache:
    """Responses by URL. Thread-safe.

    A response is cached only after the caller has recorded its effects. If it were cached earlier,
    a crash in between would lose it, because GitHub would answer "not modified" next time.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, CachedResponse] = OrderedDict()
        self._lock = Lock()
        self._here = local()  # What this thread has read in its `caching` block.

    @contextmanager
    def caching(self) -> Iterator[None]:
        """Cache what this thread reads inside, unless the block raises."""
        read: dict[str, CachedResponse] = {}
        self._here.read = read
        try:
            yield
        finally:
            self._here.read = None
        with self._lock:
            for url, response in read.items():
                self._known[url] = response
                self._known.move_to_end(url)
            while len(self._known) > _CACHE_SIZE:
                self._known.popitem(last=False)

    def cached(self, url: str) -> CachedResponse | None:
        """The cached response of a URL; None outside of a `caching` block."""
        return self._known.get(url) if self._reading() is not None else None

    def note(self, url: str, response: CachedResponse) -> None:
        """Note a response, to be cached at the end of the block."""
        read = self._reading()
        if read is not None and response.etag:
            read[url] = response

    def _reading(self) -> dict[str, CachedResponse] | None:
        return getattr(self._here, "read", None)
