"""Stages for the runtime tests: programs that do what a test orders, on each runtime."""

import os
import signal
import socket
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from runtimes import supervised
from runtimes.base import Launch, Options, Runtime, Seen
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Isolation, Limits, Sandbox
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.supervise import MARK
from runtimes.tmux import Tmux
from tests.world.fake_runtime import FakeRuntime

#: No files, network or limits.
NOTHING = Sandbox(writable=())
_FEW = Limits(processes=1)
#: A program controlled by its `control` pipe, which records its input.
PUPPET = """
exec 3<&0
cat <&3 >received &
exec 4<>control
while read -r order <&4; do eval "$order"; done
"""


def processes(file: str, *texts: bytes) -> list[int]:
    """The pids whose file in /proc holds all of these texts."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            content = (entry / file).read_bytes() if entry.name.isdigit() else b""
        except OSError:  # It ended meanwhile.
            continue
        if content and all(text in content for text in texts):
            found.append(int(entry.name))
    return found


def whole(file: Path) -> str:
    """What a script wrote, or an empty string while it does not end with `end`."""
    text = file.read_text() if file.exists() else ""
    return text if text.endswith("end\n") else ""


class Stage(Protocol):
    """A runtime with scripted programs."""

    @property
    def runtime(self) -> Runtime: ...
    def start(self, name: str) -> str: ...
    def exits(self, name: str, code: int) -> None: ...
    def is_killed(self, name: str, number: int) -> None: ...
    def prints(self, name: str, text: str) -> None: ...
    def received(self, name: str) -> str: ...


class FakeStage:
    """Programs in memory."""

    def __init__(self, folder: Path) -> None:
        self.runtime = FakeRuntime()
        self._folder = folder

    def launch(self, name: str) -> Launch:
        return Launch(
            name=name, argv=("program",), cwd=self._folder, env={}, dir=self._folder / "runs" / name
        )

    def start(self, name: str) -> str:
        self.runtime.start(self.launch(name))
        return name

    def exits(self, name: str, code: int) -> None:
        self.runtime.exits(name, code)

    def is_killed(self, name: str, number: int) -> None:
        self.runtime.exits(name, None, number)

    def prints(self, name: str, text: str) -> None:
        self.runtime.prints(name, text)

    def received(self, name: str) -> str:
        return "".join(f"{text}\n" for text in self.runtime.received(name))


def end_terminals(data: Path) -> None:
    """End all tmux servers of a runtime's folder."""
    for server in data.glob("t????????"):
        subprocess.run(("tmux", "-S", str(server), "kill-server"), capture_output=True, check=False)


class TmuxStage:
    """Real programs, each in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.runtime = Tmux(Options(data=self.data))

    def dir(self, name: str) -> Path:
        """A run's folder; its program works in the folder that the method `work` returns."""
        return self.folder / "runs" / name

    def work(self, name: str) -> Path:
        """The folder that a run's program works in."""
        return self.dir(name)

    def launch(self, name: str, *argv: str, env: dict[str, str] | None = None) -> Launch:
        folder, work = self.dir(name), self.work(name)
        for one in (folder, work):
            one.mkdir(parents=True, exist_ok=True)
        argv = argv or ("sh", "-c", PUPPET)
        return Launch(name=name, argv=argv, cwd=work, env=env or {}, dir=folder)

    def run(self, name: str, *argv: str, env: dict[str, str] | None = None) -> str:
        """Start a program."""
        self.runtime.start(self.launch(name, *argv, env=env))
        return name

    def shell(self, name: str, script: str) -> str:
        """Start a shell script."""
        return self.run(name, "sh", "-c", script)

    def start(self, name: str) -> str:
        control = self.work(name) / "control"
        if not control.exists():
            control.parent.mkdir(parents=True, exist_ok=True)
            os.mkfifo(control)
        return self.run(name)

    def exits(self, name: str, code: int) -> None:
        self._order(name, f"exit {code}")

    def is_killed(self, name: str, number: int) -> None:
        self._order(name, f"kill -{number} $$")

    def prints(self, name: str, text: str) -> None:
        self._order(name, f"printf %s '{text}'")

    def received(self, name: str) -> str:
        received = self.work(name) / "received"
        return received.read_text() if received.exists() else ""

    def seen(self, name: str) -> Seen:
        return self.runtime.look()[name]

    def output(self, name: str) -> str:
        """The recorded output of the program."""
        log = self.dir(name) / "output.log"
        return log.read_bytes().decode() if log.exists() else ""

    def tmux(self, name: str, *args: str) -> str:
        """The output of a tmux command on the server of a run."""
        command = (*self.runtime.attach(name)[:4], *args)
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def processes(self, name: str) -> list[int]:
        """All live processes with the run's mark."""
        return processes("environ", f"{MARK}={self.dir(name)}\0".encode())

    def close(self) -> None:
        """End the programs and tmux servers of all runs."""
        for run in (self.data / "runs").iterdir():
            for pid in self.processes(run.name):
                with suppress(ProcessLookupError):  # A sandbox ends as a whole.
                    os.kill(pid, signal.SIGKILL)
        end_terminals(self.data)

    def _order(self, name: str, order: str) -> None:
        (self.work(name) / "control").write_text(f"{order}\n")


def needs(isolation: str, limited_processes: bool = False) -> None:
    """Skip the test if `isolation` does not work here: bubblewrap fails, or no engine answers.

    If a container engine answers but cannot run containers, the test fails and is not skipped.

    With `limited_processes`, also skip the test if root runs it and `isolation` cannot limit the
    number of root's processes. Such a limit needs control groups, because Linux does not apply
    RLIMIT_NPROC to root (getrlimit(2)).
    """
    if isolation == "bubblewrap" and (why := _without_bubblewrap()):
        pytest.skip(f"bubblewrap does not work here: {why}")
    if isolation in _SOCKETS:
        variable, usual = _SOCKETS[isolation]
        if why := _without_engine(os.environ.get(variable, usual).removeprefix("unix://")):
            pytest.skip(f"{isolation} does not answer here: {why}")
        why = ISOLATIONS[isolation].unavailable()  # Makes its image, too.
        assert not why, why
    if limited_processes and os.geteuid() == 0 and ISOLATIONS[isolation].unlimited(_FEW):
        pytest.skip("root needs control groups to limit processes")


def without_bubblewrap(isolation: str, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    """Return the isolation named `isolation`; for Docker and Podman, disable bubblewrap.

    Without this, `Containers.command` would run a command in bubblewrap if bubblewrap works.
    Bubblewrap is disabled until the test ends. Skips the test if the isolation does not work here.
    """
    needs(isolation)
    if isolation in _SOCKETS:
        monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "removed by this test")
    return ISOLATIONS[isolation]


#: By engine: the variable with the address of its socket, and that of root's.
_SOCKETS = {
    "docker": ("DOCKER_HOST", "/run/docker.sock"),
    "podman": ("CONTAINER_HOST", "/run/podman/podman.sock"),
}


@cache
def _without_engine(path: str) -> str:
    """Why no engine answers at a socket, or empty; whether it runs containers is not checked."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20)
            client.connect(path)
    except OSError as error:
        return f"{error.strerror} at {path}"
    return ""


@cache
def _without_bubblewrap() -> str:
    """Why the plain `bwrap` command fails here, or empty; uses none of the code under test."""
    namespaces = ("--unshare-user", "--unshare-pid", "--unshare-net")
    command = ("bwrap", *namespaces, "--ro-bind", "/", "/", "--proc", "/proc", "true")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except FileNotFoundError:
        return "it is not installed"
    return done.stderr.strip() if done.returncode else ""


class IsolatedStage(TmuxStage):
    """Real programs in a sandbox, in tmux.

    Skips the test if the isolation needs bubblewrap or a container engine that does not work here.
    """

    def __init__(self, folder: Path, isolation: str, sandbox: Sandbox = NOTHING) -> None:
        needs(isolation)
        super().__init__(folder.resolve())
        self.isolation = isolation
        #: What the programs get besides their working folder.
        self.sandbox = sandbox

    def unavailable(self) -> str:
        """Why the stage's isolation does not work on this machine; empty if it works."""
        return ISOLATIONS[self.isolation].unavailable()

    def work(self, name: str) -> Path:
        return self.folder / "work" / name

    def launch(self, name: str, *argv: str, env: dict[str, str] | None = None) -> Launch:
        launch = super().launch(name, *argv, env=env)
        writable = (*self.sandbox.writable, launch.cwd)
        return ISOLATIONS[self.isolation].wrap(launch, replace(self.sandbox, writable=writable))

    def close(self) -> None:
        super().close()
        for run in (self.data / "runs").iterdir():
            supervised.end(run, 0.0)  # Removes control groups, too.
