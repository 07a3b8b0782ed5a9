"""File descriptors: the limit is raised, and connections leave enough for the bot's own work."""

import asyncio
import http.client
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from litestar import Litestar, get
from litestar.datastructures import State

from bot.model_proxy import proxy
from bot.system import descriptors
from bot.system.http_server import HttpServer
from runtimes import supervised
from runtimes.base import RuntimeFailure
from runtimes.files import read_text
from runtimes.supervise import MARK, identity
from runtimes.workspaces.refs import Tip
from tests.world.waiting import eventually

MOST = 8
NONE = resource.RLIM_INFINITY


@contextmanager
def files_used_up() -> Iterator[None]:
    """Use up the descriptors of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened:
        used = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + 10, hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with suppress(OSError):
            while True:
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1024, 4096, 4096),
        (1024, 1024, 1024),
        (256, NONE, 65_536),
        (1024, 1_000_000_000, 65_536),
        (100_000, 1_000_000, 100_000),
        (NONE, NONE, 65_536),
    ],
)
@pytest.mark.parametrize("allowed", [True, False])
def test_the_limit_is_raised_as_far_as_it_is_allowed(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int, allowed: bool
) -> None:
    limits = [soft, hard]

    def set_limits(_: int, wanted: tuple[int, int]) -> None:
        if not allowed:
            raise ValueError("not allowed to raise the limit")
        limits[:] = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", set_limits)
    assert descriptors.raise_limit() == (raised if allowed or soft == NONE else soft)
    assert limits[1] == hard


@pytest.mark.parametrize("limit", [*range(512, 9000, 97), 65_536, 1_000_000, NONE])
def test_connections_leave_enough_for_the_bots_own_work(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    most, models = descriptors.connections(), proxy._capacity()
    # Two servers, each with as many connections waiting at each of their addresses; the requests to
    # models and to other hosts.
    left = descriptors.limit_of_files() - 5 * most - models - most
    assert left >= descriptors.RESERVED
    assert most >= 16


@get("/", sync_to_thread=False)
def answer() -> str:
    return "here"


@get("/long", sync_to_thread=False)
def long_answer() -> str:
    return "x" * 40_000


class Busy:
    """A route that answers once it is released."""

    def __init__(self) -> None:
        self.asked, self.released = threading.Event(), threading.Event()

    def route(self) -> Any:
        @get("/busy")
        async def busy() -> str:
            self.asked.set()
            await asyncio.to_thread(self.released.wait, 10)
            return "done"

        return busy


@pytest.fixture
def busy() -> Busy:
    return Busy()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, busy: Busy) -> Iterator[HttpServer]:
    monkeypatch.setattr("bot.system.http_server.connections", lambda: MOST)
    streams: Any = SimpleNamespace(close=lambda: None)
    app = Litestar(
        route_handlers=[answer, long_answer, busy.route()], state=State({"streams": streams})
    )
    running = HttpServer(app, "127.0.0.1", 0)
    running.start()
    yield running
    busy.released.set()
    running.stop()


def connect(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def ask(server: HttpServer, path: str = "/") -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


def requests(*paths: bytes) -> bytes:
    return b"".join(b"GET %b HTTP/1.1\r\nHost: here\r\n\r\n" % path for path in paths)


def content(connection: socket.socket) -> bytes:
    with closing(http.client.HTTPResponse(connection)) as response:
        response.begin()
        return response.read()


def held(server: HttpServer) -> int:
    return len(server._server.server_state.connections)


def test_idle_connections_give_way_to_new_ones(server: HttpServer) -> None:
    with ExitStack() as opened:
        for _ in range(5 * MOST):
            opened.enter_context(connect(server))
        assert ask(server) == b"here"
        eventually(lambda: held(server) <= MOST, "the oldest are closed")
        assert held(server) > MOST / 2


def test_a_request_under_way_is_not_dropped_for_new_connections(
    server: HttpServer, busy: Busy
) -> None:
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, "/busy")))
    thread.start()
    assert busy.asked.wait(5)
    with ExitStack() as opened:
        for _ in range(3 * MOST):
            opened.enter_context(connect(server))
        assert ask(server) == b"here"
        busy.released.set()
        thread.join(5)
    assert answers == [b"done"]


def test_a_pipelined_request_is_not_dropped_for_new_connections(
    server: HttpServer, busy: Busy
) -> None:
    with connect(server) as pipelined, ExitStack() as opened:
        pipelined.sendall(requests(b"/", b"/busy"))
        assert busy.asked.wait(5)
        assert content(pipelined) == b"here"
        for _ in range(3 * MOST):
            opened.enter_context(connect(server))
        assert ask(server) == b"here"
        busy.released.set()
        assert content(pipelined) == b"done"


def test_a_closing_connection_with_a_pipelined_request_gives_way_to_new_ones(
    server: HttpServer, busy: Busy
) -> None:
    """It stays open as long as its client does not read the first response."""
    server._sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def closing() -> bool:
        return any(one.transport.is_closing() for one in [*server._server.server_state.connections])

    with socket.socket() as unread, ExitStack() as opened:
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        unread.connect(("127.0.0.1", server.port))
        unread.sendall(requests(b"/long", b"/busy"))
        assert busy.asked.wait(5)
        unread.sendall(requests(b"/") + b"garbage\r\n\r\n")
        eventually(closing, "the server closes the connection")
        busy.released.set()

        def displaced() -> bool:
            opened.enter_context(connect(server))
            return not closing()

        eventually(displaced, "the closing connection is displaced")


def test_a_kept_alive_connection_counts_as_idle_again(server: HttpServer) -> None:
    with connect(server) as kept, ExitStack() as opened:
        kept.sendall(requests(b"/"))
        assert content(kept) == b"here"
        for _ in range(3 * MOST):
            opened.enter_context(connect(server))
        eventually(lambda: held(server) <= MOST, "the oldest are closed")
        with suppress(ConnectionResetError):
            assert kept.recv(65536) == b""


# -- nothing is concluded from a file that cannot be opened ----------------------------------------


@pytest.fixture
def ref(tmp_path: Path) -> Tip:
    tip = tmp_path / "refs" / "heads" / "main"
    tip.parent.mkdir(parents=True)
    tip.write_text("a" * 40)
    return Tip(tmp_path, "refs/heads/main")


def test_a_ref_that_could_not_be_read_is_read_again(ref: Tip) -> None:
    with files_used_up(), pytest.raises(OSError, match="Too many open files"):
        ref.commit()
    assert ref.commit() == "a" * 40


def test_a_file_that_could_not_be_read_does_not_count_as_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert read_text(tmp_path / "none") == ""
    with files_used_up(), pytest.raises(OSError, match="Too many open files"):
        read_text(tmp_path / "file")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run whose supervisor lives."""
    folder = tmp_path / "run"
    folder.mkdir()
    environment = {**os.environ, MARK: str(folder.resolve())}
    program = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=-1)
    supervisor = identity(program.pid)
    (folder / "pid.json").write_bytes(msgspec.json.encode(supervisor))
    yield folder
    program.kill()
    program.communicate()


@pytest.mark.parametrize("of", [supervised.outcome, lambda folder: supervised.end(folder, 0.1)])
def test_a_living_run_does_not_count_as_ended(run: Path, of: Callable[[Path], object]) -> None:
    assert supervised.outcome(run) is None
    with files_used_up(), pytest.raises((OSError, RuntimeFailure)):
        of(run)
    assert supervised.outcome(run) is None


def test_a_run_is_ended_also_with_many_open_files(run: Path) -> None:
    with ExitStack() as opened:
        while (handle := os.open(os.devnull, os.O_RDONLY)) < 1100:
            opened.callback(os.close, handle)
        opened.callback(os.close, handle)
        supervised.end(run, 0.1)
    ending = supervised.outcome(run)
    assert ending
    assert ending.signal in (None, signal.SIGTERM)
