"""Our own door to the models: real connections on both sides, and nothing held back between."""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from bot.layout import Layout
from bot.models import Models
from bot.prices import Prices
from bot.store import Store, StoreFailure
from bot.web import models, passing, serve
from bot.web.models import ModelDoor
from config.settings import AgentTypeSettings, Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType
from tests.bot.conftest import Clock, Room
from tests.world.waiting import eventually

ASK = "/v1/messages"
SECONDS = 20.0
Answers = Callable[[BaseHTTPRequestHandler], None]


class Provider:
    """A model's API: keeps what it is asked, and answers as a test says."""

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

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
    """A session at work, which has its pass and the door's address."""

    def __init__(self, room: Room, folder: Path, provider: Provider) -> None:
        kind = AgentType(program="shell", command=("true",))
        typed = AgentTypeSettings(program="shell", endpoint=f"{provider.url}/gate/", key="KEY")
        settings = Settings(agent_types={"shell": typed})
        self.door: ModelDoor
        self.models = Models(
            settings,
            {"KEY": "the key"},
            {"shell": AGENTS["shell"](kind)},
            room.store,
            Layout(folder),
            lambda: self.door.url,
            Prices({}),
        )
        self.kept = folder / "model-port"
        self.door = ModelDoor(self.models.behind, self.models.count, self.kept)
        self.door.start()
        room.session()
        room.orders("widgets-12", run=1)
        session = room.store.session("widgets-12")
        assert session
        told = self.models.endpoint(session, 1)
        self.key = told.key
        self.http = httpx.Client(base_url=told.url, timeout=SECONDS)

    def asks(self, path: str = ASK, method: str = "POST", **more: Any) -> httpx.Response:
        return self.http.request(method, path, **{"headers": {"x-api-key": self.key}, **more})

    @property
    def streams(self) -> Any:
        """What the door has open."""
        server: Any = self.door._server
        return server._streams

    @contextmanager
    def connects(self) -> Iterator[HTTPConnection]:
        with closing(HTTPConnection("127.0.0.1", self.http.base_url.port, timeout=SECONDS)) as made:
            yield made

    def tokens(self) -> int:
        """How many of its run are counted."""
        return sum(used.input + used.output for used in self.models._store.used("run"))

    @contextmanager
    def listens(self) -> Iterator[httpx.Response]:
        with self.http.stream("POST", ASK, headers={"x-api-key": self.key}) as answer:
            yield answer


@pytest.fixture(scope="module")
def at() -> Iterator[Provider]:
    provider = Provider()
    thread = Thread(target=provider.server.serve_forever, args=(0.01,))
    thread.start()
    yield provider
    provider.server.shutdown()
    thread.join()
    provider.server.server_close()


@pytest.fixture
def provider(at: Provider) -> Provider:
    at.answers = lambda request: whole(request, b"{}")
    at.asked = Queue()
    return at


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, at: Provider) -> Iterator[Agent]:
    folder, clock = tmp_path_factory.mktemp("door"), Clock()
    store = Store(folder / "mergewright.db", clock=clock)
    agent = Agent(Room(store, clock), folder, at)
    yield agent
    agent.http.close()
    agent.door.stop()
    store.close()


def test_the_key_stands_where_the_pass_was_shown_and_all_else_as_it_was(
    agent: Agent, provider: Provider
) -> None:
    google = "/v1beta/models/pro-1.5:streamGenerateContent"
    for headers, query, shown in (
        ({"x-api-key": agent.key, "x-other": "é".encode()}, "beta=true", "x-api-key"),
        ({"authorization": f"Bearer {agent.key}"}, "", "authorization"),
        ({"x-goog-api-key": agent.key}, "alt=sse", "x-goog-api-key"),
        ({}, f"alt=sse&key={agent.key}", "x-goog-api-key"),
    ):
        path = google if "goog" in shown else ASK
        answer = agent.asks(f"{path}?{query}", headers=headers, content=b'{"n": 1}' * 100_000)
        assert (answer.status_code, answer.content) == (200, b"{}")
        asked, said, body = provider.asked.get(timeout=SECONDS)
        assert asked.rstrip("?") == f"/gate{path}?{query.split('&key')[0]}".rstrip("?")
        assert said[shown] == ("Bearer the key" if shown == "authorization" else "the key")
        assert body == b'{"n": 1}' * 100_000
        assert agent.key not in said.as_string()
        assert said["host"] == provider.url.removeprefix("http://")
        assert "x-other" not in headers or said["x-other"].encode("latin-1").decode() == "é"


def test_what_answers_used_is_counted_for_their_run_also_of_those_that_break_off(
    agent: Agent, provider: Provider
) -> None:
    begun = b'data: {"message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}'

    def breaks_off(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, begun + b"\n\n")
        request.close_connection = True

    packed = gzip.compress(b'{"model": "m", "usage": {"input_tokens": 3, "output_tokens": 2}}')
    provider.answers = lambda request: whole(request, packed, content_encoding="gzip")
    assert agent.asks(content=b"{}").json()["model"] == "m"
    assert provider.asked.get(timeout=SECONDS)[1]["accept-encoding"] == "gzip"
    eventually(lambda: agent.tokens() == 5, "what the answer used")
    provider.answers = breaks_off
    with pytest.raises(httpx.RemoteProtocolError), agent.listens() as answer:
        answer.read()
    eventually(lambda: agent.tokens() == 15, "what it used until then")


def test_a_way_of_packing_that_we_cannot_read_is_not_asked_for(
    agent: Agent, provider: Provider
) -> None:
    agent.asks(content=b"{}", headers={"x-api-key": agent.key, "accept-encoding": "br, zstd"})
    assert provider.asked.get(timeout=SECONDS)[1]["accept-encoding"] == "identity"


def test_an_answer_that_cannot_be_counted_is_given_all_the_same(
    agent: Agent,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object) -> None:
        raise StoreFailure("the disk is full")

    monkeypatch.setattr(agent.models._store, "count_answer", full)
    provider.answers = lambda request: whole(request, b'{"usage": {"input_tokens": 3}}')
    assert agent.asks(content=b"{}").status_code == 200
    eventually(lambda: "not counted: the disk is full" in caplog.text, "the log")
    provider.answers = lambda request: whole(request, b"what is it", content_encoding="br")
    with agent.listens() as answer:
        assert b"".join(answer.iter_raw()) == b"what is it"
    eventually(lambda: "could not be read to its end" in caplog.text, "the log")


def test_a_stranger_is_refused_and_nobody_asked(agent: Agent, provider: Provider) -> None:
    for headers in (
        {},
        {"x-api-key": agent.key[:-1]},
        {"authorization": f"Basic {agent.key}"},
        {"x-api-key": f"widgets-12_r{'9' * 5000}.pass"},
    ):
        answer = agent.asks(headers=headers, content=b"{}")
        assert answer.status_code == 401
        assert answer.json()["error"]["message"] == "this is no session's pass"
        assert answer.headers["x-should-retry"] == "false"
    assert provider.asked.empty()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/files"),
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/models/mine"),
        ("GET", "/v1/models/../files/file-1/content"),
        ("POST", "/v1/models/x:generateContent/../../files"),
        ("POST", "/v1/messages/../files"),
        ("POST", "//elsewhere.example/v1/messages"),
        ("POST", "/v1/messages%3Fx"),
        ("GET", "/"),
    ],
)
def test_only_a_models_own_paths_are_open(
    agent: Agent, provider: Provider, method: str, path: str
) -> None:
    # As it stands: httpx would take `..` out of it before it is sent.
    with agent.connects() as asking:
        asking.request(method, path, headers={"x-api-key": agent.key})
        assert asking.getresponse().status == 403
    assert provider.asked.empty()


def test_models_are_listed(agent: Agent, provider: Provider) -> None:
    assert agent.asks("/v1/models?limit=2", "GET", content=b"{}").status_code == 200
    path, said, body = provider.asked.get(timeout=SECONDS)
    assert path == "/gate/v1/models?limit=2"
    assert "transfer-encoding" not in said
    assert "content-length" not in said
    assert not body


def test_what_a_model_says_is_heard_before_it_has_said_all(
    agent: Agent, provider: Provider
) -> None:
    heard = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        assert heard.wait(SECONDS)
        piece(request, b"data: two\n\n")
        piece(request, b"")

    provider.answers = answers
    with agent.listens() as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        said = answer.iter_raw()
        assert next(said) == b"data: one\n\n"
        heard.set()
        assert b"".join(said) == b"data: two\n\n"


def test_a_limit_is_passed_on_as_it_is(agent: Agent, provider: Provider) -> None:
    body = gzip.compress(b'{"type": "error"}')
    provider.answers = lambda request: whole(
        request, body, 429, retry_after="7", content_encoding="gzip", set_cookie="who=1"
    )
    answer = agent.asks(content=b"{}")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json() == {"type": "error"}
    agent.asks(content=b"{}")
    provider.asked.get(timeout=SECONDS)
    assert "cookie" not in provider.asked.get(timeout=SECONDS)[1]
    assert "set-cookie" not in answer.headers


def test_a_model_that_breaks_off_is_heard_to_do_so(agent: Agent, provider: Provider) -> None:
    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        request.close_connection = True

    provider.answers = answers
    with pytest.raises(httpx.RemoteProtocolError), agent.listens() as answer:
        answer.read()


def test_a_model_is_not_kept_talking_to_an_agent_that_has_gone(
    agent: Agent, provider: Provider
) -> None:
    noticed = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        assert request.rfile.read(1) == b""  # The connection is closed, not the answer over.
        noticed.set()

    provider.answers = answers
    with agent.listens() as answer:
        assert next(answer.iter_raw()) == b"data: one\n\n"
    assert noticed.wait(SECONDS)


def test_a_model_is_not_kept_thinking_for_an_agent_that_has_gone(
    agent: Agent, provider: Provider
) -> None:
    noticed = Event()

    def thinks(request: BaseHTTPRequestHandler) -> None:
        assert request.rfile.read(1) == b""
        noticed.set()

    provider.answers = thinks
    with agent.connects() as asking:
        asking.request("POST", ASK, b"{}", headers={"x-api-key": agent.key})
        provider.asked.get(timeout=SECONDS)
    assert noticed.wait(SECONDS)


def test_a_model_that_never_says_anything_is_waited_for_no_longer_than_is_meant(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "_PATIENCE", httpx.Timeout(0.05))
    provider.answers = lambda request: None
    answer = agent.asks(content=b"{}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (504, "true")
    assert "never said anything" in answer.json()["error"]["message"]


def test_a_status_that_is_none_is_not_passed_on(agent: Agent, provider: Provider) -> None:
    provider.answers = lambda request: whole(request, b"{}", 799)
    answer = agent.asks(content=b"{}")
    assert answer.status_code == 502
    assert "answered with 799, which is no status" in answer.json()["error"]["message"]


def test_a_websocket_is_refused_in_words_and_is_no_news(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"connection": "Upgrade", "upgrade": "websocket", "x-api-key": agent.key}
    with agent.connects() as asking:
        asking.request("GET", "/v1/responses", headers=headers)
        answer = asking.getresponse()
        assert (answer.status, b"asked by POST" in answer.read()) == (426, True)
    assert not caplog.records


def test_more_than_is_meant_is_not_asked_at_once(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Event()

    def holds(request: BaseHTTPRequestHandler) -> None:
        assert held.wait(SECONDS)
        whole(request, b"{}")

    provider.answers = holds
    with agent.connects() as first:
        first.request("POST", ASK, b"{}", headers={"x-api-key": agent.key})
        provider.asked.get(timeout=SECONDS)
        for limit, key, status in (("_MOST_OF_ONE", agent.key, 429), ("", "a stranger's", 503)):
            with monkeypatch.context() as patch:
                if limit:
                    patch.setattr(models, limit, 1)
                else:
                    patch.setattr(agent.streams, "_room", 1)
                answer = agent.asks(content=b"{}", headers={"x-api-key": key})
            assert (answer.status_code, answer.headers["retry-after"]) == (status, "1")
            assert answer.headers["x-should-retry"] == "true"
            assert "at once already" in answer.json()["error"]["message"]
        held.set()
        assert first.getresponse().status == 200
    eventually(lambda: not agent.streams._under_way, "the end of all")


def test_a_question_of_any_size_is_not_taken(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "_MOST_BYTES", 1 << 20)
    answer = agent.asks(content=b" " * ((1 << 20) + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "the question has more than 1 MB"


def test_a_question_that_does_not_come_to_its_end_is_not_waited_for(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing, "_PIECE_SECONDS", 0.05)
    with agent.connects() as asking:
        asking.putrequest("POST", ASK)
        for name, value in (("x-api-key", agent.key), ("content-length", "9")):
            asking.putheader(name, value)
        asking.endheaders(b"{")
        answer = asking.getresponse()
        assert (answer.status, b"nothing more of the question" in answer.read()) == (408, True)
        assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("said", [b"", b"POST /v1/mess"])
def test_who_never_says_what_it_asks_is_shown_out(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(serve, "_HEADERS_SECONDS", 0.05)
    with agent.connects() as slow:
        slow.connect()
        slow.sock.sendall(said)
        assert slow.sock.recv(1) == b""


def test_an_endpoint_that_is_not_there_is_said_and_may_be_tried_again(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = AgentTypeSettings(program="shell", endpoint="http://127.0.0.1:1", key="KEY")
    monkeypatch.setattr(agent.models, "_settings", Settings(agent_types={"shell": typed}))
    answer = agent.asks(content=b"{}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "true")
    assert "cannot be reached: ConnectError" in json.dumps(answer.json())


def test_a_fault_of_the_door_itself_is_logged(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(agent.models, "_keys", None)
    assert agent.asks(content=b"{}").status_code == 500
    assert "NoneType" in caplog.text


def test_the_next_bot_stands_where_the_last_one_stood_and_knows_the_pass(
    agent: Agent, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    held = Event()

    def answers(request: BaseHTTPRequestHandler) -> None:
        begin(request)
        piece(request, b"data: one\n\n")
        assert held.wait(SECONDS)

    provider.answers = answers
    with agent.listens() as answer:
        said = answer.iter_raw()
        assert next(said)
        agent.door.stop()  # It does not wait until the model has said all.
        with pytest.raises(httpx.RemoteProtocolError):
            next(said)
    assert "timeout graceful shutdown" not in caplog.text
    held.set()
    provider.answers = lambda request: whole(request, b"{}")
    agent.door = ModelDoor(agent.models.behind, agent.models.count, agent.kept)
    agent.door.start()
    assert agent.asks(content=b"{}").status_code == 200


def test_a_door_whose_place_was_taken_stands_elsewhere(agent: Agent) -> None:
    other = ModelDoor(agent.models.behind, agent.models.count, agent.kept)
    other.start()
    assert other.url not in ("", agent.door.url)
    other.stop()


@pytest.mark.parametrize("place", ["no port", "65536", "-1", "9" * 5000])
def test_a_door_whose_place_cannot_be_read_stands_anywhere(
    agent: Agent, tmp_path: Path, place: str
) -> None:
    kept = tmp_path / "model-port"
    kept.write_text(place)
    other = ModelDoor(agent.models.behind, agent.models.count, kept)
    other.start()
    assert kept.read_text() == other.url.rpartition(":")[2]
    other.stop()
