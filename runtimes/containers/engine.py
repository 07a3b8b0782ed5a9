"""A client for the API of Docker, which Podman offers as well.

Every run has a process that uses this client (`client.py`). With docker-py instead of the standard
library alone, that process would need 29 MB instead of 10 and start 0.1 s later (measured). The
client uses few requests of a versioned API, so it works with old and new engines.
https://docs.docker.com/reference/api/engine/
"""

import json
import socket
from collections.abc import Mapping
from urllib.parse import urlencode

#: The newest version of the API that this client uses. For an older engine it uses that engine's
#: version.
_VERSION = (1, 44)
_VERSION_IN = "api-version:"
_REFUSED = 400  #: Status codes from here on.
_CHUNK = 65536


class EngineError(Exception):
    """The engine refused a request with the HTTP code `status`, or does not answer (`status` 0)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class EngineTimeout(EngineError):
    """The engine did not answer in time."""


class Engine:
    """An engine at a UNIX socket. Every request has a connection of its own."""

    def __init__(self, path: str, seconds: float = 60.0) -> None:
        """Use the socket at `path`. `seconds` is the time-out of each step of a request."""
        self.path = path
        self._seconds = seconds
        self._version = ""

    def answers(self) -> bool:
        """Whether the engine answers, even if it refuses the request."""
        try:
            self._request("GET", "/_ping", None)
        except EngineError as error:
            return error.status != 0
        return True

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | bytes | None = None,
        **query: str | Mapping[str, object],
    ) -> object:
        """Make a request; return the response as decoded JSON or as text. Raises `EngineError`.

        Bytes in `body` are sent as a tar archive, anything else as JSON. `query` becomes the query
        string; values that are mappings are sent as JSON.
        """
        if not self._version:
            found = self._request("GET", "/_ping", None)[1]
            offered = tuple(int(part) for part in (found or "1.40").split("."))
            self._version = ".".join(map(str, min(offered, _VERSION)))
        words = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in query.items()
        }
        question = f"?{urlencode(words)}" if words else ""
        return self._request(method, f"/v{self._version}{path}{question}", body)[0]

    def _request(
        self, method: str, path: str, body: Mapping[str, object] | bytes | None
    ) -> tuple[object, str]:
        """Return the response, and the API version that the engine offers; empty if unknown."""
        kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
        sent = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        # With HTTP/1.0 the answer ends with the connection, so there is nothing else to parse.
        head = f"{method} {path} HTTP/1.0\r\nHost: engine\r\nContent-Type: {kind}\r\n"
        answer = b""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self._seconds)
                connection.connect(self.path)
                connection.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
                while data := connection.recv(_CHUNK):
                    answer += data
            top, _, said = answer.partition(b"\r\n\r\n")
            first, *headers = top.decode("latin-1").split("\r\n")
            status = int(first.split()[1])
        except TimeoutError as error:
            raise EngineTimeout(f"no answer at {self.path}: {error}") from None
        except (OSError, ValueError, IndexError) as error:
            raise EngineError(f"no answer at {self.path}: {error}") from None
        value = _value(said)
        if status >= _REFUSED:
            message = value.get("message") if isinstance(value, dict) else value
            raise EngineError(str(message), status)
        offers = (
            line.partition(":")[2] for line in headers if line.lower().startswith(_VERSION_IN)
        )
        return value, next(offers, "").strip()


def _value(said: bytes) -> object:
    try:
        return json.loads(said)
    except ValueError:
        return said.decode(errors="replace").strip()
