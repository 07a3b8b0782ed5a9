"""Receivers of notifications on this machine, by HTTP and SMTP, which record what they receive."""

import json
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from msgspec import Struct


class Request(Struct, frozen=True):
    """A request as it was received."""

    path: str
    headers: dict[str, str]  #: The values by lower-case name.
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpReceiver:
    """Records requests, and responds to each with `status`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 200
        self.headers: dict[str, str] = {}  #: The headers of its responses.
        self.asked = Event()  #: Set when a request has arrived.
        self.answers = Event()  #: While it is not set, requests wait for their responses.
        self.answers.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def receive(self, request: Request) -> int:
        """Respond once `answers` is set; record the request unless the response is an error.

        Returns the status of the response.
        """
        self.asked.set()
        self.answers.wait()
        status = self.status
        if status < 300:
            self.requests.append(request)
        return status


@contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    """Run an HTTP receiver on a free port of 127.0.0.1."""
    receiver = HttpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.receive(Request(self.path, headers, body))
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield receiver
    finally:
        receiver.answers.set()
        server.shutdown()
        serving.join()
        server.server_close()


class SmtpReceiver:
    """Records mail, or refuses it while `refuses` is true."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuses = False
        self.port = 0


@contextmanager
def smtp_receiver() -> Iterator[SmtpReceiver]:
    """Run an SMTP receiver on a free port of 127.0.0.1, which accepts every password.

    https://datatracker.ietf.org/doc/html/rfc5321
    """
    receiver = SmtpReceiver()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 ready")
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"EHLO":
                    self.say("250-127.0.0.1\r\n250 AUTH PLAIN")
                elif word == b"AUTH":
                    self.say("235 accepted")
                elif word == b"DATA":
                    self.say("354 end with a dot")
                    self.say(self.received())
                elif word == b"QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

        def received(self) -> str:
            lines: list[bytes] = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".").replace(b"\r\n", b"\n"))
            if receiver.refuses:
                return "554 refused"
            mail = message_from_bytes(b"".join(lines), policy=policy.default)
            assert isinstance(mail, EmailMessage)
            receiver.mails.append(mail)
            return "250 kept"

        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
