"""Our own door to the models: takes a session's pass and shows the real key in its place.

It stands on loopback alone, lets through only what a model's API has, and only to the endpoint of
the session that asks. Nothing is held back: what one side says the other hears at once, its
errors and its breaking off too.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, urlencode

import httpx
import msgspec
from litestar import Litestar, asgi
from litestar.datastructures import State
from litestar.types import HTTPScope, Receive, Scope, Send

from bot.meter import Meter
from bot.models import NoModel
from bot.web.serve import CannotListen, Server, log_failure
from lifecycle.facts import Usage
from runtimes.agents.base import Endpoint
from runtimes.agents.files import read_text, write_private

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
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
#: A model may think for long; its agent knows how long it wants to wait.
_PATIENCE = httpx.Timeout(None, connect=10.0)


#: The endpoint and the key that a pass stands for; raises `NoModel`.
Behind = Callable[[str], Endpoint]
#: Called with a pass, a model's name and what an answer of it used.
Count = Callable[[str, str, Usage], None]


class ModelDoor:
    """The door as a server of its own, for programs of this machine alone."""

    def __init__(self, behind: Behind, count: Count, kept: Path) -> None:
        """`kept` is the file with the port: programs that outlive a bot know it already."""
        self._behind = behind
        self._count = count
        self._kept = kept
        self._server: Server | None = None
        self.url = ""  #: Empty until it is opened.

    def start(self) -> None:
        """Open it where it was, or, where that is taken, anywhere. Safe to repeat."""
        if self._server is None:
            app = door(self._behind, self._count)
            try:
                self._server = Server(app, _HOST, int(read_text(self._kept) or 0))
            except (CannotListen, ValueError) as problem:
                _log.warning("%s: %s; programs that run have to be restarted", self._kept, problem)
                self._server = Server(app, _HOST, 0)
            write_private(self._kept, str(self._server.port))
            self.url = f"http://{_HOST}:{self._server.port}"
            self._server.start()

    def stop(self) -> None:
        """Close it, where it was opened."""
        if self._server is not None:
            self._server.stop()


def door(behind: Behind, count: Count) -> Litestar:
    """Make the application."""
    proxy = _Door(behind, count)
    return Litestar(
        route_handlers=[asgi("/", is_mount=True, copy_scope=False)(proxy.pass_on)],
        on_startup=[proxy.open],
        on_shutdown=[proxy.shut],
        after_exception=[log_failure],
        state=State({"streams": proxy}),
        openapi_config=None,
        logging_config=None,
    )


class _Door:
    """Lives on its server's event loop."""

    def __init__(self, behind: Behind, count: Count) -> None:
        self._behind = behind
        self._count = count

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=None))

    async def shut(self) -> None:
        await self._client.aclose()

    def close(self) -> None:
        """Break off what is under way: the agents ask again, and find the bot that comes next.

        A server that waits for its connections to end would wait as long as models talk. From any
        thread.
        """
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._closing.set)

    async def pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request and its answer, until either side breaks off or the door is closed."""
        asked = _Asked(cast(HTTPScope, scope), receive)  # no websockets here
        answer = _Answer(send)
        asking = asyncio.ensure_future(self._ask(asked, answer))
        ends = [asyncio.ensure_future(one) for one in (asked.hung_up(), self._closing.wait())]
        try:
            await asyncio.wait((asking, *ends), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (asking, *ends):
                one.cancel()
            await asyncio.wait((asking, *ends))
        await self._counted(asked, answer)
        if not asking.cancelled():
            asking.result()  # What nobody expected is raised here.
        if self._closing.is_set() and not answer.begun:
            await answer.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the bot is being started anew")

    async def _counted(self, asked: "_Asked", answer: "_Answer") -> None:
        """Count what was used, also by an answer that was broken off."""
        if answer.meter is None:
            return
        if told := answer.meter.told():
            await asyncio.to_thread(self._count, asked.shown, *told)
        if answer.meter.lost:
            _log.warning("%s: what an answer used could not be read to its end", asked.path)

    async def _ask(self, asked: "_Asked", answer: "_Answer") -> None:
        try:
            asked.check()
            endpoint = await asyncio.to_thread(self._behind, asked.shown)
            response = await self._client.send(asked.of(endpoint), stream=True)
        except NoModel as refusal:
            await answer.refuse(refusal.status, str(refusal))
        except _HungUp:
            pass
        except httpx.HTTPError as problem:
            _log.warning("%s: the model cannot be asked: %r", asked.path, problem)
            why = f"the model's endpoint cannot be reached: {type(problem).__name__}"
            await answer.refuse(HTTPStatus.BAD_GATEWAY, why)
        else:
            await answer.give(response)


class _HungUp(Exception):
    """The agent has gone before it had said all."""


class _Asked:
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
        """Raise `NoModel` for what is no question to a model."""
        pattern = _OPEN.get(self._method)
        if pattern is None or not pattern.fullmatch(self.path):
            raise NoModel(f"{self._method} {self.path} is not let through", HTTPStatus.FORBIDDEN)

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
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise _HungUp
            more = message["more_body"]
            yield message["body"]
        self._read.set()


class _Answer:
    """What the agent is answered."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.meter: Meter | None = None  #: Once a model answers.

    async def give(self, response: httpx.Response) -> None:
        """The model's answer as it comes. One that breaks off is left without an end."""
        self.meter = meter = Meter(response.headers)
        try:
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
        again = "true" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "false"
        said = {"type": status.phrase, "code": status, "status": status.phrase, "message": why}
        body = msgspec.json.encode({"type": "error", "error": said})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-should-retry", again.encode()),
        ]
        await self._begin(status, headers)
        await self._say(body, more=False)

    async def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _say(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
