"""Runs the application: uvicorn in a thread of its own, started and stopped from outside."""

import asyncio
import errno
import logging
import socket
import sys
import threading
import time
from typing import Protocol

import uvicorn
from litestar import Litestar
from litestar.exceptions import HTTPException
from litestar.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_log = logging.getLogger(__name__)

_START_SECONDS = 30.0
#: A commit ends in the store's thread, which then waits for the interpreter while this one takes
#: requests: by default for up to 5 ms, ten times what the commit took.
_SWITCH_SECONDS = 0.0005
#: How long requests under way may take when the server stops.
_STOP_SECONDS = 5
#: How long a client may take to say what it asks for.
_HEADERS_SECONDS = 20.0


class CannotListen(Exception):
    """The address cannot be listened on; the message says why and what to do."""


class ClosesStreams(Protocol):
    """What of an application goes on for as long as somebody listens."""

    def close(self) -> None:
        """End it, and what of it is to come. From any thread."""
        ...


class _Protocol(HttpToolsProtocol):
    """HTTP that waits for nobody who never comes to the end of a request's headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody is there."""
        super().connection_made(transport)
        self._late = self.loop.call_later(_HEADERS_SECONDS, transport.close)

    def on_message_begin(self) -> None:
        """The next request begins."""
        super().on_message_begin()
        self._late.cancel()
        self._late = self.loop.call_later(_HEADERS_SECONDS, self.transport.close)

    def on_headers_complete(self) -> None:
        """It has said what it asks for."""
        self._late.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._late.cancel()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever asks for a websocket is answered as if it had not: that is no news."""


class HttpServer:
    """One HTTP server. The address is taken when it is made, so that nothing starts without it."""

    def __init__(self, app: Litestar, host: str, port: int) -> None:
        """Take the address; port 0 takes any free one. Raises `CannotListen`."""
        self._streams: ClosesStreams = app.state.streams
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="uvloop",
                http=_Protocol,
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
        """Serve; returns once requests are answered."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("the web server did not start: its log says why")
            time.sleep(0.005)

    def stop(self) -> None:
        """Finish the requests under way and give the address back. Stopping twice does nothing."""
        self._streams.close()
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()


async def log_failure(problem: Exception, scope: Scope) -> None:
    """Have what an application did not expect in the log; its answer tells nobody."""
    if not isinstance(problem, HTTPException):
        _log.error("%s failed", scope["path"], exc_info=problem)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}, port {port}: {_why(error)}") from error


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "another program (perhaps another Mergewright) listens there;"
            " end it, or set another `port` under [server]"
        )
    if error.errno == errno.EACCES:
        return "this user may not; set a `port` of 1024 or above under [server]"
    return f"{error.strerror or error}; check `host` under [server]"
