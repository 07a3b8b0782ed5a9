"""A client for the API of Docker, which Podman offers as well.

Every run has a process that uses this client (`client.py`). With docker-py instead of the standard
library alone, that process would need 29 MB instead of 10 and start 0.1 s later (measured). The
client uses few requests of a versioned API, so it works with old and new engines.
https://docs.docker.com/reference/api/engine/
"""

# Importing socket, json and urllib delays the start of a container (measured).
import _socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The newest version of the API that this client uses. For an older engine it uses that engine's
#: version.
_VERSION = (1, 44)
_VERSION_IN = "api-version:"
_REFUSED = 400  #: The first of the status codes with which an engine refuses a request.
_CHUNK = 65536
_JSON = "application/json"


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
            self._request("GET", "/_ping", b"", _JSON)
        except EngineError as error:
            return error.status != 0
        return True

    def call(
        self,
        method: str,
        path: str,
        body: "Mapping[str, object] | bytes | None" = None,
        **query: "str | Mapping[str, object]",
    ) -> object:
        """Make a request; return the response as decoded JSON or as text. Raises `EngineError`.

        Bytes in `body` are sent as a tar archive, anything else as JSON. `query` becomes the query
        string; values that are mappings are sent as JSON.
        """
        import json  # Here, as `send` does not need it.
        from urllib.parse import urlencode

        words = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in query.items()
        }
        question = f"?{urlencode(words)}" if words else ""
        kind = "application/x-tar" if isinstance(body, bytes) else _JSON
        sent = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        answer = self.send(method, f"{path}{question}", sent, kind)
        try:
            return json.loads(answer)
        except ValueError:
            return answer.decode(errors="replace").strip()

    def send(self, method: str, path: str, body: bytes = b"", kind: str = _JSON) -> bytes:
        """Make a request whose body has the content type `kind`; return the response's body.

        `path` may contain a query string. Raises `EngineError`.
        """
        if not self._version:
            found = self._request("GET", "/_ping", b"", _JSON)[1]
            offered = tuple(int(part) for part in (found or "1.40").split("."))
            self._version = ".".join(map(str, min(offered, _VERSION)))
        return self._request(method, f"/v{self._version}{path}", body, kind)[0]

    def _request(self, method: str, path: str, body: bytes, kind: str) -> tuple[bytes, str]:
        """Make a request; return the response's body and the API version that the engine offers.

        The version is empty if the engine does not name it. Raises `EngineError`.
        """
        # With HTTP/1.0 the answer ends with the connection, so there is nothing else to parse.
        head = f"{method} {path} HTTP/1.0\r\nHost: engine\r\nContent-Type: {kind}\r\n"
        answer = b""
        try:
            connection = _socket.socket(_socket.AF_UNIX)
            try:
                connection.settimeout(self._seconds)
                connection.connect(self.path)
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                while data := connection.recv(_CHUNK):
                    answer += data
            finally:
                connection.close()
            top, _, said = answer.partition(b"\r\n\r\n")
            first, *headers = top.decode("latin-1").split("\r\n")
            status = int(first.split()[1])
        except TimeoutError as error:
            raise EngineTimeout(f"no answer at {self.path}: {error}") from None
        except (OSError, ValueError, IndexError) as error:
            raise EngineError(f"no answer at {self.path}: {error}") from None
        if status >= _REFUSED:
            raise EngineError(_refusal(said), status)
        offers = (
            line.partition(":")[2] for line in headers if line.lower().startswith(_VERSION_IN)
        )
        return said, next(offers, "").strip()


def _refusal(said: bytes) -> str:
    import json

    try:
        return str(json.loads(said)["message"])
    except (ValueError, LookupError, TypeError):
        return said.decode(errors="replace").strip()
