"""Tests of containers, beyond the contract of every isolation."""

import json
import marshal
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model.status import Probe
from runtimes.agents.base import RunFiles
from runtimes.base import RuntimeFailure
from runtimes.containers import client
from runtimes.containers.engine import Engine, EngineError
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Container, Limits
from runtimes.isolation.containers import Containers
from runtimes.local_runs import LocalRuns
from tests.runtimes.stages import IsolatedStage, whole
from tests.world.fake_runtime import FakeRuntime
from tests.world.waiting import eventually

NAME = "app-1_r1"
_NOW = datetime(2026, 11, 20, tzinfo=UTC)
_ENGINES = ("docker", "podman")


@pytest.fixture(params=_ENGINES)
def contained(request: pytest.FixtureRequest) -> Iterator[IsolatedStage]:
    """Programs in containers of every engine in turn."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = IsolatedStage(Path(folder), request.param)
        yield stage
        stage.close()


def spec_of(stage: IsolatedStage) -> Any:
    """Return the description from which `runtimes.containers.client` makes a run's container."""
    spec = marshal.loads((stage.dir(NAME) / "sandbox" / "container").read_bytes())
    return {**spec, "container": json.loads(spec["container"])}


def engine_of(stage: IsolatedStage) -> Engine:
    return Engine(spec_of(stage)["engine"])


def containers(stage: IsolatedStage) -> list[str]:
    """The names of all containers of a stage's runs."""
    labels = {"label": [f"mergewright.sessions={stage.dir(NAME).parent}"]}
    found: Any = engine_of(stage).call("GET", "/containers/json", all="1", filters=labels)
    return [name for one in found for name in one["Names"]]


def test_the_program_has_no_rights_beyond_its_files(contained: IsolatedStage) -> None:
    script = """
    id -u; grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
    touch /x /usr/x; ls /sys/class/net; echo end
    """
    contained.shell(NAME, f"({script}) >out 2>&1; cat")
    said = eventually(lambda: whole(contained.work(NAME) / "out"), "the script's end")
    user, *lines = said.splitlines()
    assert user != "0"
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert status["CapEff"] == status["CapPrm"] == "0" * 16
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert said.count("Read-only file system") == 2
    assert lines[-2:] == ["lo", "end"]


def test_the_program_does_not_reach_its_first_process(contained: IsolatedStage) -> None:
    attack = """
import os, signal, socket
link = "/run/mergewright/link"
for what in (
    lambda: socket.socket(socket.AF_UNIX).connect(f"{link}/first.sock"),
    lambda: os.open(f"{link}/first.sock.new", os.O_CREAT | os.O_WRONLY),
    lambda: os.open("/run/mergewright/first.py", os.O_WRONLY),
    lambda: os.open("/proc/1/mem", os.O_RDWR),
    lambda: os.listdir("/proc/1/fd"),
):
    try:
        print(what())
    except OSError as error:
        print("refused", error.strerror)
os.kill(1, signal.SIGKILL)
os.kill(1, signal.SIGTERM)
print("end")
"""
    contained.shell(NAME, f"/usr/bin/python3 -c '{attack}' >out 2>&1; cat")
    said = eventually(lambda: whole(contained.work(NAME) / "out"), "the script's end")
    assert said.count("refused") == 5, said


def test_the_engine_keeps_no_command_and_no_environment(contained: IsolatedStage) -> None:
    contained.run(NAME, "sh", "-c", "echo $WORD; : argument; cat", env={"WORD": "open-sesame"})
    eventually(
        lambda: "open-sesame" in contained.runtime.screens([NAME]).get(NAME, ""), "its terminal"
    )
    kept = json.dumps(
        engine_of(contained).call("GET", f"/containers/{spec_of(contained)['name']}/json")
    )
    assert "open-sesame" not in kept
    assert ": argument" not in kept
    assert '"mergewright.session": "app-1"' in kept
    assert b"open-sesame" not in (contained.dir(NAME) / "sandbox" / "container").read_bytes()


def test_nothing_of_a_container_is_left_after_a_stop(contained: IsolatedStage) -> None:
    contained.start(NAME)
    eventually(lambda: containers(contained), "the container")
    contained.runtime.stop(NAME)

    def is_removed() -> bool:  # If its engine made it after that, by the next look.
        ISOLATIONS[contained.isolation].remove_orphans(contained.dir(NAME).parent)
        return containers(contained) == []

    eventually(is_removed, "its removal")


def test_a_second_start_of_a_run_is_refused(contained: IsolatedStage) -> None:
    contained.start(NAME)
    again = contained.folder / "again"
    shutil.copytree(contained.dir(NAME) / "sandbox", again, ignore=lambda *_: ["first.sock"])
    launch = contained.launch("app-2_r1", "true")
    eventually(lambda: containers(contained), "the container")
    argv = [str(again) if word.endswith("app-2_r1/sandbox") else word for word in launch.argv]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 125
    assert "in use" in done.stderr
    assert contained.seen(NAME).program is Probe.ALIVE


def test_a_container_without_its_run_is_removed(contained: IsolatedStage) -> None:
    contained.start(NAME)
    (mine,) = eventually(lambda: containers(contained), "the container")
    spec, engine = spec_of(contained), engine_of(contained)
    spec["container"]["Labels"]["mergewright.run"] = "app-2_r1"
    engine.call("POST", "/containers/create", spec["container"], name=f"{spec['name']}-orphan")
    isolation, runs = ISOLATIONS[contained.isolation], contained.dir(NAME).parent
    assert isolation.remove_orphans(runs)
    assert containers(contained) == [mine]
    assert contained.seen(NAME).program is Probe.ALIVE
    assert not isolation.remove_orphans(contained.folder)


def test_a_container_that_a_killed_bot_did_not_start_is_removed_later(
    contained: IsolatedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    contained.launch(NAME)
    spec, engine = spec_of(contained), engine_of(contained)
    engine.call("POST", "/containers/create", spec["container"], name=spec["name"])
    isolation, others = ISOLATIONS[contained.isolation], contained.folder
    isolation.remove_orphans(others)
    assert containers(contained) == [f"/{spec['name']}"]
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    isolation.remove_orphans(others)
    assert containers(contained) == []


def test_an_engine_is_asked_once_what_it_is(
    contained: IsolatedStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    contained.launch(NAME)
    asked: list[str] = []

    def answer(_: Engine, __: str, path: str) -> dict[str, object]:
        asked.append(path)
        return {}

    monkeypatch.setattr(Engine, "call", answer)
    contained.launch("app-2_r1")
    assert asked == []
    same = contained.folder / "engine.sock"  # Of an engine that was started again.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(same))
        for variable in ("DOCKER_HOST", "CONTAINER_HOST"):
            monkeypatch.setenv(variable, f"unix://{same}")
        contained.launch("app-3_r1")
    assert asked == ["/info"]


def test_a_missing_image_is_named_with_a_remedy(contained: IsolatedStage) -> None:
    why = ISOLATIONS[contained.isolation].unavailable(Container(image="no-such-image:1"))
    assert "it has no image no-such-image:1: build or pull it" in why


def test_an_unknown_oci_runtime_is_said(contained: IsolatedStage) -> None:
    why = ISOLATIONS[contained.isolation].unavailable(Container(oci_runtime="no-such-runtime"))
    assert why.startswith(f"{contained.isolation} does not work here: ")
    assert "no-such-runtime" in why


def test_limits_are_the_engines(contained: IsolatedStage) -> None:
    assert ISOLATIONS[contained.isolation].unlimited(Limits(memory_mb=1, processes=1, cpus=1)) == ""


@pytest.mark.parametrize("name", _ENGINES)
def test_an_engine_that_does_not_answer_is_said(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("DOCKER_HOST", "CONTAINER_HOST"):
        monkeypatch.setenv(variable, f"unix://{tmp_path}/none.sock")
    isolation = ISOLATIONS[name]
    assert (
        f"{name} does not work here: no answer at {tmp_path}/none.sock" in isolation.unavailable()
    )
    assert f"apt-get install {name}" in isolation.unavailable()
    assert not isolation.remove_orphans(tmp_path)
    assert isolation.unlimited(Limits(processes=1)) == "pids"


def test_a_path_that_an_engine_cannot_be_given_is_refused(contained: IsolatedStage) -> None:
    odd = contained.folder / "a:b"
    odd.mkdir()
    contained.sandbox = replace(contained.sandbox, readable=(odd,))
    with pytest.raises(RuntimeFailure, match="its path has a colon"):
        contained.start(NAME)


def test_an_engine_error_has_its_words(contained: IsolatedStage) -> None:
    contained.launch(NAME)
    with pytest.raises(EngineError, match=r"(?i)no such container") as failed:
        engine_of(contained).call("GET", "/containers/none/json")
    assert failed.value.status == 404


def runs_in(folder: Path) -> LocalRuns:
    """The `LocalRuns` of a host on which nothing runs."""
    files = RunFiles(session="", run=1, dir=folder, workspace=folder, branch="")
    return LocalRuns(FakeRuntime(), {}, lambda _: files, folder / "workspaces", folder)


def test_each_look_removes_containers_of_ended_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    left = [True, False, False]

    def removes(_: Containers, sessions: Path) -> bool:
        asked.append(sessions)
        if not left:
            raise RuntimeFailure("docker keeps containers of ended runs")
        return left.pop(0)

    monkeypatch.setattr(Containers, "remove_orphans", removes)
    runs = runs_in(tmp_path)
    runs.look([], _NOW)  # Docker has some, Podman has none and is not asked again.
    runs.look([], _NOW)
    assert len(asked) == 3
    assert set(asked) == {tmp_path}
    assert runs.look([], _NOW).failure == ""  # It fails, which concerns no run.
    assert len(asked) == 4


def test_an_engine_that_refuses_this_user_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Containers] = []

    def refuses(engine: Containers, _: Path) -> bool:
        asked.append(engine)
        raise RuntimeFailure("docker keeps containers of ended runs: Permission denied")

    monkeypatch.setattr(Containers, "remove_orphans", refuses)
    runs = runs_in(tmp_path)
    runs.look([], _NOW)
    runs.look([], _NOW)
    assert asked == [ISOLATIONS[name] for name in _ENGINES]
    assert caplog.messages == []


def test_the_removal_of_a_container_is_asked_for_again_where_docker_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(Path(client.__file__).parent))
    monkeypatch.setattr(client, "_REMOVAL_SECONDS", 3.0)
    asked: list[str] = []

    class Deaf(socketserver.StreamRequestHandler):
        """Docker as it was seen: the first removal has no answer, the next one gets a 404."""

        def handle(self) -> None:
            asked.append(self.rfile.readline().split()[1].decode())
            if "/_ping" in asked[-1]:
                self.wfile.write(b"HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\n\r\nOK")
            elif len(asked) == 2:
                while self.rfile.read(1):  # Until the client gives up.
                    pass
            else:
                self.wfile.write(b'HTTP/1.0 404 Not Found\r\n\r\n{"message": "none"}')

    path = str(tmp_path / "engine.sock")
    with socketserver.ThreadingUnixStreamServer(path, Deaf) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        client._remove_ended(Engine(path), NAME)
        server.shutdown()
        thread.join()
    assert asked[1:] == 2 * [f"/v1.41/containers/{NAME}?force=1&v=1"]
