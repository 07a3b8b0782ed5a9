"""An agent that listens at its program's port and answers byte by byte holds up nobody."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec
import pytest

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import port
from runtimes.files import write_private

#: What comes before the bytes that never end.
BEGINNINGS = {
    "nothing": b"",
    "a status line": b"HTTP/1.1 200 OK\r\nX-Long: ",
    "headers": b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
    "a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
}


@pytest.fixture
def dripping(request: pytest.FixtureRequest, files: RunFiles) -> Iterator[None]:
    """The run's port, which answers with the parameter's bytes, and then byte by byte."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(request.param)
            while not over.wait(0.02):
                connection.sendall(b" ")

    def listen(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],)).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        known = port.OpenCodeServer(port=server.getsockname()[1], password="secret")
        write_private(port.server_file(files), msgspec.json.encode(known).decode())
        thread = threading.Thread(target=listen, args=(server,))
        thread.start()
        yield
        over.set()
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("dripping", BEGINNINGS.values(), ids=BEGINNINGS, indirect=True)
@pytest.mark.usefixtures("dripping")
def test_a_port_that_drips_bytes_is_left_at_a_deadline(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "_DEADLINE_SECONDS", 0.3)
    began = time.monotonic()
    assert port.get(files, port.PENDING) is None
    with pytest.raises(OSError, match="its port"):
        port.dialog(files, "")
    assert time.monotonic() - began < 30  # The bytes would last for hours.
