"""A TCP proxy on loopback that resets connections at random, as a bad network does."""

import random
import socket
import struct
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no seconds: closing sends a reset


class Proxy:
    """Forwards connections to one server; each chunk of bytes may reset its connection."""

    def __init__(self, url: str) -> None:
        self._to = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._dice = random.Random()
        #: The probability that a chunk of bytes causes a reset, before or after it is forwarded.
        self.resets = 0.0
        self.count = 0  #: The number of resets.

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.close()

    @property
    def url(self) -> str:
        """The URL at which the proxy listens."""
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/"

    def seed(self, seed: int) -> None:
        """Seed the random generator of the resets."""
        self._dice.seed(seed)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._to)
            except OSError:
                near.close()
                continue
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while chunk := source.recv(_CHUNK):
                if self._dice.random() < self.resets:
                    self.count += 1
                    if self._dice.random() < 0.5:
                        target.sendall(chunk)  # The request takes effect; only the answer is lost.
                    self._reset(source, target)
                    return
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            self._reset(source, target)

    @staticmethod
    def _reset(*sockets: socket.socket) -> None:
        for one in sockets:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                one.shutdown(socket.SHUT_RDWR)  # Otherwise its reader keeps waiting.
                one.close()
            except OSError:
                pass
