"""Measures the time from a session's change to its arrival at a thousand pages, and its cost.

The server is a process of its own, as a bot is, so that its processor time is measured alone.
"""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import quantiles

from lifecycle.model.status import Status
from scripts.benchmarks.figure import Figure
from scripts.benchmarks.streams import TOKEN, arrivals, stream
from tests.web.conftest import Site

#: The number of open pages, of changes of a session, and of seconds between two changes.
PAGES, CHANGES, PAUSE = 1_000, 20, 1.0
#: The limits: until the last page has a change, and of the server's processor time.
SECONDS, CORES = 1.0, 0.5
#: What this process and the server need besides the streams.
_OTHER_FILES = 200


def run() -> dict[str, Figure]:
    """Change one session once a second; each time, all pages must get an event."""
    _allow_files(PAGES + _OTHER_FILES)
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    server = context.Process(target=_serve, args=(there,), name="server", daemon=True)
    server.start()
    try:
        return _measured(here)
    finally:
        here.send("stop")
        server.join()


def _measured(server: Connection) -> dict[str, Figure]:
    port = int(server.recv())
    with ExitStack() as opened:
        streams = [opened.enter_context(stream(port, "/events")) for _ in range(PAGES)]
        taken, begun, used = list[float](), time.perf_counter(), _used(server)
        for number in range(CHANGES):
            # Paced: a bot at full speed would gather these changes into one event.
            time.sleep(max(0.0, begun + number * PAUSE - time.perf_counter()))
            changed = time.perf_counter()
            server.send(f"step {number}")
            taken.append(arrivals({"page": streams})["page"] - changed)
            server.recv()
        # Of the time that the changes take on a quiet machine: a loaded one only spreads the work.
        cores = (_used(server) - used) / (CHANGES * PAUSE)
    worst = quantiles(taken, n=20)[-1]
    return {
        "crowd.last": Figure(
            value=worst,
            unit="s p95",
            limit=f"<= {SECONDS:g} for the last of {PAGES:,}",
            holds=worst <= SECONDS,
        ),
        "crowd.cores": Figure(
            value=cores,
            unit="cores",
            limit=f"<= {CORES:g} at a change a second",
            holds=cores <= CORES,
        ),
    }


def _used(server: Connection) -> float:
    """Return the processor time that the server has used, in seconds."""
    server.send("used")
    return float(server.recv())


def _serve(parent: Connection) -> None:
    """Serve pages of one session, which changes on demand; a message `stop` ends it."""
    _allow_files(PAGES + _OTHER_FILES)
    with (
        tempfile.TemporaryDirectory(prefix="mw-") as name,
        closing(Site(Path(name), token=TOKEN)) as site,
    ):
        session = site.session(1)
        parent.send(site.server.port)
        for asked in _received(parent):
            if asked == "used":
                parent.send(time.process_time())
            else:
                site.decide(session, Status.WORKING, asked)
                parent.send("done")


def _received(parent: Connection) -> Iterator[str]:
    while (asked := parent.recv()) != "stop":
        yield asked


def _allow_files(wanted: int) -> None:
    """Allow this process `wanted` open files. Raises `RuntimeError` if the hard limit is lower."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != resource.RLIM_INFINITY and now < wanted:
        if most != resource.RLIM_INFINITY and most < wanted:
            raise RuntimeError(f"{wanted} open files are needed, but only {most} are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
