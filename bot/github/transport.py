"""Sends one HTTP request to GitHub; returns its response or raises a `GitHubFailure`.

Secrets are masked in every request body, and therefore in every posted comment. Responses are
cached by ETag: an unchanged response does not count against the rate limit.
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock, local
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec
from githubkit import UnauthAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.core import GitHubCore
from githubkit.exception import RequestError, RequestFailed, RequestTimeout
from githubkit.response import Response
from msgspec import Raw, Struct

from bot.github.errors import UNDECODABLE, Refused, TryLater, date_of, http_failure
from bot.system.clock import Clock, SteadyClock
from bot.system.metrics import GITHUB_REQUESTS

T = TypeVar("T")
_POOL = httpx.Limits(max_connections=32, max_keepalive_connections=16, keepalive_expiry=60.0)
#: If the bot's clock is behind GitHub's by more than this, it is set to GitHub's time.
_BEHIND = timedelta(seconds=60)
_MAX_REDIRECTS = 3
#: Status codes of redirects that keep the method and body.
_SAME_METHOD = (307, 308)
NOT_MODIFIED = 304
#: The most cached responses; the least recently used one is dropped first.
_CACHE_SIZE = 500


class _DeadlineStream(httpx.SyncByteStream):
    """A response body with a time limit for the whole. httpx has only a limit for each chunk."""

    def __init__(self, stream: httpx.SyncByteStream, seconds: float) -> None:
        self._stream = stream
        self._until = monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            if monotonic() > self._until:
                raise httpx.ReadTimeout("The response did not end in time.")
            yield chunk

    def close(self) -> None:
        self._stream.close()


class GitHubRequest(Struct, frozen=True):
    """A request. Its URL is absolute, or relative to the API's."""

    method: str
    url: str
    params: Mapping[str, str] | None = None
    body: object = None
    stream: bool = False
    name: str = ""  #: Shown in messages in place of method and URL.
    etag: str = ""  #: The cached response's ETag; if empty, none is cached.

    def __str__(self) -> str:
        return self.name or f"{self.method} {self.url}"


class Transport(GitHubCore[UnauthAuthStrategy]):
    """githubkit's client without its retries, cache and waiting: the callers decide when to retry.

    Redirects are followed here. Credentials are added to each request instead of being kept in the
    client, so that none is sent to another host after a redirect. All threads share one connection
    pool; githubkit's own client opens a pool for each request, unless it is used as a context
    manager. Thread-safe.
    """

    def __init__(
        self, api_url: str, timeout_seconds: float, clock: Clock, redact: Callable[[object], object]
    ) -> None:
        super().__init__(
            UnauthAuthStrategy(),
            base_url=api_url,
            user_agent="mergewright",
            timeout=timeout_seconds,
            follow_redirects=False,
            http_cache=False,
            auto_retry=False,
            # The default one is shared by all clients of the process and ignores the host.
            cache_strategy=MemCacheStrategy(),
            event_hooks={"response": [self._bound]},
        )
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._redact = redact
        self._client = self._create_sync_client()
        self._ahead = timedelta()  #: How far GitHub's clock is ahead of the bot's.

    @contextmanager
    def get_sync_client(self) -> Iterator[httpx.Client]:
        """Yield the client that all threads share, for a `with` block."""
        yield self._client

    def server_time(self) -> datetime:
        """Return GitHub's current time, estimated from the time of its last response."""
        return self._clock() + self._ahead

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _get_client_defaults(self) -> dict[str, Any]:
        return {**super()._get_client_defaults(), "limits": _POOL}

    def _check_rate_limit(self, response: Response[Any]) -> None:
        """Do nothing, because `errors.py` recognises rate limits, including those of proxies."""

    def _bound(self, response: httpx.Response) -> None:
        if self._is_own(response.url) and (sent := date_of(response.headers)):
            self._ahead = sent - self._clock()
            if self._ahead > _BEHIND and isinstance(self._clock, SteadyClock):
                # The machine was suspended, or started with a wrong time. A bot that is behind
                # would wait for the times that GitHub gives to comments.
                self._clock.not_before(sent)
                self._ahead = sent - self._clock()
        if isinstance(response.stream, httpx.SyncByteStream):
            response.stream = _DeadlineStream(response.stream, self._timeout_seconds)

    def _is_own(self, url: httpx.URL) -> bool:
        """Whether the URL is that of GitHub's API, and not of another host after a redirect."""
        return _origin(url) == _origin(self._client.base_url)

    def send(self, request: GitHubRequest, token: str) -> httpx.Response:
        """Send a request and follow redirects; the token is sent to GitHub's own host only.

        A redirect of a write is followed only with 307 or 308 and within the host.
        https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api

        Raises:
            TryLater: GitHub cannot answer now.
            Refused: GitHub refuses the request.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"If-None-Match": request.etag} if request.etag else {}
        url, params = request.url, request.params
        for _ in range(_MAX_REDIRECTS + 1):
            response = self._send_once(request, url, params, headers)
            if response.is_success or (request.etag and response.status_code == NOT_MODIFIED):
                return response
            response.close()
            target = response.url.join(response.headers.get("Location", ""))
            leaves = _origin(target) != _origin(response.url)
            same_method = response.status_code in _SAME_METHOD and not leaves
            if not (request.method == "GET" or same_method) or not response.has_redirect_location:
                raise self._failure(request, response, b"")
            if leaves:
                headers = {}
            url, params = str(target), None
        raise TryLater(f"{request}: redirected more than {_MAX_REDIRECTS} times.")

    def answers(self, url: str) -> bool:
        """Whether the server of a URL answers, even with a refusal. Empty stands for the API.

        A server error (5xx) counts as an answer only if it says when to retry.
        """
        try:
            self.send(GitHubRequest("HEAD", url), "")
        except TryLater as failure:
            return failure.at is not None  # A limit, which only a server that works has.
        except Refused:
            pass
        return True

    def _send_once(
        self,
        request: GitHubRequest,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> httpx.Response:
        status = "none"
        try:
            response = self.request(
                request.method,
                url,
                params=params,
                json=None if request.body is None else self._redact(request.body),
                headers=headers,
                stream=request.stream,
            ).raw_response
            status = str(response.status_code)
            return response
        except RequestFailed as error:
            response = error.response.raw_response
            status = str(response.status_code)
            raise self._failure(request, response, response.content) from error
        except RequestTimeout as error:
            raise TryLater(f"{request}: GitHub did not answer in time.") from error
        except RequestError as error:
            if not isinstance(error.exc, httpx.RequestError):
                raise
            why = f"{type(error.exc).__name__}: {error.exc}"
            raise TryLater(f"{request}: GitHub cannot be reached ({why}).") from error
        finally:
            GITHUB_REQUESTS.labels(status).inc()

    def _failure(
        self, request: GitHubRequest, response: httpx.Response, body: bytes
    ) -> TryLater | Refused:
        status, headers = response.status_code, response.headers
        return http_failure(str(request), status, headers, body, self._clock())


class CachedResponse(NamedTuple):
    """The body of a response, and the ETag with which to ask whether it has changed."""

    content: bytes
    more: bool  #: Whether another page follows.
    etag: str  #: Empty if GitHub sent none.


class EtagCache:
    """Caches responses by URL, in memory. Thread-safe.

    A response is cached when the `caching` block in which it was read ends without an exception.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, CachedResponse] = OrderedDict()
        self._lock = Lock()
        self._here = local()  # What this thread has read in its `caching` block.

    @contextmanager
    def caching(self) -> Iterator[None]:
        """Cache what this thread reads in the block, unless the block raises."""
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
        """Return the cached response of a URL, or None. Always None outside a `caching` block."""
        return self._known.get(url) if self._reading() is not None else None

    def note(self, url: str, response: CachedResponse) -> None:
        """Store a response for caching when the `caching` block ends, if it has an ETag."""
        read = self._reading()
        if read is not None and response.etag:
            read[url] = response

    def _reading(self) -> dict[str, CachedResponse] | None:
        return getattr(self._here, "read", None)


def decode(request: object, content: bytes | Raw, shape: type[T]) -> T:
    """Decode a response's body. `request` names the request in error messages.

    Raises:
        TryLater: the body is not JSON of this shape.
    """
    try:
        return msgspec.json.decode(content, type=shape)
    except UNDECODABLE as error:
        raise TryLater(f"{request}: GitHub's answer cannot be read: {error}.") from error


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
