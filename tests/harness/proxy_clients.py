"""A client of the proxy, as from a sandbox."""

import base64
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.harness.model_proxies import SECONDS, Agent


@contextmanager
def connects(agent: Agent) -> Iterator[socket.socket]:
    """A connection to the proxy's socket."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as made:
        made.settimeout(SECONDS)
        made.connect(str(agent.socket))
        yield made


def authorization(token: str) -> bytes:
    shown = base64.b64encode(token.replace(".", ":", 1).encode())
    return b"Proxy-Authorization: Basic " + shown


def connect(where: str, *headers: bytes) -> bytes:
    """A request for a connection, with these lines as its headers."""
    return b"\r\n".join([f"CONNECT {where} HTTP/1.1".encode(), *headers, b"", b""])


def response(client: socket.socket) -> bytes:
    """The head of a response."""
    head = b""
    while b"\r\n\r\n" not in head and (data := client.recv(4096)):
        head += data
    return head


def status(agent: Agent, request: bytes) -> int:
    """The status with which the proxy answers; 0: it closes the connection without one."""
    with connects(agent) as client:
        client.sendall(request)
        head = response(client)
    return int(head.split()[1]) if head else 0
