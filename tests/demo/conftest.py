"""A stand-in with one repository, and clients, a webhook receiver and a checkout."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import httpx
import pytest

from bot.demo.github.repository import Repository
from tests.demo.outside import Checkout, Client, Delivered, HookServer
from tests.world.faulty_github import FaultyGitHub

README = "one\ntwo\nthree\n"
_numbers = count(1)


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyGitHub]:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as server:
        server.user("alice", token="alices")
        server.user("rob", token="robs")
        server.user("mallory", token="mallorys")
        server.bot_account("wright", token="wrights")
        yield server


@pytest.fixture
def repo(github: FaultyGitHub) -> Repository:
    """A repository of its own for each test."""
    repo = github.repository(f"acme/widgets-{next(_numbers)}", {"README.md": README})
    repo.permission("alice", "admin")
    repo.permission("rob", "write")
    repo.permission("wright", "write")
    return repo


@pytest.fixture
def ask(github: FaultyGitHub) -> Iterator[Callable[[str], Client]]:
    """A client with a token; an empty token is anonymous."""
    opened = []

    def client(token: str = "wrights") -> Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        http = httpx.Client(base_url=f"{github.url}api/v3/", headers=headers, trust_env=False)
        opened.append(http)
        return Client(http)

    yield client
    for http in opened:
        http.close()


@pytest.fixture
def hook_server() -> Iterator[HookServer]:
    endpoint = HookServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            endpoint.received.append(Delivered(dict(self.headers.items()), body))
            self.send_response(endpoint.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield endpoint
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def checkout(tmp_path: Path, repo: Repository) -> Callable[[str], Checkout]:
    def make(token: str = "wrights") -> Checkout:
        path = tmp_path / f"checkout-of-{token or 'nobody'}"
        path.mkdir()
        return Checkout(path, repo.clone_url, token)

    return make
