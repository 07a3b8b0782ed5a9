"""Connections to ports of agents' programs, including those in sandboxes."""

import http.client
import os
import socket
from pathlib import Path


def loopback_connection(port: int, forwarded: Path, seconds: float) -> http.client.HTTPConnection:
    """Return a connection to a program's port; the first request opens it.

    `forwarded` is the path of the socket that leads to the port of a program in a sandbox. If it
    does not exist, the program shares the loopback of this machine. `seconds` limits connecting,
    each write and each read.
    """
    if forwarded.exists():
        return _Forwarded(forwarded, seconds)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)


class _Forwarded(http.client.HTTPConnection):
    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("127.0.0.1", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect by the folder's descriptor, because a socket's path is limited to 107 bytes."""
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)
