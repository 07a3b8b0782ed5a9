"""Runs an application on uvicorn in its own thread."""

import asyncio
import errno
import logging
import socket
import sys
import threading
import time

import uvicorn
from litestar import Litestar
from litestar.exceptions import HTTPException
from litestar.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.system.descriptors import connections

_log = logging.getLogger(__name__)

_START_SECONDS = 30.0
#: After a commit, the store's thread waits for the interpreter lock while this thread accepts
#: requests: by default for up to 5 ms, ten times as long as the commit itself.
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


class CannotListen(Exception):
    """Listening failed; the message has the reason and the remedy."""


class _Protocol(HttpToolsProtocol):
    """HTTP with a time limit for headers, and a limit on connections.

    A new connection beyond the limit takes the place of the one that has been without a request
    for longest; where all have one, it is closed.
    """

    #: The connections without a request whose headers are complete, the oldest first, and the limit
    #: on all; each server has a subclass with its own.
    idle: dict["_Protocol", None]
    most: int

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(_HEADERS_SECONDS, transport.close)
        if len(self.connections) > self.most:
            oldest = next(iter(self.idle), self)
            self.idle.pop(oldest, None)
            oldest.transport.abort()
        self.idle[self] = None

    def on_message_begin(self) -> None:
        """Start the time limit of the next request."""
        super().on_message_begin()
        self._late.cancel()
        self._late = self.loop.call_later(_HEADERS_SECONDS, self.transport.close)

    def on_headers_complete(self) -> None:
        """End the time limit."""
        self._late.cancel()
        self.idle.pop(self, None)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Count the connection as idle until the next request."""
        self.idle[self] = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time limit."""
        self._late.cancel()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore websocket upgrades without a warning in the log."""


class HttpServer:
    """An HTTP server. It binds its address at construction, before anything else starts."""

    def __init__(self, app: Litestar, host: str, port: int) -> None:
        """Bind the address; port 0 picks a free one. Raises `CannotListen`.

        `app.state.streams` has the long-lived responses; its `close` ends all, also new ones.
        """
        self._streams = app.state.streams
        most = connections()
        self._socket = _listening(host, port, most)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=type("_Limited", (_Protocol,), {"idle": {}, "most": most}),
                ws="none",
                lifespan="on",
                access_log=False,
                server_header=False,
                log_config=None,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="web", daemon=True
        )

    def start(self) -> None:
        """Start serving; returns when requests are answered."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the web server did not start; see its log")
            time.sleep(0.005)

    def stop(self) -> None:
        """Finish running requests and release the address. Idempotent."""
        self._streams.close()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()


async def log_failure(problem: Exception, scope: Scope) -> None:
    """Log unexpected exceptions, which responses do not contain."""
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
