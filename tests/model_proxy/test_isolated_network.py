"""What a program in a real sandbox reaches, and what it cannot, by the real proxy."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from runtimes.isolation.base import PROXY_PORT
from tests.harness.model_proxies import Agent, Provider
from tests.harness.tls_hosts import NAME, Host, Names, certificate
from tests.runtimes.stages import IsolatedStage
from tests.world.waiting import eventually

#: Each line tries something; its exit code and what it printed are recorded.
_TRIES = """
try() { name=$1; shift; out=$("$@" 2>/dev/null); echo "$name $? $out" >>did; }
curl="curl --silent --fail --max-time 20"
folder=/run/mergewright/proxy
bind='import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])'
try allowed $curl --cacert certificate.pem https://$HOST:$PORT/secure
try model $curl http://127.0.0.1:$PROXY_PORT/v1/messages -H "x-api-key: $TOKEN" -d '{}'
try other $curl https://evil.example/
try loopback $curl --noproxy '' https://127.0.0.1:$PORT/
try directly $curl --noproxy '*' https://127.0.0.1:$PORT/
try lookup getent hosts $HOST
try replace mv $folder/proxy.sock $folder/old
try remove rm -f $folder/proxy.sock
try squat python3 -c "$bind" $folder/x
echo end >>did
"""


@pytest.fixture
def agent(scenario: Any, tmp_path: Path, provider: Provider) -> Iterator[Agent]:
    with closing(Agent(scenario, tmp_path, provider)) as made:
        yield made


@pytest.fixture
def stage(agent: Agent) -> Iterator[IsolatedStage]:
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        made = IsolatedStage(Path(folder), "bubblewrap")
        made.sandbox = replace(made.sandbox, proxy=agent.socket.parent)
        yield made
        made.close()


def test_a_sandbox_reaches_the_model_and_allowed_hosts_only(
    agent: Agent, stage: IsolatedStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agent.models.store.sessions.get("widgets-12")
    assert session
    signed = certificate(tmp_path)
    Names(monkeypatch).addresses[NAME] = [["127.0.0.1"]]
    with Host(signed).serves() as host:
        agent.allows(f"{NAME}:{host.port}")
        work = stage.work("app-1_r1")
        work.mkdir(parents=True)
        (work / "certificate.pem").write_bytes(signed.read_bytes())
        env = {
            **agent.models.proxy_variables(session, 1, PROXY_PORT),
            "HOST": NAME,
            "PORT": str(host.port),
            "PROXY_PORT": str(PROXY_PORT),
            "TOKEN": agent.key,
        }
        stage.run("app-1_r1", "sh", "-c", _TRIES, env=env)
        did = work / "did"
        eventually(lambda: did.exists() and did.read_text().endswith("end\n"), "all was tried")
    tried = dict(line.split(" ", 1) for line in did.read_text().splitlines()[:-1])
    assert tried.pop("allowed") == "0 /secure"
    assert tried.pop("model") == "0 {}"
    assert tried.pop("directly") == "7 "  # Nobody listens there.
    stopped = {"other", "loopback", "lookup", "replace", "remove", "squat"}
    assert {name for name, result in tried.items() if not result.startswith("0")} == stopped
    agent.proxy.stop()
    refused = {(one.host, one.port) for one in agent.models.store.refused.of("widgets-12")}
    assert refused == {("evil.example", 443), ("127.0.0.1", host.port)}
    assert [one.name for one in agent.socket.parent.iterdir()] == ["proxy.sock"]
