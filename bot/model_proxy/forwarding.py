"""One question to a model and its answer, as they pass our door (`bot.model_proxy.proxy`)."""

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
from bot.model_proxy.usage_meter import UsageMeter
from runtimes.agents.base import Endpoint

_log = logging.getLogger(__name__)

_VERSION = r"/v1(?:beta|alpha)?"
#: What may be asked, by method. Files and answers that others have left there are not among it,
#: nor is what leads to them from there: `..`.
_OPEN: Mapping[str, re.Pattern[str]] = {
    "GET": re.compile(rf"{_VERSION}/models(?:/\w[\w.:-]*)*"),
    "POST": re.compile(
        r"/v1/(?:messages(?:/count_tokens)?|responses(?:/compact)?|(?:chat/)?completions)"
        rf"|{_VERSION}/models/\w[\w.-]*:(?:generateContent|streamGenerateContent|countTokens)"
    ),
}
#: Where a pass is shown, and then the key. Google's may stand in the query too.
_GOOGLE = b"x-goog-api-key"
_SHOWN = (b"x-api-key", _GOOGLE, b"authorization")
#: What concerns one connection alone, or ties one answer to the next.
_DROPPED = {
    *(b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    *(b"host", b"expect", b"proxy-authorization", b"proxy-authenticate"),
    *(b"cookie", b"set-cookie", b"date"),
}
_PACKING = b"accept-encoding"
#: A model may think for long, and its agent knows how long it wants to wait; after this both of
#: them are lost.
_PATIENCE = httpx.Timeout(1800.0, connect=10.0, pool=None)
#: More than any model takes; and how long the next piece of it may take to come.
_MOST_BYTES, _PIECE_SECONDS = 64 * 1024 * 1024, 60.0
_STATUSES = range(600)  #: Those that HTTP has.
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class ClientDisconnected(Exception):
    """The agent has gone before it had said all."""


class ForwardedRequest:
    """What an agent asks."""

    def __init__(self, scope: HTTPScope, receive: Receive) -> None:
        self.path = scope["raw_path"].decode("latin-1")
        self._method = str(scope["method"])
        self._headers = list(scope["headers"])
        self._query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        self._receive = receive
        self._read = asyncio.Event()
        given = dict(self._headers)
        queried = dict(self._query).get("key", "")
        self._where = next((name for name in _SHOWN if name in given), _GOOGLE)
        #: The pass; empty: none is shown.
        self.shown = (
            given.get(self._where, b"").decode("latin-1").removeprefix("Bearer ") or queried
        )

    def check(self) -> None:
        """Raise `ModelUnavailable` for what is no question to a model."""
        if dict(self._headers).get(b"upgrade", b"").lower() == b"websocket":
            why = "models are asked by POST here, not through websockets"
            raise ModelUnavailable(why, HTTPStatus.UPGRADE_REQUIRED)
        pattern = _OPEN.get(self._method)
        if pattern is None or not pattern.fullmatch(self.path):
            raise ModelUnavailable(
                f"{self._method} {self.path} is not let through", HTTPStatus.FORBIDDEN
            )

    def of(self, endpoint: Endpoint) -> httpx.Request:
        """The same question to an endpoint, with its key."""
        query = urlencode([(name, value) for name, value in self._query if name != "key"])
        posted = self._method == "POST"
        dropped = {*_DROPPED, *_SHOWN, _PACKING, *(() if posted else (b"content-length",))}
        headers = [(name, value) for name, value in self._headers if name not in dropped]
        # What it uses is read in passing: as it is, or packed in the one way that we can unpack.
        packed = b"gzip" in dict(self._headers).get(_PACKING, b"")
        headers.append((_PACKING, b"gzip" if packed else b"identity"))
        bearer = "Bearer " if self._where == b"authorization" else ""
        return httpx.Request(
            self._method,
            f"{endpoint.url}{self.path}{'?' if query else ''}{query}",
            headers=[*headers, (self._where, f"{bearer}{endpoint.key}".encode())],
            content=self._body() if posted else None,
            extensions={"timeout": _PATIENCE.as_dict()},
        )

    async def hung_up(self) -> None:
        """Return once the agent has gone."""
        if self._method == "POST":
            await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _body(self) -> AsyncIterator[bytes]:
        more, size = True, 0
        while more:
            try:
                message = await asyncio.wait_for(self._receive(), _PIECE_SECONDS)
            except TimeoutError:
                why = f"nothing more of the question came for {_PIECE_SECONDS:g} seconds"
                raise ModelUnavailable(why, HTTPStatus.REQUEST_TIMEOUT) from None
            if message["type"] != "http.request":
                raise ClientDisconnected
            more = message["more_body"]
            size += len(message["body"])
            if size > _MOST_BYTES:
                why = f"the question has more than {_MOST_BYTES >> 20} MB"
                raise ModelUnavailable(why, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            yield message["body"]
        self._read.set()


class ForwardedResponse:
    """What the agent is answered."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.meter: UsageMeter | None = None  #: Once a model answers.

    async def give(self, response: httpx.Response) -> None:
        """The model's answer as it comes. One that breaks off is left without an end."""
        self.meter = meter = UsageMeter(response.headers)
        try:
            if response.status_code not in _STATUSES:
                why = f"the model answered with {response.status_code}, which is no status"
                await self.refuse(HTTPStatus.BAD_GATEWAY, why)
                return
            headers = [one for one in response.headers.raw if one[0].lower() not in _DROPPED]
            await self._begin(response.status_code, headers)
            async for chunk in response.aiter_raw():
                meter.sees(chunk)  # It is used, also where nobody hears it any more.
                await self._say(chunk, more=True)
            await self._say(b"", more=False)
        except httpx.HTTPError as problem:
            _log.warning("a model broke off: %r", problem)
        finally:
            await response.aclose()

    async def refuse(self, status: HTTPStatus, why: str) -> None:
        """An error of our own, in a form that every API's programs can read."""
        again = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _AGAIN
        said = {"type": status.phrase, "code": status, "status": status.phrase, "message": why}
        body = msgspec.json.encode({"type": "error", "error": said})
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
