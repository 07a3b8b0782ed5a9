"""Runs an application on uvicorn in its own thread."""

import asyncio
import errno
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from pathlib import Path

import uvicorn
from litestar import Litestar
from litestar.exceptions import HTTPException
from litestar.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.system.descriptors import connections

_log = logging.getLogger(__name__)

_START_SECONDS = 30.0
#: After a commit, the store's thread waits for the interpreter lock while this thread accepts
#: requests. By default it would wait up to 5 ms, ten times as long as the commit takes.
_SWITCH_SECONDS = 0.0005
#: Time limit for running requests when the server stops.
_STOP_SECONDS = 5
#: Why listening failed, and the remedy.
_REASONS = {
    errno.EADDRINUSE: "another program (perhaps another Mergewright) uses it;"
    " stop it or set another `port` under [server]",
    errno.EACCES: "permission denied; set a `port` of 1024 or above under [server]",
}
#: Time limit for a client to send its headers.
_HEADERS_SECONDS = 20.0
#: Time limit for a client to send a body, from its headers on.
_BODY_SECONDS = 20.0
#: The most bytes of a request line with its headers, and of chunk headers and trailers in a body.
HEADERS_BYTES = 65_536
#: The most bytes of the head (request line and headers) of a request to a proxy.
_MOST_HEAD = 16 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_LONGEST_METHOD = 16
#: More bytes than this are sent at once, and not together with what is written next.
_JOINED_BYTES = 8 * 1024

#: Serves a request to a proxy, given the bytes of its head, and closes the connection.
ProxyHandler = Callable[
    [bytes, asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]
]


class CannotListen(Exception):
    """Listening failed; the message has the reason and the remedy."""


class _JoiningTransport(asyncio.Transport):
    """A transport that sends together what is written in one step of a task.

    uvicorn writes the head and the body of a response one after the other. Two system calls would
    cost more, and wake the client twice. The other methods that uvicorn calls are those of the
    wrapped transport.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        for name in ("abort", "get_extra_info", "is_closing", "pause_reading", "resume_reading"):
            setattr(self, name, getattr(transport, name))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send the data at the end of the event loop's current step, or immediately if large."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(bytes(data))
        if len(data) > _JOINED_BYTES:  # So that a slow client holds the application back.
            self._send()

    def close(self) -> None:
        """Close the connection after everything that was written is sent."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts.clear()


class _Protocol(HttpToolsProtocol):
    """HTTP with limits: on time and size of headers, on the time of bodies, and on connections.

    The application could not enforce these, because it gets a request only when its headers are
    complete. A new connection beyond the limit closes the connection that has been idle for
    longest. If no connection is idle, the new one is closed.
    """

    #: The idle connections (no request with complete headers), the oldest first; the limit of all
    #: connections; the time limit of a body in seconds. Each server has a subclass with its own.
    idle: dict["_Protocol", None]
    most: int
    body_seconds: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first headers, and enforce the limit on open connections.

        If more than `most` connections are open, the connection that has been idle for longest is
        closed. If no connection is idle, the new connection is closed.
        """
        super().connection_made(_JoiningTransport(transport, self.loop))
        self._unparsed = 0  #: Bytes since headers were complete, or a body's data arrived.
        self._late = self.loop.call_later(_HEADERS_SECONDS, transport.close)
        if len(self.connections) > self.most:
            oldest = next(iter(self.idle), self)
            self.idle.pop(oldest, None)
            oldest.transport.abort()
        self.idle[self] = None

    def data_received(self, data: bytes) -> None:
        """Parse the bytes, and refuse more headers or trailers than a client may send."""
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEADERS_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start the time limit of the request's headers."""
        super().on_message_begin()
        self._late.cancel()
        self._late = self.loop.call_later(_HEADERS_SECONDS, self.transport.close)

    def on_headers_complete(self) -> None:
        """Start the time limit of the body."""
        self._late.cancel()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEADERS_BYTES:  # They arrived at once; the parser stops at this exception.
            raise ValueError("the headers are too large")
        self._unparsed = 0
        self.idle.pop(self, None)
        super().on_headers_complete()
        self._late = self.loop.call_later(
            self.body_seconds, self._refuse, HTTPStatus.REQUEST_TIMEOUT
        )

    def on_body(self, body: bytes) -> None:
        """Restart the count of unparsed bytes, which limits the size of headers and trailers."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the time limit of the body."""
        self._late.cancel()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the connection as idle, unless its next request has arrived already.

        A connection that is being closed serves no further request.
        """
        if self.transport.is_closing() or not self.pipeline:
            self.idle[self] = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limit."""
        self._late.cancel()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, or one whose headers are too large."""
        if self._unparsed > HEADERS_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            super().send_400_response(msg)

    def _refuse(self, status: HTTPStatus) -> None:
        """Respond with the status, unless a response has begun, and close the connection."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            head = f"HTTP/1.1 {status.value} {status.phrase}"
            self.transport.write(
                f"{head}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".encode()
            )
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore websocket upgrades without a warning in the log."""


class _ProxyProtocol(_Protocol):
    """HTTP whose connections may begin with a request to a proxy, which uvicorn cannot serve.

    Such a request names another server: `CONNECT host:port`, or an `http://` URL as its target.
    https://www.rfc-editor.org/rfc/rfc9112#section-3.2
    """

    handler: ProxyHandler

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Prepare for a request to a proxy or to this server."""
        super().connection_made(transport)
        self._own = transport
        self._head: bytearray | None = bytearray()  #: If None, the request is for this server.

    def data_received(self, data: bytes) -> None:
        """Collect the head of a request to a proxy; pass on the data of all other requests.

        Until the head is complete, the connection counts as idle.
        """
        if self._head is None:
            super().data_received(data)
            return
        self._head += data
        if (to_proxy := _is_to_proxy(self._head)) is False:
            data, self._head = bytes(self._head), None
            super().data_received(data)
        elif to_proxy and _END_OF_HEAD in self._head[:_MOST_HEAD]:
            head, _, rest = bytes(self._head).partition(_END_OF_HEAD)
            self._hand_over(head, rest)
        elif len(self._head) > _MOST_HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _hand_over(self, head: bytes, rest: bytes) -> None:
        self._late.cancel()
        self.idle.pop(self, None)
        reader = asyncio.StreamReader(loop=self.loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self.loop)
        self._own.set_protocol(protocol)
        protocol.connection_made(self._own)
        reader.feed_data(rest)
        writer = asyncio.StreamWriter(self._own, protocol, reader, self.loop)
        task = self.loop.create_task(self.handler(head, reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self._handled)

    def _handled(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.connections.discard(self)
        if not task.cancelled() and (problem := task.exception()):
            _log.error("a request to the proxy failed", exc_info=problem)


def _is_to_proxy(head: bytes | bytearray) -> bool | None:
    """Whether a request is one to a proxy; None until enough of its bytes have arrived."""
    method, space, target = bytes(head[: 2 * _LONGEST_METHOD]).partition(b" ")
    if not space:
        return None if len(method) < _LONGEST_METHOD else False
    if method == b"CONNECT":
        return True
    scheme = target[:7].lower()
    return None if scheme != b"http://" and b"http://".startswith(scheme) else scheme == b"http://"


class HttpServer:
    """An HTTP server. It binds its addresses when it is created, before anything else starts."""

    def __init__(
        self,
        app: Litestar,
        host: str,
        port: int,
        unix: Path | None = None,
        proxy: ProxyHandler | None = None,
        *,
        body_seconds: float = _BODY_SECONDS,
    ) -> None:
        """Bind the address; port 0 picks a free one. Raises `CannotListen`.

        `app.state.streams` has the long-lived responses; its `close` ends them and all later ones.
        `unix` is the path of a further UNIX socket to listen on, in a folder of this user only;
        raises `OSError` if the socket cannot be made. `proxy` serves the connections that begin
        with a request to a proxy. `body_seconds` is the time limit within which a client has to
        send a body.
        """
        self._streams = app.state.streams
        most = connections()
        others = [_listening_at(unix, most)] if unix else []
        try:
            self._sockets = [_listening(host, port, most), *others]
        except CannotListen:
            for one in others:
                one.close()
            raise
        self.port: int = self._sockets[0].getsockname()[1]
        limits = {"idle": {}, "most": most, "body_seconds": body_seconds}
        protocol = (
            type("_Limited", (_ProxyProtocol,), {**limits, "handler": staticmethod(proxy)})
            if proxy
            else type("_Limited", (_Protocol,), limits)
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=protocol,
                ws="none",
                lifespan="on",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # Any program of this machine could name another client.
                log_config=None,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=(self._sockets,), name="web", daemon=True
        )

    def start(self) -> None:
        """Start, and wait until the server answers.

        Also shortens the switch interval of this process's threads. Raises `RuntimeError` if the
        server ends or takes 30 s.
        """
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the web server did not start; see the log lines above")
            time.sleep(0.005)

    def stop(self) -> None:
        """Give running requests 5 seconds to end, stop, and release the addresses. Idempotent."""
        self._streams.close()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        for one in self._sockets:
            one.close()


async def log_failure(problem: Exception, scope: Scope) -> None:
    """Log an exception unless it is an `HTTPException`, whose text the response contains."""
    if not isinstance(problem, HTTPException):
        _log.error("%s failed", scope["path"], exc_info=problem)


def _listening(host: str, port: int, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        other = f"{error.strerror or error}; check `host` under [server]"
        why = _REASONS.get(error.errno or 0, other)
        raise CannotListen(f"cannot listen on {host}, port {port}: {why}") from error


def _listening_at(path: Path, backlog: int) -> socket.socket:
    """Listen at a UNIX socket, which atomically replaces that of an earlier process."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.parent.chmod(0o700)
    new = path.with_name("new")
    new.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(new))
        made.listen(backlog)
        new.replace(path)
    except OSError:
        made.close()
        raise
    return made
