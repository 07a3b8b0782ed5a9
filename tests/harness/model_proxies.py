"""A model provider, the model proxy in front of it, and a session that uses the proxy."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import httpx

from bot.model_proxy.endpoints import ModelEndpoints
from bot.model_proxy.prices import Prices
from bot.model_proxy.proxy import ModelProxy
from bot.model_proxy.refusals import RefusalLog
from bot.model_proxy.tunnels import Tunnels
from bot.system.locations import Paths
from config.settings import AgentTypeSettings, ProjectSettings, Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType

ASK = "/v1/messages"
SECONDS = 20.0
Answers = Callable[[BaseHTTPRequestHandler], None]


class Quiet(ThreadingHTTPServer):
    """A server that ignores connections closed by the client."""

    def handle_error(self, *_: object) -> None:
        pass


class Provider:
    """A model provider that records requests and responds as a test sets."""

    def __init__(self) -> None:
        self.asked: Queue[tuple[str, Message, bytes]] = Queue()
        self.answers: Answers = lambda request: whole(request, b"{}")
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                provider.asked.put((self.path, self.headers, body))
                provider.answers(self)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: object) -> None:
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def whole(request: BaseHTTPRequestHandler, body: bytes, status: int = 200, **more: str) -> None:
    request.send_response(status)
    for name, value in {"content-length": str(len(body)), **more}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)


def piece(request: BaseHTTPRequestHandler, data: bytes) -> None:
    request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    request.wfile.flush()


def begin(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("content-type", "text/event-stream")
    request.send_header("transfer-encoding", "chunked")
    request.end_headers()


class Agent:
    """A working session with its run token and the address of the proxy."""

    def __init__(self, scenario: Any, folder: Path, provider: Provider) -> None:
        kind = AgentType(program="shell", command=("true",))
        typed = AgentTypeSettings(program="shell", endpoint=f"{provider.url}/gate/", key="KEY")
        self.projects: dict[str, ProjectSettings] = {}
        settings = Settings(agent_types={"shell": typed}, projects=self.projects)
        self.proxy: ModelProxy
        self.models = ModelEndpoints(
            settings=settings,
            keys={"KEY": "the key"},
            programs={"shell": AGENTS["shell"](kind)},
            store=scenario.store,
            paths=Paths(folder),
            proxy_url=lambda: self.proxy.url,
            priced=Prices({}),
        )
        self.kept = folder / "model-port"
        self.lost: list[str] = []
        self.proxy = self.another_proxy()
        self.proxy.start()
        scenario.session()
        scenario.orders("widgets-12", run=1)
        session = scenario.store.sessions.get("widgets-12")
        assert session
        granted = self.models.endpoint(session, 1)
        self.key = granted.key
        self.http = httpx.Client(base_url=granted.url, timeout=SECONDS)

    @property
    def socket(self) -> Path:
        """Where the proxy listens for isolated runs."""
        return self.models.paths.proxy_socket

    def another_proxy(self) -> ModelProxy:
        """Another proxy for the same installation, as a restarted bot makes it."""
        store = self.models.store
        return ModelProxy(
            self.models.of_token,
            self.models.record_usage,
            self.kept,
            socket_file=self.socket,
            tunnels=Tunnels(self.models.network_of, RefusalLog(store.refused.record)),
            on_lost_port=self.lost.append,
        )

    def allows(self, *network: str) -> None:
        """Let the project's agents reach these hosts; `allows("open")` permits all hosts."""
        allowed: Any = "open" if network == ("open",) else network
        self.projects["widgets"] = ProjectSettings(repository="acme/widgets", network=allowed)

    def close(self) -> None:
        self.http.close()
        self.proxy.stop()

    def asks(self, path: str = ASK, method: str = "POST", **more: Any) -> httpx.Response:
        return self.http.request(method, path, **{"headers": {"x-api-key": self.key}, **more})

    @property
    def streams(self) -> Any:
        """The running proxy, to read its requests in progress."""
        server: Any = self.proxy._server
        return server._streams

    @contextmanager
    def connects(self) -> Iterator[HTTPConnection]:
        with closing(HTTPConnection("127.0.0.1", self.http.base_url.port, timeout=SECONDS)) as made:
            yield made

    def tokens(self) -> int:
        """The counted tokens of its run."""
        return sum(used.input + used.output for used in self.models.store.usage.totals("run"))

    @contextmanager
    def listens(self) -> Iterator[httpx.Response]:
        with self.http.stream("POST", ASK, headers={"x-api-key": self.key}) as answer:
            yield answer
