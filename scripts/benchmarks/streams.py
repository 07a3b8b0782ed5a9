"""Measures the time from a session's change to its arrival at many pages and API clients."""

import selectors
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import quantiles

from lifecycle.model.status import Status
from scripts.benchmarks.figure import Figure
from tests.web.conftest import Site

#: The number of streams of each kind.
STREAMS, CHANGES, LIMIT_MS = 100, 100, 250.0
_PATHS = {"page": "/events", "api": "/api/v1/events"}
TOKEN = "token-of-the-bench"


def run() -> dict[str, Figure]:
    """Change one session repeatedly; each time, all streams must get an event."""
    with tempfile.TemporaryDirectory(prefix="mw-") as name, ExitStack() as opened:
        site = opened.enter_context(closing(Site(Path(name), token=TOKEN)))
        session = site.session(1)
        streams = {
            kind: [opened.enter_context(stream(site.server.port, path)) for _ in range(STREAMS)]
            for kind, path in _PATHS.items()
        }
        taken: dict[str, list[float]] = {kind: [] for kind in streams}
        for number in range(CHANGES):
            begun = time.perf_counter()
            site.decide(session, Status.WORKING, f"step {number}")
            for kind, last in arrivals(streams).items():
                taken[kind].append((last - begun) * 1000)
    return {
        f"streams.{kind}": Figure(
            value=(worst := quantiles(times, n=20)[-1]),
            unit="ms p95",
            limit=f"<= {LIMIT_MS:g} for the last of {STREAMS}",
            holds=worst <= LIMIT_MS,
        )
        for kind, times in taken.items()
    }


@contextmanager
def stream(port: int, path: str) -> Iterator[socket.socket]:
    """Open a stream, discard the data up to its first keepalive, and yield the connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        connection.sendall(head.encode())
        received = b""
        while b": alive" not in received:
            received += connection.recv(65_536)
        yield connection


def arrivals(streams: dict[str, list[socket.socket]]) -> dict[str, float]:
    """Return the time at which the last stream of each kind got its event."""
    last: dict[str, float] = {}
    with selectors.DefaultSelector() as selector:
        for kind, connections in streams.items():
            for connection in connections:
                selector.register(connection, selectors.EVENT_READ, kind)
        while selector.get_map():
            for key, _ in selector.select():
                if b"data: " in key.fileobj.recv(65_536):  # type: ignore[union-attr]
                    last[key.data] = time.perf_counter()
                    selector.unregister(key.fileobj)
    return last
