"""githubkit, tamed: one pool of connections, an end to every answer, and no will of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import httpx
from githubkit import UnauthAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.core import GitHubCore
from githubkit.response import Response

POOL = httpx.Limits(max_connections=32, max_keepalive_connections=16, keepalive_expiry=60.0)


class HttpClient(GitHubCore[UnauthAuthStrategy]):
    """A client that repeats nothing, follows nothing, remembers nothing and never waits.

    It holds no credentials: they go with each call (`calls.py`), so that none can be sent along
    to another host. githubkit would open a new pool for each call outside a `with`, whose context
    does not reach other threads; here one pool lives as long as the client.
    """

    def __init__(self, api_url: str, timeout_seconds: float) -> None:
        super().__init__(
            UnauthAuthStrategy(),
            base_url=api_url,
            user_agent="mergewright",
            timeout=timeout_seconds,
            follow_redirects=False,
            http_cache=False,
            auto_retry=False,
            # The default one is shared by all clients of the process and does not know hosts apart.
            cache_strategy=MemCacheStrategy(),
            event_hooks={"response": [self._bound]},
        )
        self._seconds = timeout_seconds
        self._http = self._create_sync_client()

    @contextmanager
    def get_sync_client(self) -> Iterator[httpx.Client]:
        """The one client, for all threads."""
        yield self._http

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def _get_client_defaults(self) -> dict[str, Any]:
        return {**super()._get_client_defaults(), "limits": POOL}

    def _check_rate_limit(self, response: Response[Any]) -> None:
        """Nothing: `answers.py` does this, and can read what servers in between send."""

    def _bound(self, response: httpx.Response) -> None:
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = DeadlineStream(response.stream, self._seconds)


class DeadlineStream(httpx.SyncByteStream):
    """A body that must have come whole in time: httpx's own limit is for each piece alone."""

    def __init__(self, stream: httpx.SyncByteStream, seconds: float) -> None:
        self._stream = stream
        self._until = monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        """The pieces, until the time is up."""
        for piece in self._stream:
            if monotonic() > self._until:
                raise httpx.ReadTimeout("The answer did not end in time.")
            yield piece

    def close(self) -> None:
        """Give the connection back."""
        self._stream.close()
