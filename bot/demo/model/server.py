"""The scripted model's HTTP server, on loopback."""

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from msgspec import Struct

from bot.demo.model.anthropic import ANTHROPIC
from bot.demo.model.chat import CHAT
from bot.demo.model.gemini import GEMINI
from bot.demo.model.responses import RESPONSES
from bot.demo.model.script import Due, Step, due
from bot.demo.model.talk import Api, Asked, Json, reply

#: Every API by the suffix of its paths.
APIS: Mapping[str, Api] = {
    "/messages": ANTHROPIC,
    "/responses": RESPONSES,
    "/chat/completions": CHAT,
    ":generateContent": GEMINI,
    ":streamGenerateContent": GEMINI,
}
_LIMITED = 429
_STOP_SECONDS = 0.05  #: Between two checks whether the server has to stop.


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """A request, and the status of its response."""

    path: str
    status: int
    asked: Asked | None = None  #: None if no model API has this path.


class ModelServer:
    """Serves scripted responses. Use it as a context manager."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self._refused: Counter[str] = Counter()
        self._cut: set[str] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"model": self})
        self._http = _Http(("127.0.0.1", 0), handler)
        serve = partial(self._http.serve_forever, poll_interval=_STOP_SECONDS)
        self._thread = threading.Thread(target=serve, name="model", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    @property
    def url(self) -> str:
        """The base URL of every API, without a final slash."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def note(self, recorded: RecordedRequest) -> None:
        """Record a request."""
        with self._lock:
            self.requests.append(recorded)

    def refuses(self, what: Due) -> bool:
        """Whether this request gets the step's error status. If so, counts it."""
        with self._lock:
            if self._refused[what.key] >= what.step.errors:
                return False
            self._refused[what.key] += 1
            return True

    def cuts(self, what: Due) -> bool:
        """Whether to cut this connection, which happens once for each step."""
        with self._lock:
            cut = what.step.cut and what.key not in self._cut
            self._cut.add(what.key)
            return cut


class _Http(ThreadingHTTPServer):
    """A server that tolerates clients that are killed during a request."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One client connection."""

    protocol_version = "HTTP/1.1"
    model: ModelServer

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self._body()
        api = next((api for end, api in APIS.items() if path.endswith(end)), None)
        if api is None:
            self._unknown()
            return
        try:
            self._answer(api, path, body)
        except ConnectionError:
            self.close_connection = True  # The program was interrupted and closed the connection.

    def do_GET(self) -> None:
        self._unknown()

    def do_HEAD(self) -> None:
        self._unknown()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: `ModelServer` records requests."""

    def _unknown(self) -> None:
        self.model.note(RecordedRequest(path=self.path, status=404))
        self._send(404, {"error": {"message": f"{self.path} is not a path of a model API"}})

    def _answer(self, api: Api, path: str, body: Json) -> None:
        asked = api.read(path, body)
        if asked.aside:
            what = Due(step=Step(say=asked.aside))
        else:
            what = due(asked.turns, at_once=asked.edits)
        time.sleep(what.step.sleep)
        status = what.step.error if self.model.refuses(what) else 200
        self.model.note(RecordedRequest(path=path, status=status, asked=asked))
        if status != 200:
            self._send(status, api.refusal(status))
        elif asked.stream:
            self._stream(api.pieces(asked, reply(asked, what.step)), what)
        else:
            self._send(200, api.whole(asked, reply(asked, what.step)))

    def _stream(self, pieces: Sequence[str], what: Due) -> None:
        """Send the response in pieces, with the delay or the cut that the script asks for."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        middle = len(pieces) // 2
        for piece in pieces[:middle]:
            self._chunk(piece)
        time.sleep(what.step.stall)
        if self.model.cuts(what):
            self.connection.shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError("cut as the script orders")
        for piece in pieces[middle:]:
            self._chunk(piece)
        self._chunk("")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send(self, status: int, answer: Json) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == _LIMITED:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> Json:
        """Return the JSON of the request, which may have chunked encoding."""
        if "Content-Length" in self.headers:
            data = self.rfile.read(int(self.headers["Content-Length"]))
        else:
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        found: Json = json.loads(data or b"{}")
        return found
