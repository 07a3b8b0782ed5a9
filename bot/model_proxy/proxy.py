"""Forwards agents' requests to model APIs, and replaces the run token by the model key.

The proxy listens on loopback, and on a UNIX socket for isolated agents. Requests to model APIs go
to the endpoint of the session; `tunnels` connects isolated agents with other hosts. Responses are
streamed, including errors. If a model's response breaks off, so does the response to the agent.
Requests are streamed as well, except those whose body is checked or changed first
(`request_bodies`).
"""

import asyncio
import logging
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
from bot.model_proxy.request_bodies import BodyMemory
from bot.model_proxy.tunnels import Tunnels
from bot.model_proxy.usage_meter import MODEL_NAME, UsageMeter
from bot.system.descriptors import connections
from bot.system.http_server import CannotListen, HttpServer, log_failure
from lifecycle.model.facts import Usage
from runtimes.agents.base import PROVIDER_DEFAULT, Endpoint
from runtimes.files import read_text, write_private

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_PORTS = range(65536)
#: The most concurrent requests of one run and of all runs.
_MAX_PER_RUN, _MAX_TOTAL = 32, 2000
#: The most models that the requests of a run may name, because usage is stored by model.
_MAX_MODELS = 50
#: The time limit for a request's body, which may wait for a slow connection to the model.
_BODY_SECONDS = 600.0
#: Returns the endpoint and key for a run token; raises `ModelUnavailable`.
EndpointLookup = Callable[[str], Endpoint]
#: Called with a run token, a model and the usage of a response.
UsageCallback = Callable[[str, str, Usage], None]


class UpstreamError(Struct, frozen=True):
    """The last failed request to a model's API, which sent an error or could not be reached.

    Does not include a request that the API accepted and did not respond to in time.
    """

    place: str  #: The host of the model's API, with its port if the URL has one.
    status: int  #: The HTTP status; if 0, the connection failed.
    times: int = 1  #: The number of failures with this host and status in a row.


class ModelProxy:
    """The server to which the agents' programs on this machine send their requests."""

    def __init__(
        self,
        lookup: EndpointLookup,
        record: UsageCallback,
        port_file: Path,
        *,
        socket_file: Path | None = None,
        tunnels: Tunnels | None = None,
        on_lost_port: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create the proxy. `port_file` keeps its port for the next start.

        Programs that outlive a restart know the port. `socket_file` is the path of a UNIX socket
        for isolated agents. Without `tunnels`, the proxy serves no requests for other hosts.
        `on_lost_port` is called with the reason before the proxy uses another port.
        """
        self._lookup = lookup
        self._record = record
        self._port_file = port_file
        self._socket_file = socket_file
        self._tunnels = tunnels
        self._on_lost_port = on_lost_port
        self._server: HttpServer | None = None
        self._active: Counter[str] = Counter()  #: The number of active requests by run token.
        self._models: dict[str, set[str]] = {}  #: The models that requests named, by run token.
        self._memory = BodyMemory()
        self._capacity = _capacity()
        self.url = ""  #: The proxy's URL; empty until `start`.
        #: The failure of the last request to a model; None if it succeeded or there was none.
        #: Requests that got no response in time, or that the agent gave up, do not count.
        self.last_error: UpstreamError | None = None

    def start(self) -> None:
        """Listen on the port of the last start, or on a free one if that is unknown or unusable.

        Idempotent. Raises `CannotListen`, `OSError` if the UNIX socket cannot be made, and
        `RuntimeError` if the server does not answer in time.
        """
        if self._server is not None:
            return
        app = Litestar(
            route_handlers=[asgi("/", is_mount=True, copy_scope=False)(self._forward)],
            on_startup=[self._open],
            on_shutdown=[self._shut],
            after_exception=[log_failure],
            state=State({"streams": self}),
            openapi_config=None,
            logging_config=None,
        )
        try:
            port = int(read_text(self._port_file) or 0)
            if port not in _PORTS:
                raise ValueError(f"invalid port {port}")
            self._server = self._listen(app, port)
        except (CannotListen, ValueError) as problem:
            why, _, _ = str(problem).partition(";")  # The rest is a remedy for the web server.
            self._on_lost_port(why)
            self._server = self._listen(app, 0)
        write_private(self._port_file, str(self._server.port))
        self.url = f"http://{_HOST}:{self._server.port}"
        self._server.start()

    def _listen(self, app: Litestar, port: int) -> HttpServer:
        serve = self._tunnels.serve if self._tunnels else None
        unix, limit = self._socket_file, _BODY_SECONDS
        return HttpServer(app, _HOST, port, unix, serve, body_seconds=limit)

    def stop(self) -> None:
        """Stop the server for good, if it was started."""
        if self._server is not None:
            self._server.stop()

    def close(self) -> None:
        """Abort all requests, so that the server's shutdown does not wait for responses of models.

        The agents retry them after the bot's restart. Thread-safe.
        """
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        self._closing.set()
        if self._tunnels is not None:
            self._tunnels.close()

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=None))
        if self._tunnels is not None:
            self._tunnels.open()

    async def _shut(self) -> None:
        await self._client.aclose()
        if self._tunnels is not None:
            await self._tunnels.shut()

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request and its response, until one side disconnects or `close` is called."""
        # Every scope is HTTP: the server has no websockets.
        asked = ForwardedRequest(cast(HTTPScope, scope), receive, self._memory)
        answer = ForwardedResponse(send)
        self._active[asked.token] += 1
        asking = asyncio.ensure_future(self._ask(asked, answer))
        ends = [asyncio.ensure_future(one) for one in (asked.disconnected(), self._closing.wait())]
        try:
            await asyncio.wait((asking, *ends), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (asking, *ends):
                one.cancel()
            try:
                await asyncio.wait((asking, *ends))
            finally:  # The server may cancel this coroutine, too.
                self._active -= Counter([asked.token])
                asked.release()
        await self._record_usage(asked, answer, gave_up=asking.cancelled())
        if not asking.cancelled():
            asking.result()  # Raise unexpected exceptions.
        if self._closing.is_set() and not answer.begun:
            await answer.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "the bot is restarting")

    def _check_capacity(self, token: str) -> None:
        """Raise `ModelUnavailable` if there are too many concurrent requests already."""
        if self._active[token] > _MAX_PER_RUN:
            why = f"too many concurrent requests of this session (limit {_MAX_PER_RUN})"
            raise ModelUnavailable(why, HTTPStatus.TOO_MANY_REQUESTS)
        if self._active.total() > self._capacity:
            why = f"too many concurrent requests of all sessions (limit {self._capacity})"
            raise ModelUnavailable(why, HTTPStatus.SERVICE_UNAVAILABLE)

    def _check_model(self, asked: ForwardedRequest) -> None:
        """Shorten a model's name, and raise `ModelUnavailable` if the run named too many models."""
        asked.model = asked.model[:MODEL_NAME]
        named = self._models.setdefault(asked.token, set())
        if asked.model not in named and len(named) >= _MAX_MODELS:
            asked.model = ""
            why = f"this run has named too many models (limit {_MAX_MODELS})"
            raise ModelUnavailable(why, HTTPStatus.TOO_MANY_REQUESTS)
        named.add(asked.model)

    async def _record_usage(
        self, asked: ForwardedRequest, answer: ForwardedResponse, *, gave_up: bool
    ) -> None:
        """Record the usage of a response.

        If a request was billed and its response broke off or reports no usage, the missing usage is
        estimated. `gave_up` says that the agent has disconnected, or that the bot is stopping.
        """
        meter = answer.meter
        if meter is None and gave_up:
            meter = UsageMeter({})  # The model still works on a response that nobody gets.
        if meter is None:
            return
        billed = asked.was_billed and not answer.failed
        usage = meter.total(asked.size if billed and not answer.ended else None)
        if usage is None and billed:
            usage = meter.total(asked.size)
        if usage is not None:
            model, used = usage
            await asyncio.to_thread(self._record, asked.token, model or asked.model, used)
        if meter.lost:
            _log.warning("%s: the usage of a response could not be read to its end", asked.path)

    async def _ask(self, asked: ForwardedRequest, answer: ForwardedResponse) -> None:
        endpoint = PROVIDER_DEFAULT
        try:
            asked.check()
            self._check_capacity(asked.token)
            endpoint = await asyncio.to_thread(self._lookup, asked.token)
            request = await asked.of(endpoint)
            self._check_model(asked)
            response = await self._client.send(request, stream=True)
        except ModelUnavailable as refusal:
            await answer.refuse(refusal.status, str(refusal))
        except ClientDisconnected:
            pass
        except httpx.ReadTimeout:
            why = f"{_place(endpoint)} accepted the request and never responded"
            await answer.refuse(HTTPStatus.GATEWAY_TIMEOUT, why)
        except httpx.HTTPError as problem:
            _log.warning("%s: the model cannot be reached: %r", asked.path, problem)
            self._record_error(_place(endpoint), 0)
            why = f"{_place(endpoint)} cannot be reached: {type(problem).__name__}"
            await answer.refuse(HTTPStatus.BAD_GATEWAY, why)
        else:
            if response.status_code >= HTTPStatus.BAD_REQUEST:
                self._record_error(_place(endpoint), response.status_code)
            else:
                self.last_error = None
            await answer.forward(response)

    def _record_error(self, place: str, status: int) -> None:
        before = self.last_error
        again = before is not None and (before.place, before.status) == (place, status)
        self.last_error = UpstreamError(place, status, before.times + 1 if before and again else 1)


def _place(endpoint: Endpoint) -> str:
    """Return the host of a model's API, with a port but without any credentials in its URL."""
    return urlsplit(endpoint.url).netloc.rpartition("@")[2]


def _capacity() -> int:
    """Return the limit of concurrent requests: 2000, or less if this process may open few files."""
    return min(_MAX_TOTAL, connections())
