"""A port on loopback with given responses to `GET`, which records posts."""

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue


@contextmanager
def answering(answers: MutableMapping[str, object], password: str) -> Iterator[int]:
    """The number of a port that has these answers by path, for who knows the password.

    What is posted comes into `answers["posted"]`, a queue, as path and value.
    """
    answers["posted"] = posted = SimpleQueue[tuple[str, object]]()
    word = b64encode(f"opencode:{password}".encode()).decode()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(lambda: answers[self.path])

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(lambda: posted.put((self.path, json.loads(body))))

        def _answer(self, act: Callable[[], object]) -> None:
            known = self.headers["Authorization"] == f"Basic {word}"
            body = json.dumps(act() if known else None).encode()
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.005,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
