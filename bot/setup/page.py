"""The local page that sends a person to GitHub to create the App.

GitHub sends the browser back with a code, which is exchanged for the App's credentials.
"""

import json
from collections.abc import Callable, Mapping
from hmac import compare_digest
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from bot.github.errors import GitHubFailure

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Content-Type": "text/html; charset=utf-8",
    "Referrer-Policy": "no-referrer",
}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Set-up · Mergewright</title>
</head>
<body><main>{main}</main></body>
</html>
"""
_FORM = """<h1>Create the GitHub App</h1>
<p>GitHub asks you to confirm the App. Its keys are then sent to this page and stored.</p>
<form action="{action}" method="post">
<input type="hidden" name="manifest" value="{manifest}"><button>Continue on GitHub</button></form>
"""
_SAYS = "<h1>Set-up</h1><p>{text}</p>"


class SetupPage:
    """Serves the page on 127.0.0.1 while its context is open."""

    def __init__(self, port: int, new_app_url: str, take: Callable[[str], str]) -> None:
        """Bind the port; 0 picks a free port. Raises `OSError`.

        The page's form leads to `new_app_url`.

        `take` gets the code, stores the keys and returns the URL for installing the App. It may
        raise `GitHubFailure` or `OSError`, and may then be called again with another code.
        """
        self._state = token_urlsafe(32)
        self._action = f"{new_app_url}?state={self._state}"
        self._take = take
        self._lock = Lock()
        self._done = Event()
        self._manifest: Mapping[str, object] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.1,), name="setup", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def callback(self) -> str:
        """The URL to which GitHub sends the browser."""
        return f"{self.url}created"

    def offer(self, manifest: Mapping[str, object]) -> None:
        """Show the form for this manifest; before this call, the path `/` responds with 404."""
        self._manifest = manifest

    def wait(self) -> None:
        """Block until the App is created, its keys are stored and the browser is redirected."""
        self._done.wait()

    def answer(self, target: str, host: str) -> tuple[int, str, str]:
        """Return status, redirect (or "") and content for a request target and its Host.

        A request to `/created` with GitHub's code calls `take`.
        """
        parts = urlsplit(target)
        if (
            f"http://{host}/" != self.url
        ):  # DNS rebinding: another site's name resolves to this page.
            return 400, "", _SAYS.format(text=f"Open {self.url}.")
        if parts.path == "/" and self._manifest:
            manifest = escape(json.dumps(self._manifest))
            return 200, "", _FORM.format(action=escape(self._action), manifest=manifest)
        if parts.path == "/created":
            return self._created(parse_qs(parts.query))
        return 404, "", _SAYS.format(text="Page not found.")

    def sent(self, target: str, status: int) -> None:
        """Note that a response was sent. The redirect to the App's installation ends `wait`."""
        if status == 302 and urlsplit(target).path == "/created":
            self._done.set()

    def _created(self, query: Mapping[str, list[str]]) -> tuple[int, str, str]:
        given, code = query.get("state", [""])[0], query.get("code", [""])[0]
        with self._lock:
            if not code or not compare_digest(given.encode(), self._state.encode()):
                return (
                    400,
                    "",
                    _SAYS.format(text="This request is not part of this setup; start again."),
                )
            try:
                place = self._take(code)
            except (GitHubFailure, OSError) as failure:
                return 502, "", _SAYS.format(text=escape(str(failure)))
            self._state = token_urlsafe(32)  # A code works once.
            return 302, place, ""

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10.0

            def do_GET(self) -> None:
                status, place, text = page.answer(self.path, self.headers.get("Host", ""))
                body = _PAGE.format(main=text).encode() if text else b""
                self.send_response(status)
                for name, value in _HEADERS.items():
                    self.send_header(name, value)
                if place:
                    self.send_header("Location", place)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                page.sent(self.path, status)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing, because the path contains the code."""

        return Handler
