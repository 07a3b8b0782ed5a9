"""The doctor's checks of the server itself: its port, its public URL, and how people sign in."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from threading import Thread

import httpx

from bot.app.github_client import github_sign_in
from bot.cli.context import Installation
from bot.cli.github_checks import CheckResult, fail, ok, warn
from bot.github.errors import GitHubFailure
from config.load import is_public, no_sign_in

_SECONDS = 10.0
#: The beginning of the response of `/healthz`.
_ALIVE = '{"alive":true'
_ANY = ("", "0.0.0.0", "::")  # noqa: S104 - compared, never listened on.


def port(installed: Installation) -> CheckResult:
    host, number = _address(installed)
    if not number:
        return ok("any free port")
    if _serves(host, number):
        return ok(f"{host}:{number}: the server is running")
    try:
        _bound(host, number).close()
    except OSError as failure:
        return fail(f"{host}:{number}: {_problem(failure)}", _remedy(failure))
    return ok(f"{host}:{number} is free")


def public_url(installed: Installation) -> CheckResult:
    """Check that the public URL leads to this server.

    If the server is not running, the check listens on the server's port in its place.
    """
    settings = installed.settings
    url, (host, number) = settings.server.public_url, _address(installed)
    refuse = warn if settings.polls else fail
    if not url:
        if settings.polls:
            return ok(f"not set: links lead to {settings.public_url}")
        remedy = 'set server.public-url, or github.events = "polling"'
        return fail("not set: GitHub cannot send webhooks to this machine", remedy)
    nonce = token_urlsafe(16)
    running = bool(number) and _serves(host, number)
    try:
        with nullcontext() if running or not number else _answering(host, number, nonce):
            answer = httpx.get(f"{settings.public_url}healthz", timeout=_SECONDS)
    except OSError:  # Reported by the check of the port.
        return warn(f"{url}: not checked, because the server cannot listen on its port")
    except (httpx.HTTPError, httpx.InvalidURL) as failure:
        why = str(failure) or type(failure).__name__
        remedy = f"make it lead to {host}:{number}, for example with a reverse proxy or a tunnel"
        return refuse(f"{url} cannot be reached from here: {why}", remedy)
    if answer.text == nonce or (answer.is_success and answer.text.startswith(_ALIVE)):
        return ok(f"{url} leads to this server")
    remedy = f"make it lead to {host}:{number}"
    return refuse(f"{url} does not lead to this server: it answers {answer.status_code}", remedy)


def sign_in(installed: Installation) -> CheckResult:
    """Check that no secret required for sign-in is missing, and that GitHub accepts the App's."""
    settings, url = installed.settings, installed.settings.public_url
    if lacking := no_sign_in(settings, installed.secrets):
        says, _, remedy = lacking[0].partition(": ")
        return fail(says, remedy)
    if (github := github_sign_in(settings, installed.secrets)) is None:
        if not installed.secrets.page_token:
            return ok("not configured: the pages are off")
        return ok("with the page token, for one person")
    try:
        problem = github.check_secret()
    except GitHubFailure as failure:
        return warn(str(failure))
    if problem:
        return fail(problem, "create a new client secret in the App's settings at GitHub")
    if is_public(settings) and not url.startswith("https:"):
        return warn(f"{url}: cookies travel in the clear", "put the server behind a TLS proxy")
    return ok(f"with GitHub; the App needs the callback URL {url}login/callback")


def _address(installed: Installation) -> tuple[str, int]:
    return installed.settings.server.host, installed.settings.server.port


def _serves(host: str, number: int) -> bool:
    """Whether a Mergewright server listens at the host and port."""
    name = "127.0.0.1" if host in _ANY else host
    address = f"[{name}]" if ":" in name else name
    try:
        answer = httpx.get(f"http://{address}:{number}/healthz", timeout=_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return answer.is_success and answer.text.startswith(_ALIVE)


def _bound(host: str, number: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    here = socket.socket(family, socket.SOCK_STREAM)
    try:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        here.bind((host, number))
        here.listen()
    except OSError:
        here.close()
        raise
    return here


@contextmanager
def _answering(host: str, number: int, nonce: str) -> Iterator[None]:
    """Listen on the server's port and answer GET requests with the nonce. Raises `OSError`."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(nonce)))
            self.end_headers()
            self.wfile.write(nonce.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer((host, number), Answer, bind_and_activate=False)
    server.socket.close()
    server.socket = _bound(host, number)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _problem(failure: OSError) -> str:
    if failure.errno == errno.EADDRINUSE:
        return "another program listens there"
    return failure.strerror or str(failure)


def _remedy(failure: OSError) -> str:
    if failure.errno == errno.EADDRINUSE:
        return "stop that program, or set server.port to a free port"
    if failure.errno == errno.EACCES:
        return "set server.port to a number above 1023"
    return "set server.host to an address of this machine"
