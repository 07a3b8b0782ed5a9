"""What was read before: asked whether it is the same still, GitHub says so at no cost."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

from msgspec import Struct

#: So many answers are remembered; the one that was of use longest ago goes first.
_MOST = 500


class CachedResponse(Struct, frozen=True, kw_only=True):
    """What was read, as it came."""

    content: bytes
    more: bool  #: Whether it is a page of a list that goes on.
    etag: str  #: GitHub's name for exactly this; empty: it gave none.


class EtagCache:
    """Answers by what was asked. May be used from any thread.

    What is read is remembered only once what follows from it is written down: an ETag that is kept
    before would let GitHub say "nothing new" of what nobody has heard of.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, CachedResponse] = OrderedDict()
        self._lock = Lock()
        self._here = local()  # What this thread has read since it began to remember.

    @contextmanager
    def caching(self) -> Iterator[None]:
        """Remember what this thread reads in here, if the end is reached: write it down in here."""
        read: dict[str, CachedResponse] = {}
        self._here.read = read
        try:
            yield
        finally:
            self._here.read = None
        with self._lock:
            for asked, answer in read.items():
                self._known[asked] = answer
                self._known.move_to_end(asked)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

    def cached(self, asked: str) -> CachedResponse | None:
        """What was answered last, for one who remembers; None: it is to be read whole."""
        return self._known.get(asked) if self._reading() is not None else None

    def note(self, asked: str, answer: CachedResponse) -> None:
        """It was answered so."""
        read = self._reading()
        if read is not None and answer.etag:
            read[asked] = answer

    def _reading(self) -> dict[str, CachedResponse] | None:
        return getattr(self._here, "read", None)
