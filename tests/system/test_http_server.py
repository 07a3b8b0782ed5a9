"""Limits of the HTTP server for clients that nobody has authenticated, over real sockets."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import repeat

import httpx
import pytest
from litestar import Litestar, Request, asgi, get, post
from litestar.datastructures import State
from litestar.types import Receive, Scope, Send

from bot.system.http_server import HEADERS_BYTES, HttpServer
from tests.world.waiting import PATIENCE

#: More than the buffers of both sockets hold.
_MUCH = 64 * 1024 * 1024
_PIECE = b"a" * 65_536


class _NoStreams:
    def close(self) -> None: ...


@get("/")
async def _read() -> str:
    return "here"


@post("/")
async def _write(request: Request[object, object, State]) -> str:
    return str(len(await request.body()))


@asgi("/flood", copy_scope=False)
async def _flood(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for scope["app"].state.sent in range(_MUCH // len(_PIECE)):
        await send({"type": "http.response.body", "body": _PIECE, "more_body": True})


@pytest.fixture
def serve() -> Iterator[Callable[..., HttpServer]]:
    servers: list[HttpServer] = []

    def start(*, body_seconds: float = PATIENCE) -> HttpServer:
        app = Litestar([_read, _write], openapi_config=None, state=State({"streams": _NoStreams()}))
        servers.append(HttpServer(app, "127.0.0.1", 0, body_seconds=body_seconds))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def connect(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def sent(connection: socket.socket, beginning: bytes) -> int:
    """Send a beginning and then more and more; how much the server took before it closed."""
    count = 0
    with suppress(ConnectionError):
        connection.sendall(beginning)
        for piece in repeat(_PIECE, _MUCH // len(_PIECE)):
            connection.sendall(piece)
            count += len(piece)
    return count


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Long: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    ],
    ids=["url", "name", "value", "trailer", "extension"],
)
def test_what_surrounds_a_body_is_limited(
    serve: Callable[..., HttpServer], beginning: bytes
) -> None:
    server = serve()
    with closing(connect(server)) as connection:
        assert sent(connection, beginning) < _MUCH
    assert httpx.get(f"http://127.0.0.1:{server.port}/").text == "here"


def test_many_short_headers_are_limited_too(serve: Callable[..., HttpServer]) -> None:
    with closing(connect(serve())) as connection, suppress(ConnectionError):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        for number in range(_MUCH // 256):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"a" * 240))
        pytest.fail("the server took all of them")


@pytest.mark.parametrize(("length", "status"), [(HEADERS_BYTES + 1, 431), (60_000, 200)])
def test_headers_that_are_too_large_are_refused_with_the_reason(
    serve: Callable[..., HttpServer], length: int, status: int
) -> None:
    url = f"http://127.0.0.1:{serve().port}/"
    assert httpx.get(url, headers={"x-long": "a" * length}).status_code == status


def test_a_large_body_in_small_chunks_is_no_header(serve: Callable[..., HttpServer]) -> None:
    url, chunks = f"http://127.0.0.1:{serve().port}/", repeat(b"a" * 100, 3000)
    assert httpx.post(url, content=chunks).text == str(300_000)


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"])
def test_head_and_body_of_a_response_arrive_together(
    serve: Callable[..., HttpServer], ending: bytes
) -> None:
    with closing(connect(serve())) as connection:
        for _ in range(1 if ending else 50):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + ending + b"\r\n")
            assert connection.recv(65_536).endswith(b"\r\n\r\nhere")
        assert not ending or connection.recv(1) == b""


def test_a_client_that_does_not_read_holds_back_a_long_response() -> None:
    app = Litestar([_flood], openapi_config=None, state=State({"streams": _NoStreams()}))
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    with closing(connect(server)) as connection:
        connection.sendall(b"GET /flood HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.recv(1)
        assert app.state.sent < _MUCH // len(_PIECE) - 1
    server.stop()


@pytest.mark.parametrize("begun", [b"", b"a"])
def test_a_body_that_does_not_arrive_in_time_is_refused(
    serve: Callable[..., HttpServer], begun: bytes
) -> None:
    with closing(connect(serve(body_seconds=0.2))) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n" + begun)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_connection_outlives_the_time_of_a_body(serve: Callable[..., HttpServer]) -> None:
    server = serve(body_seconds=0.2)
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as client:
        assert client.post("/", content=b"abc").text == "3"
        stopped = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        stopped.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        with closing(stopped):
            assert stopped.recv(100)  # Later than the limit of the first one.
        assert client.post("/", content=b"abcd").text == "4"
