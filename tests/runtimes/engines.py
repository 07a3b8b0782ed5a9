"""Engines of containers for tests: daemons of their own, in a network namespace of their own.

They need root. Nothing of the machine's own engines is used or changed.
"""

import os
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.runtimes.stages import processes
from tests.world.waiting import eventually

#: Where daemons may not raise limits, Podman's defaults for them fail.
_CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={files}:{files}"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
#: Without the plugin for Kubernetes.
_CONTAINERD_TOML = 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'


def missing(name: str) -> str:
    """Why this user cannot start an engine here; empty: it can be tried."""
    programs = {"docker": ("dockerd", "containerd", "runc"), "podman": ("podman", "conmon", "runc")}
    lacking = [program for program in programs[name] if not shutil.which(program)]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    return "" if os.geteuid() == 0 else "only root can start an engine of its own"


class Daemon:
    """A process that a test starts, kills and starts again."""

    def __init__(self, folder: Path, address: Path, command: Sequence[str]) -> None:
        self.socket = address
        self.below: Daemon | None = None  #: The daemon that this one uses.
        self._folder, self._command = folder, command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """The name of its program."""
        return self._command[0]

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        # Of podman, which reads them.
        env = {name: value for name, value in os.environ.items() if name != "CONTAINER_HOST"}
        env["CONTAINERS_CONF"] = str(self._folder / "containers.conf")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ("unshare", "--net", "--", *self._command),
                cwd=self._folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        eventually(self._answers, f"{self._command[0]}, see {self._folder}/log")

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal."""
        if self._process:
            self._process.send_signal(number)
            self._process.wait(60)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.socket)) == 0


@contextmanager
def docker(folder: Path) -> Iterator[Daemon]:
    """Docker, whose containers survive it. `folder` has a short path; the caller removes it."""
    address = folder / "containerd.sock"
    try:
        with _docker(folder, address) as daemon:
            yield daemon
    finally:  # Its parts that attend to containers stay if they end while nobody looks.
        for pid in processes("cmdline", str(address).encode()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def _docker(folder: Path, address: Path) -> Iterator[Daemon]:
    # A process of its own, as on real machines; below dockerd it would end with it.
    with _running(
        *(folder, address, "containerd", "--config", folder / "containerd.toml"),
        *("--root", folder / "containerd", "--state", folder / "state", "--address", address),
    ) as containerd:
        sock = folder / "engine.sock"
        with _running(
            *(folder, sock, "dockerd", "--live-restore", "--bridge=none", "--iptables=false"),
            *("--data-root", folder / "data", "--exec-root", folder / "exec"),
            *("--containerd", address, "-H", f"unix://{sock}", "--pidfile", folder / "pid"),
        ) as daemon:
            daemon.below = containerd
            yield daemon


@contextmanager
def podman(folder: Path) -> Iterator[Daemon]:
    """A server of Podman's API. Containers keep running when the server stops.

    `folder` has a short path, because it holds a Unix socket; the caller removes the folder.
    """
    sock = folder / "engine.sock"
    with _running(
        *(folder, sock, "podman", "--root", folder / "data", "--runroot", folder / "run"),
        *("system", "service", "--time=0", f"unix://{sock}"),
    ) as daemon:
        yield daemon


@contextmanager
def _running(folder: Path, address: Path, *command: str | Path) -> Iterator[Daemon]:
    folder.mkdir(parents=True, exist_ok=True)
    conf = _CONTAINERS_CONF.format(files=resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    (folder / "containers.conf").write_text(conf)
    (folder / "containerd.toml").write_text(_CONTAINERD_TOML)
    daemon = Daemon(folder, address, [str(word) for word in command])
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.end()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([one for one in mounts if one.startswith(f"{folder}/")]):
            subprocess.run(("umount", "-l", place), check=False)
