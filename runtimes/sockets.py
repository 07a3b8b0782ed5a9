"""Connections to the ports of programs, which may be in a sandbox with a loopback of its own."""

import http.client
import os
import socket
from pathlib import Path


def loopback_connection(port: int, forwarded: Path, seconds: float) -> http.client.HTTPConnection:
    """Return a connection to a program's port, which is not yet open.

    `forwarded` is the socket that leads to the port of a program in a sandbox; there is none where
    the program shares the loopback of this machine. `seconds` is the time-out of each step.
    """
    if forwarded.exists():
        return _Forwarded(forwarded, seconds)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)


class _Forwarded(http.client.HTTPConnection):
    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("127.0.0.1", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect by the folder's descriptor: the path of a socket is limited to 107 bytes."""
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)
