"""Forwards one request to a model's API, and its response to the agent."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

import httpx
import msgspec
from litestar.types import HTTPScope, Receive, Send

from bot.model_proxy.endpoints import ModelUnavailable
from bot.model_proxy.request_bodies import BodyMemory, countable, is_changed
from bot.model_proxy.usage_meter import UsageMeter
from runtimes.agents.base import Endpoint

_log = logging.getLogger(__name__)

_VERSION = r"/v1(?:beta|alpha)?"
#: The allowed paths by method. Stored files, stored responses and `..` are not allowed, so that a
#: session cannot read the data of others.
_ALLOWED: Mapping[str, re.Pattern[str]] = {
    "GET": re.compile(rf"{_VERSION}/models(?:/\w[\w.:-]*)*"),
    "POST": re.compile(
        r"/v1/(?:messages(?:/count_tokens)?|responses(?:/compact)?|(?:chat/)?completions)"
        rf"|{_VERSION}/models/\w[\w.-]*:(?:generateContent|streamGenerateContent|countTokens)"
    ),
}
#: Requests that a model answers and that cost money, as opposed to requests that count tokens.
_BILLED = re.compile(r"POST .*(?:/messages|/responses(?:/compact)?|/completions|enerateContent)")
_MODEL = re.compile(r".*/models/([\w.-]+):.*")
#: The headers that are forwarded to APIs, which are those that supported programs send. Other
#: headers could select another account of the key, or another method.
_FORWARDED = re.compile(
    rb"accept|content-type|user-agent|anthropic-(?:version|beta)|openai-beta|x-app"
    rb"|originator|(?:x-)?session-id|thread-id|x-client-request-id|x-session-affinity"
    rb"|x-goog-api-client|x-[a-z-]+-(?:beta-features|turn-state|session-id)"
)
#: The query parameters that are forwarded. Google's APIs also accept headers as parameters:
#: https://cloud.google.com/apis/docs/system-parameters
_PARAMETERS = {
    *("after", "after_id", "alt", "api-version", "before", "before_id", "beta", "client_version"),
    *("limit", "order", "pageSize", "pageToken"),
}
#: The headers with the run token, which is replaced by the key. For Google, the query may also have
#: the token.
_GOOGLE = b"x-goog-api-key"
_CREDENTIALS = (b"x-api-key", _GOOGLE, b"authorization")
#: Headers of responses that are not forwarded: hop-by-hop ones, cookies and the date.
_DROPPED = {
    *(b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    *(b"proxy-authenticate", b"set-cookie", b"date"),
}
_ENCODING = b"accept-encoding"
#: In seconds. So long that only lost requests reach it: models may think long, and agents have
#: their own timeouts.
_TIMEOUT = httpx.Timeout(1800.0, connect=10.0, pool=None)
#: The largest request body in bytes, more than any model accepts; the time limit of each chunk.
_MAX_BYTES, _CHUNK_SECONDS = 64 * 1024 * 1024, 60.0
_STATUSES = range(600)  #: HTTP status codes that are forwarded; others are invalid.
_RETRYABLE = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class ClientDisconnected(Exception):
    """The agent disconnected before it sent its whole request."""


class ForwardedRequest:
    """A request of an agent to a model's API."""

    def __init__(self, scope: HTTPScope, receive: Receive, memory: BodyMemory) -> None:
        self.path = scope["raw_path"].decode("latin-1")
        self._method = str(scope["method"])
        self._headers = list(scope["headers"])
        self._query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self._receive = receive
        self._read = asyncio.Event()
        self._memory, self._held = memory, 0
        self.size = 0  #: Bytes of the body read so far.
        found = _MODEL.fullmatch(self.path)
        self.model = found[1] if found else ""  #: The model; if empty, unknown or not read yet.
        given = dict(self._headers)
        queried = dict(self._query).get("key", "")
        self._where = next((name for name in _CREDENTIALS if name in given), _GOOGLE)
        #: The run token; empty if there is none.
        self.token = (
            given.get(self._where, b"").decode("latin-1").removeprefix("Bearer ") or queried
        )

    def check(self) -> None:
        """Raise `ModelUnavailable` unless the proxy forwards requests of this kind."""
        if dict(self._headers).get(b"upgrade", b"").lower() == b"websocket":
            why = "websockets are not supported: use POST"
            raise ModelUnavailable(why, HTTPStatus.UPGRADE_REQUIRED)
        pattern = _ALLOWED.get(self._method)
        if pattern is None or not pattern.fullmatch(self.path):
            raise ModelUnavailable(
                f"{self._method} {self.path} is not allowed", HTTPStatus.FORBIDDEN
            )
        if dict(self._headers).get(b"content-encoding", b"identity") != b"identity":
            why = "compressed requests are not supported"
            raise ModelUnavailable(why, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)

    @property
    def was_billed(self) -> bool:
        """Whether the request was read to its end and is of a kind for which providers charge."""
        return self._read.is_set() and bool(_BILLED.fullmatch(f"{self._method} {self.path}"))

    async def of(self, endpoint: Endpoint) -> httpx.Request:
        """Return the request to send, with the endpoint's URL and key instead of the run token.

        Raises `ModelUnavailable` if the body cannot be forwarded, and `ClientDisconnected`. If the
        body is streamed, these are raised while the returned request is sent.
        """
        query = urlencode([pair for pair in self._query if pair[0] in _PARAMETERS])
        posted = self._method == "POST"
        headers = [(name, value) for name, value in self._headers if _FORWARDED.fullmatch(name)]
        content, size = None, dict(self._headers).get(b"content-length")
        if posted and is_changed(self.path):
            body, self.model = countable(self.path, await self._whole_body())
            content, size = self._once(body), str(len(body)).encode()
        elif posted:
            content = self._body()
        if content is not None and size is not None:
            headers.append((b"content-length", size))
        # Only encodings are accepted that the usage meter can decode.
        packed = b"gzip" in dict(self._headers).get(_ENCODING, b"")
        headers.append((_ENCODING, b"gzip" if packed else b"identity"))
        bearer = "Bearer " if self._where == b"authorization" else ""
        return httpx.Request(
            self._method,
            f"{endpoint.url}{self.path}{'?' if query else ''}{query}",
            headers=[*headers, (self._where, f"{bearer}{endpoint.key}".encode())],
            content=content,
            extensions={"timeout": _TIMEOUT.as_dict()},
        )

    async def disconnected(self) -> None:
        """Wait until the agent disconnects after its request was read.

        If the agent disconnects while its request is read, `_body` raises `ClientDisconnected`.
        """
        if self._method == "POST":
            await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def release(self) -> None:
        """Stop counting the buffered request body against the memory limit. Idempotent."""
        self._memory.release(self.token, self._held)
        self._held = 0

    async def _whole_body(self) -> bytes:
        body = bytearray()
        async for chunk in self._body():
            self._memory.hold(self.token, len(chunk))
            self._held += len(chunk)
            body += chunk
        return bytes(body)

    async def _once(self, body: bytes) -> AsyncIterator[bytes]:
        """Yield the body once. After it was sent, its memory is no longer counted."""
        yield body
        self.release()

    async def _body(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            try:
                message = await asyncio.wait_for(self._receive(), _CHUNK_SECONDS)
            except TimeoutError:
                why = f"the request body stalled for {_CHUNK_SECONDS:g} seconds"
                raise ModelUnavailable(why, HTTPStatus.REQUEST_TIMEOUT) from None
            if message["type"] != "http.request":
                raise ClientDisconnected
            more = message["more_body"]
            self.size += len(message["body"])
            if self.size > _MAX_BYTES:
                why = f"the request body has more than {_MAX_BYTES >> 20} MB"
                raise ModelUnavailable(why, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            yield message["body"]
        self._read.set()


class ForwardedResponse:
    """The proxy's response to an agent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.meter: UsageMeter | None = None  #: Set when a model responds.
        self.failed = False  #: Whether the model's API answered with an error.
        self.ended = False  #: Whether the model's response was forwarded to its end.

    async def forward(self, response: httpx.Response) -> None:
        """Forward a model's response as it arrives.

        If the model's response breaks off, so does the response to the agent.
        """
        self.meter = meter = UsageMeter(response.headers)
        self.failed = response.status_code >= HTTPStatus.BAD_REQUEST
        try:
            if response.status_code not in _STATUSES:
                why = f"the model answered with the invalid status {response.status_code}"
                await self.refuse(HTTPStatus.BAD_GATEWAY, why)
                return
            headers = [one for one in response.headers.raw if one[0].lower() not in _DROPPED]
            await self._begin(response.status_code, headers)
            async for chunk in response.aiter_raw():
                meter.feed(chunk)  # Usage is counted even if the agent has disconnected.
                await self._say(chunk, more=True)
            self.ended = True
            await self._say(b"", more=False)
        except httpx.HTTPError as problem:
            _log.warning("a model's response broke off: %r", problem)
        finally:
            await response.aclose()

    async def refuse(self, status: HTTPStatus, why: str) -> None:
        """Send an error of the proxy, in a form that the clients of all supported APIs can read."""
        again = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _RETRYABLE
        error = {"type": status.phrase, "code": status, "status": status.phrase, "message": why}
        body = msgspec.json.encode({"type": "error", "error": error})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-should-retry", b"true" if again else b"false"),
        ]
        if again:
            headers.append((b"retry-after", b"1"))
        if status is HTTPStatus.REQUEST_TIMEOUT:
            headers.append((b"connection", b"close"))
        await self._begin(status, headers)
        await self._say(body, more=False)

    async def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _say(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
