"""Our own door to the models: takes a session's pass and shows the real key in its place.

It stands on loopback alone, lets through only what a model's API has, and only to the endpoint of
the session that asks. Nothing is held back: what one side says the other hears at once, its
errors and its breaking off too.
"""

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import httpx
from litestar import Litestar, asgi
from litestar.datastructures import State
from litestar.types import HTTPScope, Receive, Scope, Send
from msgspec import Struct

from bot.model_proxy.endpoints import ModelUnavailable
from bot.model_proxy.forwarding import ClientDisconnected, ForwardedRequest, ForwardedResponse
from bot.system.http_server import CannotListen, HttpServer, log_failure
from bot.system.paths import read_private, write_private
from lifecycle.model.facts import Usage
from runtimes.agents.base import PROVIDER_DEFAULT, Endpoint

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_PORTS = range(65536)
#: So many questions of one session, and of all, are passed on at once.
_MOST_OF_ONE, _MOST = 32, 2000
#: The endpoint and the key that a pass stands for; raises `ModelUnavailable`.
EndpointLookup = Callable[[str], Endpoint]
#: Called with a pass, a model's name and what an answer of it used.
UsageCallback = Callable[[str, str, Usage], None]


class UpstreamError(Struct, frozen=True):
    """What kept a model from answering."""

    place: str  #: Where it is asked for.
    status: int  #: What it answered there; 0: it was not reached.
    times: int = 1  #: How often it did, one after the other.


class ModelProxy:
    """The door as a server of its own, for programs of this machine alone."""

    def __init__(self, behind: EndpointLookup, count: UsageCallback, kept: Path) -> None:
        """`kept` is the file with the port: programs that outlive a bot know it already."""
        self._proxy = _Door(behind, count)
        self._kept = kept
        self._server: HttpServer | None = None
        self.url = ""  #: Empty until it is opened.

    def start(self) -> None:
        """Open it where it was, or, where that is taken, anywhere. Safe to repeat."""
        if self._server is None:
            app = _application(self._proxy)
            try:
                self._server = HttpServer(app, _HOST, self._port())
            except (CannotListen, ValueError) as problem:
                _log.warning("%s: %s; programs that run have to be restarted", self._kept, problem)
                self._server = HttpServer(app, _HOST, 0)
            write_private(self._kept, str(self._server.port))
            self.url = f"http://{_HOST}:{self._server.port}"
            self._server.start()

    @property
    def last_error(self) -> UpstreamError | None:
        """Why the last question was not answered; None: it was, or there was none."""
        return self._proxy.last_error

    def stop(self) -> None:
        """Close it, where it was opened."""
        if self._server is not None:
            self._server.stop()

    def _port(self) -> int:
        """Where it was; 0: it never was. Raises `ValueError`."""
        port = int(read_private(self._kept) or 0)
        if port not in _PORTS:
            raise ValueError(f"{port} is no port")
        return port


def _application(proxy: "_Door") -> Litestar:
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

    def __init__(self, behind: EndpointLookup, count: UsageCallback) -> None:
        self._behind = behind
        self._count = count
        self._under_way: Counter[str] = Counter()  #: Questions, by the passes that they show.
        self._room = _room()
        self.last_error: UpstreamError | None = None

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
        asked = ForwardedRequest(cast(HTTPScope, scope), receive)  # no websockets here
        answer = ForwardedResponse(send)
        self._under_way[asked.shown] += 1
        asking = asyncio.ensure_future(self._ask(asked, answer))
        ends = [asyncio.ensure_future(one) for one in (asked.hung_up(), self._closing.wait())]
        try:
            await asyncio.wait((asking, *ends), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (asking, *ends):
                one.cancel()
            await asyncio.wait((asking, *ends))
            self._under_way -= Counter([asked.shown])
        await self._counted(asked, answer)
        if not asking.cancelled():
            asking.result()  # What nobody expected is raised here.
        if self._closing.is_set() and not answer.begun:
            await answer.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the bot is being started anew")

    def _check_room(self, shown: str) -> None:
        """Raise `ModelUnavailable` where more is asked at once than is meant."""
        if self._under_way[shown] > _MOST_OF_ONE:
            why = f"the session asks {_MOST_OF_ONE} things at once already: wait for an answer"
            raise ModelUnavailable(why, HTTPStatus.TOO_MANY_REQUESTS)
        if self._under_way.total() > self._room:
            why = f"all sessions together ask {self._room} things at once already: ask again"
            raise ModelUnavailable(why, HTTPStatus.SERVICE_UNAVAILABLE)

    async def _counted(self, asked: ForwardedRequest, answer: ForwardedResponse) -> None:
        """Count what was used, also by an answer that was broken off."""
        if answer.meter is None:
            return
        if told := answer.meter.told():
            await asyncio.to_thread(self._count, asked.shown, *told)
        if answer.meter.lost:
            _log.warning("%s: what an answer used could not be read to its end", asked.path)

    async def _ask(self, asked: ForwardedRequest, answer: ForwardedResponse) -> None:
        endpoint = PROVIDER_DEFAULT
        try:
            asked.check()
            self._check_room(asked.shown)
            endpoint = await asyncio.to_thread(self._behind, asked.shown)
            response = await self._client.send(asked.of(endpoint), stream=True)
        except ModelUnavailable as refusal:
            await answer.refuse(refusal.status, str(refusal))
        except ClientDisconnected:
            pass
        except httpx.ReadTimeout:
            why = f"{_place(endpoint)} took the question, and never said anything"
            await answer.refuse(HTTPStatus.GATEWAY_TIMEOUT, why)
        except httpx.HTTPError as problem:
            _log.warning("%s: the model cannot be asked: %r", asked.path, problem)
            self._hears(_place(endpoint), 0)
            why = f"{_place(endpoint)} cannot be reached for the model: {type(problem).__name__}"
            await answer.refuse(HTTPStatus.BAD_GATEWAY, why)
        else:
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                self._hears(_place(endpoint), response.status_code)
            else:
                self.last_error = None
            await answer.give(response)

    def _hears(self, place: str, status: int) -> None:
        before = self.last_error
        again = before is not None and (before.place, before.status) == (place, status)
        self.last_error = UpstreamError(place, status, before.times + 1 if before and again else 1)


def _place(endpoint: Endpoint) -> str:
    """Where a model is, in words, without what may be shown there in its address."""
    return urlsplit(endpoint.url).netloc.rpartition("@")[2]


def _room() -> int:
    """How many questions there is room for: each holds two of the files we may have open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else min(_MOST, files // 4)
