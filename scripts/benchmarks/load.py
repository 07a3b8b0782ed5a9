"""Sends signed deliveries as fast as they are answered, in a process of its own.

Arguments: port, connections, seconds, secret, a word that makes the delivery ids unique.
Prints one line of JSON: the number of answers, and median and 99th percentile of their latencies.
"""

import asyncio
import hmac
import itertools
import json
import sys
import time
from typing import cast

import uvloop

BODY_BYTES = 12 * 1024


def body() -> bytes:
    """Return the body of a delivery of the size that GitHub's usually have."""
    payload = {
        "action": "labeled",
        "issue": {"number": 12, "title": "A title", "body": ""},
        "repository": {"id": 1, "full_name": "acme/widgets"},
    }
    space = BODY_BYTES - len(json.dumps(payload))
    payload["issue"] = {"number": 12, "title": "A title", "body": "x" * space}
    return json.dumps(payload).encode()


class Connection(asyncio.Protocol):
    """A connection that sends one request after the other until the time is over."""

    def __init__(self, requests: "Requests", until: float) -> None:
        self.latencies: list[float] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._until = until
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end or len(rest) < _length(head):
            return
        now = time.perf_counter()
        self.latencies.append(now - self._sent)
        if not head.startswith((b"HTTP/1.1 202", b"HTTP/1.1 200")):
            self.over.set_exception(RuntimeError(f"refused: {self._received[:200]!r}"))
        elif now >= self._until:
            self.over.set_result(None)
            self._transport.close()
        else:
            self._received = b""
            self._send()

    def connection_lost(self, problem: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(problem or ConnectionError("the server hung up"))

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.writelines(self._requests.next())


class Requests:
    """Signed requests that differ only in their delivery ID."""

    def __init__(self, secret: str, word: str) -> None:
        content = body()
        proof = hmac.digest(secret.encode(), content, "sha256").hex()
        self._head = (
            "POST /webhooks/github HTTP/1.1\r\nhost: loopback\r\n"
            "content-type: application/json\r\nx-github-event: issues\r\n"
            f"x-hub-signature-256: sha256={proof}\r\ncontent-length: {len(content)}\r\n"
            f"x-github-delivery: {word}-"
        ).encode()
        self._tail = b"\r\n\r\n" + content
        self._numbers = itertools.count()

    def next(self) -> tuple[bytes, ...]:
        return self._head, b"%d" % next(self._numbers), self._tail


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise RuntimeError(f"an answer without a length: {head!r}")


async def load(port: int, connections: int, seconds: float, secret: str, word: str) -> list[float]:
    """Send load and return the latency of every response in seconds, sorted."""
    requests = Requests(secret, word)
    until = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Connection(requests, until), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(connection.over for _, connection in made))
    return sorted(latency for _, connection in made for latency in connection.latencies)


def main() -> None:
    port, connections, seconds, secret, word = sys.argv[1:]
    began = time.perf_counter()
    latencies = uvloop.run(load(int(port), int(connections), float(seconds), secret, word))
    measured = {
        "answers": len(latencies),
        "rps": len(latencies) / (time.perf_counter() - began),
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1000,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
