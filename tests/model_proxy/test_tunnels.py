"""Isolated agents reach the hosts that their project allows, and no others."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bot.model_proxy import tunnels
from bot.store import Observation
from bot.system import http_server
from lifecycle.model.facts import Facts
from lifecycle.model.status import Activity
from tests.harness.model_proxies import SECONDS, Agent, Provider
from tests.harness.proxy_clients import authorization, connect, connects, response, status
from tests.harness.tls_hosts import NAME, Host, Names, certificate
from tests.world.waiting import eventually


@pytest.fixture
def agent(scenario: Any, tmp_path: Path, provider: Provider) -> Iterator[Agent]:
    with closing(Agent(scenario, tmp_path, provider)) as made:
        yield made


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    resolved = Names(monkeypatch)
    resolved.addresses[NAME] = [["127.0.0.1"]]
    return resolved


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def host(signed: Path, names: Names) -> Iterator[Host]:
    with Host(signed).serves() as serving:
        yield serving


@pytest.fixture
def plain(names: Names) -> Iterator[Host]:
    with Host(None).serves() as serving:
        yield serving


def refused(agent: Agent) -> list[tuple[str, int, int]]:
    """What was recorded: hosts, ports and how often."""
    rows = agent.models.store.refused.of("widgets-12")
    return sorted((one.host, one.port, one.times) for one in rows)


def test_tls_is_end_to_end_with_an_allowed_host(agent: Agent, host: Host, signed: Path) -> None:
    agent.allows(f"{NAME}:{host.port}")
    context = ssl.create_default_context(cafile=str(signed))
    with connects(agent) as client:
        client.sendall(connect(f"{NAME}:{host.port}", authorization(agent.key)))
        assert response(client).startswith(b"HTTP/1.1 200 ")
        with context.wrap_socket(client, server_hostname=NAME) as secure:
            secure.sendall(b"GET /simple HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            received = b"".join(iter(lambda: secure.recv(4096), b""))
    assert received.endswith(b"/simple")
    assert host.seen == [{"host": "x", "connection": "close"}]


@pytest.mark.parametrize("client", ["curl", "python"])
def test_programs_use_the_variables_of_a_run(
    agent: Agent, host: Host, plain: Host, client: str
) -> None:
    agent.allows(f"*.example.org:{host.port}", f"{NAME}:{plain.port}")
    session = agent.models.store.sessions.get("widgets-12")
    assert session
    port = int(agent.proxy.url.rpartition(":")[2])
    given = agent.models.proxy_variables(session, 1, port)
    assert given["no_proxy"] == given["NO_PROXY"] == "127.0.0.1,localhost"  # The model's address.
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode(), end='')"
    for url in (f"https://{NAME}:{host.port}/secure", f"http://{NAME}:{plain.port}/plain"):
        # The certificate is that of the host: nothing between decrypts it.
        with_file = ["--fail", "--silent", "--show-error", "--cacert", str(host.certificate), url]
        command = ["curl", *with_file] if client == "curl" else [sys.executable, "-c", fetch, url]
        environment = {"PATH": os.environ["PATH"], "SSL_CERT_FILE": str(host.certificate), **given}
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert (run.stdout, run.stderr) == (f"/{url.rpartition('/')[2]}", "")
    assert "proxy-authorization" not in plain.seen[0]
    assert plain.seen[0]["connection"] == "close"


#: Replaced by the run's own.
TOKEN = b"TOKEN"
#: By what is tried: the server, the headers, and the status of the refusal.
ATTACKS: dict[str, tuple[str, tuple[bytes, ...], int]] = {
    "no token": ("index.example:443", (), 407),
    "a wrong scheme": ("index.example:443", (b"Proxy-Authorization: Bearer TOKEN",), 407),
    "not base64": ("index.example:443", (b"Proxy-Authorization: Basic \xff\xff=",), 407),
    "the token of another run": ("index.example:443", (authorization("widgets-12_r2.x"),), 407),
    "a run of another session": ("index.example:443", (authorization("widgets-13_r1.x"),), 407),
    "a token that is a path": ("index.example:443", (authorization("../x_r1.y"),), 407),
    "two tokens": (
        "index.example:443",
        (
            TOKEN,
            authorization("widgets-13_r1.x"),
        ),
        400,
    ),
    "another host": ("evil.example:443", (TOKEN,), 403),
    "another port": ("index.example:22", (TOKEN,), 403),
    "a host that ends like it": ("notindex.example:443", (TOKEN,), 403),
    "a host that begins like it": ("index.example.evil.example:443", (TOKEN,), 403),
    "the domain of a pattern": ("files.example:443", (TOKEN,), 403),
    "userinfo": ("index.example@evil.example:443", (TOKEN,), 400),
    "userinfo with a port": ("index.example:443@evil.example:443", (TOKEN,), 400),
    "a path": ("evil.example:443/index.example:443", (TOKEN,), 400),
    "a fragment": ("evil.example#index.example:443", (TOKEN,), 400),
    "no port": ("index.example", (TOKEN,), 400),
    "port 0": ("index.example:0", (TOKEN,), 400),
    "a port that is too large": ("index.example:65979", (TOKEN,), 400),  # 443 + 65536
    "loopback": ("127.0.0.1:443", (TOKEN,), 403),
    "loopback in decimal": ("2130706433:443", (TOKEN,), 403),
    "loopback in octal": ("0177.0.0.1:443", (TOKEN,), 403),
    "loopback in hexadecimal": ("0x7f000001:443", (TOKEN,), 403),
    "loopback in short": ("127.1:443", (TOKEN,), 403),
    "loopback in IPv6": ("[::1]:443", (TOKEN,), 403),
    "loopback mapped into IPv6": ("[::ffff:127.0.0.1]:443", (TOKEN,), 403),
    "loopback by name": ("localhost:443", (TOKEN,), 403),
    "a service of the cloud": ("169.254.169.254:80", (TOKEN,), 403),
    "a public address": ("93.184.215.14:443", (TOKEN,), 403),
    "wide letters": ("ｐypi.org:443", (TOKEN,), 400),
    "a name that is too long": (f"{'a.' * 200}index.example:443", (TOKEN,), 400),
    "a line break in the name": ("index.example\r\nX: y:443", (TOKEN,), 400),
    "a bare line feed in a header": (
        "index.example:443",
        (
            b"X: y\nZ: z",
            TOKEN,
        ),
        400,
    ),
    "a folded header": (
        "index.example:443",
        (
            TOKEN,
            b" folded",
        ),
        400,
    ),
    "a header without a colon": (
        "index.example:443",
        (
            TOKEN,
            b"nothing",
        ),
        400,
    ),
    "a NUL in a header": (
        "index.example:443",
        (
            TOKEN,
            b"X: \0",
        ),
        400,
    ),
    "huge headers": (
        "index.example:443",
        (
            TOKEN,
            b"X: " + b"y" * 20_000,
        ),
        431,
    ),
    "a name within the network": ("inside.example.org:443", (TOKEN,), 403),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_an_agent_may_try_is_refused(agent: Agent, names: Names, attack: str) -> None:
    agent.allows("index.example", "*.files.example", "inside.example.org", "files.example.org")
    names.addresses["inside.example.org"] = [["10.0.0.5", "::1"]]
    where, headers, expected = ATTACKS[attack]
    mine = authorization(agent.key)
    request = connect(where, *(mine if one == TOKEN else one for one in headers))
    assert status(agent, request) == expected
    assert names.asked == (["inside.example.org"] if "within" in attack else [])


@pytest.mark.parametrize("attack", [name for name in ATTACKS if "loopback" in name])
def test_an_open_network_allows_no_address(agent: Agent, names: Names, attack: str) -> None:
    agent.allows("open")
    request = connect(ATTACKS[attack][0], authorization(agent.key))
    assert status(agent, request) == 403
    assert names.asked == []


def test_the_token_of_a_run_that_has_ended_is_refused(agent: Agent, names: Names) -> None:
    agent.allows(NAME)
    (loaded,) = agent.models.store.facts.load(["widgets-12"])
    assert isinstance(loaded.facts, Facts)
    over = replace(loaded.facts.agent, run=1, activity=Activity.EXITED)
    ended = Observation(session="widgets-12", run=1, agent=over)
    agent.models.store.observations.record([ended], agent.models.store.clock())
    assert status(agent, connect(f"{NAME}:443", authorization(agent.key))) == 407
    assert names.asked == []


def test_case_and_a_final_dot_do_not_matter(agent: Agent, host: Host, names: Names) -> None:
    agent.allows(f"Files.Example.ORG:{host.port}")
    for name in ("FILES.example.org", f"{NAME}."):
        request = connect(f"{name}:{host.port}", authorization(agent.key))
        assert status(agent, request) == 200
    assert names.asked == [NAME, NAME]


def test_a_name_that_resolves_to_another_address_later_is_not_asked_twice(
    agent: Agent, host: Host, names: Names
) -> None:
    agent.allows(f"{NAME}:{host.port}")
    names.addresses[NAME] = [["192.168.0.1", "127.0.0.1"], ["192.168.0.1"]]
    request = connect(f"{NAME}:{host.port}", authorization(agent.key))
    assert status(agent, request) == 200  # At the public one of both.
    assert names.asked == [NAME]
    assert status(agent, request) == 403
    eventually(lambda: refused(agent) == [(NAME, host.port, 1)], "the refusal is recorded")
    (one,) = agent.models.store.refused.of("widgets-12")
    assert not one.public


def test_refusals_are_counted_and_bounded(agent: Agent, names: Names) -> None:
    mine = authorization(agent.key)
    for _ in range(3):
        assert status(agent, connect("evil.example:443", mine)) == 403
    for invalid in ("\x1b2J.example", "é.example", "<b>.example", '".example', "x y.example"):
        assert status(agent, connect(f"{invalid}:443", mine)) == 400
    eventually(lambda: refused(agent) == [("evil.example", 443, 3)], "they are recorded")
    for number in range(60):
        assert status(agent, connect(f"h{number}.example:443", mine)) == 403
    eventually(lambda: sum(times for *_, times in refused(agent)) == 63, "all are counted")
    assert len(refused(agent)) == 51
    assert refused(agent)[0] == ("", 0, 11)


def test_refusals_are_recorded_when_the_bot_stops(agent: Agent, names: Names) -> None:
    assert status(agent, connect("evil.example:443", authorization(agent.key))) == 403
    agent.proxy.stop()
    assert refused(agent) == [("evil.example", 443, 1)]


def test_slow_headers_are_cut_off(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEADERS_SECONDS", 0.05)
    for begun in (
        b"C",
        b"CONNECT index.example:443 HTTP/1.1\r\nx: ",
        b"GET http://index.example/ HT",
    ):
        with connects(agent) as client:
            client.sendall(begun)
            assert client.recv(1) == b""


def test_the_time_limit_of_headers_ends_with_them(
    agent: Agent, plain: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_HEADERS_SECONDS", 0.3)
    agent.allows(f"{NAME}:{plain.port}")
    with connects(agent) as client, connects(agent) as slow:
        client.sendall(connect(f"{NAME}:{plain.port}", authorization(agent.key)))
        assert response(client).startswith(b"HTTP/1.1 200 ")
        assert slow.recv(1) == b""  # Its time limit began later.
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert response(client).startswith(b"HTTP/1.1 200 ")


def test_a_request_in_single_bytes_is_understood(agent: Agent, host: Host) -> None:
    agent.allows(f"{NAME}:{host.port}")
    with connects(agent) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        for byte in connect(f"{NAME}:{host.port}", authorization(agent.key)):
            client.sendall(bytes([byte]))
        assert response(client).startswith(b"HTTP/1.1 200 ")


def test_the_models_api_is_served_at_the_same_socket(agent: Agent, names: Names) -> None:
    ask = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {agent.key}\r\ncontent-length: 2"
    assert status(agent, f"{ask}\r\n\r\n{{}}".encode()) == 200


@pytest.mark.parametrize("second", ["CONNECT files.example.org:443", "GET http://evil.example/"])
def test_a_connection_to_a_model_becomes_no_other(agent: Agent, names: Names, second: str) -> None:
    agent.allows("open")
    ask = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {agent.key}\r\ncontent-length: 2"
    with connects(agent) as client:
        client.sendall(f"{ask}\r\n\r\n{{}}".encode())
        assert response(client).startswith(b"HTTP/1.1 200 ")
        shown = authorization(agent.key).decode()
        client.sendall(f"{second} HTTP/1.1\r\nhost: x\r\n{shown}\r\n\r\n".encode())
        answer = response(client)
    assert answer.removeprefix(b"{}")[9:12] in (b"400", b"403")
    assert names.asked == []


def test_connections_of_a_run_are_limited(
    agent: Agent, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnels, "_MAX_PER_RUN", 1)
    agent.allows(f"{NAME}:{host.port}")
    request = connect(f"{NAME}:{host.port}", authorization(agent.key))
    with connects(agent) as client:
        client.sendall(request)
        assert response(client).startswith(b"HTTP/1.1 200 ")
        assert status(agent, request) == 429
    eventually(lambda: status(agent, request) == 200, "the first connection has ended")


@pytest.mark.parametrize("why", ["idle", "the run has ended", "the bot stops"])
def test_a_connection_is_closed(
    agent: Agent, host: Host, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(tunnels, "_CHECK_SECONDS", 0.02)
    agent.proxy.stop()
    agent.proxy = agent.another_proxy()
    agent.proxy.start()
    agent.allows(f"{NAME}:{host.port}")
    with connects(agent) as client:
        client.sendall(connect(f"{NAME}:{host.port}", authorization(agent.key)))
        assert response(client).startswith(b"HTTP/1.1 200 ")
        if why == "idle":
            monkeypatch.setattr(tunnels, "_IDLE_SECONDS", 0.0)
        elif why == "the bot stops":
            agent.proxy.stop()
        else:
            agent.models.paths.run_token("widgets-12", 1).unlink()
        assert client.recv(1) == b""


def test_a_host_that_does_not_answer_times_out(
    agent: Agent, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnels, "_HANDSHAKE_SECONDS", 0.1)
    agent.allows(f"{NAME}:9")
    names.addresses[NAME] = [["203.0.113.1"]]
    names.public.add("203.0.113.1")

    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", hangs)
    assert status(agent, connect(f"{NAME}:9", authorization(agent.key))) == 504


def test_a_host_that_cannot_be_reached_is_not_recorded_as_refused(
    agent: Agent, names: Names
) -> None:
    agent.allows(f"{NAME}:1", "unknown.example")
    for where in (f"{NAME}:1", "unknown.example:443"):
        assert status(agent, connect(where, authorization(agent.key))) == 502
    agent.proxy.stop()
    assert refused(agent) == []


def test_the_socket_belongs_to_this_user_and_is_replaced_by_the_next_bot(
    agent: Agent, names: Names
) -> None:
    assert agent.socket.parent.stat().st_mode & 0o777 == 0o700
    before = agent.socket.stat().st_ino
    agent.proxy.stop()
    assert agent.socket.exists()
    agent.proxy = agent.another_proxy()
    agent.proxy.start()
    assert agent.socket.stat().st_ino != before
    assert [one.name for one in agent.socket.parent.iterdir()] == ["proxy.sock"]
    assert status(agent, connect("evil.example:443", authorization(agent.key))) == 403


def test_a_socket_that_cannot_be_made_is_no_lost_port(agent: Agent, tmp_path: Path) -> None:
    agent.proxy.stop()
    other = agent.another_proxy()
    (agent.socket.parent / "new").mkdir()
    with pytest.raises(OSError, match="directory"):
        other.start()
    (agent.socket.parent / "new").rmdir()
    other.start()
    assert other.url == agent.proxy.url
    assert agent.lost == []
    other.stop()
