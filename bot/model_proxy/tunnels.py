"""Connects isolated agents with the hosts that their project allows.

TLS is not terminated here. The proxy looks up the hosts' names, so a sandbox needs no DNS.
https://www.rfc-editor.org/rfc/rfc9110#section-9.3.6
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http import HTTPStatus

from bot.model_proxy.addresses import addresses_of, is_public
from bot.model_proxy.endpoints import ModelUnavailable, RunNetwork
from bot.model_proxy.proxy_requests import ProxyRefusal, ProxyRequest
from bot.model_proxy.refusals import RefusalLog
from bot.store import Destination, StoreFailure
from bot.system.descriptors import connections

_log = logging.getLogger(__name__)

#: The most connections of one run; package managers open some dozens.
_MAX_PER_RUN = 64
_HANDSHAKE_SECONDS = 30.0  #: The time limit for connecting with a requested host.
_IDLE_SECONDS = 300.0  #: A connection without data for this long is closed.
_CHECK_SECONDS = 30.0  #: Interval of checks for idle connections and runs that have ended.
_LOOKUPS = 32  #: The most names that are looked up at once.
_CHUNK = 64 * 1024
_CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
#: Returns the hosts that the run with a token may reach; raises `ModelUnavailable`.
NetworkLookup = Callable[[str], RunNetwork]


class _Tunnel:
    """An agent's connection with a host, which is established or being established."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._used_at = self._loop.time()

    @property
    def idle(self) -> bool:
        """Whether no data was sent in either direction for five minutes."""
        return self._loop.time() - self._used_at > _IDLE_SECONDS

    def close(self) -> None:
        """Close the connections to the agent and to the host."""
        if self._task is not None:
            self._task.cancel()

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward what `reader` receives to `writer`. When `reader` ends, end `writer` as well."""
        while data := await reader.read(_CHUNK):
            self._used_at = self._loop.time()
            writer.write(data)
            await writer.drain()
        writer.write_eof()


class Tunnels:
    """All connections of agents with hosts. Call all methods but `__init__` in one event loop."""

    def __init__(self, lookup: NetworkLookup, refusals: RefusalLog) -> None:
        self._lookup = lookup
        self._refusals = refusals
        self._open: set[_Tunnel] = set()
        self._capacity = connections()
        self._threads = ThreadPoolExecutor(_LOOKUPS, "names")

    def open(self) -> None:
        """Start the periodic check of connections in the running event loop."""
        self._checks = asyncio.create_task(self._check())

    async def shut(self) -> None:
        """Stop the periodic check and the lookups, and write the counted refusals."""
        self._checks.cancel()
        await asyncio.wait([self._checks])
        await self._refusals.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _check(self) -> None:
        """Close idle connections, and those with an invalid token, every 30 seconds."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            shown = {tunnel.token for tunnel in self._open}
            valid = {one: await asyncio.to_thread(self._is_valid, one) for one in shown}
            for tunnel in self._open:
                if tunnel.idle or not valid.get(tunnel.token, True):
                    tunnel.close()

    def close(self) -> None:
        """Close all connections."""
        for tunnel in self._open:
            tunnel.close()

    async def serve(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a request until both sides have ended or one fails. Then close its connection."""
        with closing(writer):
            try:
                request = ProxyRequest.of(head)
                tunnel = _Tunnel(request.token)
                self._open.add(tunnel)
                try:
                    await self._serve(request, tunnel, reader, writer)
                finally:
                    self._open.discard(tunnel)
            except ProxyRefusal as refusal:
                writer.write(_response(refusal))
            except OSError as broken:
                _log.debug("a connection broke off: %r", broken)

    async def _serve(
        self,
        request: ProxyRequest,
        tunnel: _Tunnel,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                answers, upstream = await self._connect(request)
        except TimeoutError:
            why = f"{request.host}:{request.port} did not answer in time"
            raise ProxyRefusal(HTTPStatus.GATEWAY_TIMEOUT, why) from None
        with closing(upstream):
            if request.forwarded:
                upstream.write(request.forwarded)
            else:
                writer.write(_CONNECTED)
            await _first_failure(tunnel.copy(reader, upstream), tunnel.copy(answers, writer))

    async def _connect(self, request: ProxyRequest) -> _Streams:
        """Connect with a host, if the run may reach it. Raises `ProxyRefusal`."""
        if not request.token:
            why = "a run token is required"
            raise ProxyRefusal(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, why)
        if sum(one.token == request.token for one in self._open) > _MAX_PER_RUN:
            why = f"too many connections of this session (limit {_MAX_PER_RUN})"
            raise ProxyRefusal(HTTPStatus.TOO_MANY_REQUESTS, why)
        if len(self._open) > self._capacity:
            why = f"too many connections of all sessions (limit {self._capacity})"
            raise ProxyRefusal(HTTPStatus.SERVICE_UNAVAILABLE, why)
        try:
            network = await asyncio.to_thread(self._lookup, request.token)
        except ModelUnavailable as invalid:
            raise ProxyRefusal(HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, str(invalid)) from None
        if not request.is_name or not request.allowed_by(network.allowed):
            raise self._refused(network, request)
        addresses = await addresses_of(request.host, request.port, self._threads)
        public = [address for address in addresses if is_public(address)]
        if addresses and not public:
            raise self._refused(network, request, public=False)
        for address in public:
            with suppress(OSError):
                return await asyncio.open_connection(address, request.port)
        why = f"{request.host}:{request.port} cannot be {'reached' if addresses else 'looked up'}"
        raise ProxyRefusal(HTTPStatus.BAD_GATEWAY, why)

    def _refused(
        self, network: RunNetwork, request: ProxyRequest, *, public: bool = True
    ) -> ProxyRefusal:
        """Record that a host was refused, and return the exception to raise.

        `public` is False if the reason is that the host has no public address.
        """
        host, port = request.host, request.port
        where = Destination(session=network.session, host=host, port=port, public=public)
        self._refusals.add(where)
        why = "is not allowed by `network` of the project" if public else "has no public address"
        return ProxyRefusal(HTTPStatus.FORBIDDEN, f"{host}:{port} {why}")

    def _is_valid(self, token: str) -> bool:
        try:
            self._lookup(token)
        except ModelUnavailable:
            return False
        except StoreFailure:
            pass  # The next check tries again.
        return True


async def _first_failure(*copies: Coroutine[None, None, None]) -> None:
    """Wait until both directions have ended. If one fails, the other is cancelled."""
    tasks = [asyncio.ensure_future(copy) for copy in copies]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _response(refusal: ProxyRefusal) -> bytes:
    status, body = refusal.status, f"{refusal}\n".encode("latin-1", "replace")
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "content-type: text/plain; charset=latin-1",
        f"content-length: {len(body)}",
        "connection: close",
    ]
    if status is HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        lines.append('proxy-authenticate: Basic realm="mergewright"')
    return "\r\n".join([*lines, "", ""]).encode() + body
