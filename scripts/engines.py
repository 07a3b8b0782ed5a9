"""Engines of containers for the scripts: daemons of their own, never those of the system.

Programs that are missing are installed with apt. No image comes from a registry.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.runtimes import engines
from tests.runtimes.engines import Daemon

#: Programs and their packages of Debian and Ubuntu.
_PACKAGES = {
    "bwrap": ("bubblewrap",),
    "dockerd": ("docker.io", "containerd", "runc"),
    "podman": ("podman", "conmon", "runc"),
}
#: By engine: the variable with the address of its socket.
VARIABLES: Mapping[str, str] = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}
#: The exit code of a script that could not run everything here.
INCOMPLETE = 3


class CannotRun(Exception):
    """An engine cannot be started here; the message says why."""


def install(programs: Sequence[str] = tuple(_PACKAGES)) -> None:
    """Install those of these programs that are missing, where apt is and this user is root."""
    packages = [
        one for program in programs if not shutil.which(program) for one in _PACKAGES[program]
    ]
    if not packages or not shutil.which("apt-get") or os.geteuid() != 0:
        return
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wanted = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
    for command in (("apt-get", "update", "-qq"), wanted):
        subprocess.run(command, env=env, check=False, stdout=subprocess.DEVNULL)


@contextmanager
def engine(name: str, folder: Path) -> Iterator[Daemon]:
    """Run an engine in a folder with a short path; its address is in the environment meanwhile.

    Raises `CannotRun`.
    """
    variable = VARIABLES[name]
    before = os.environ.get(variable)
    os.environ[variable] = f"unix://{folder}/none.sock"  # Never the system's engine.
    try:
        if why := engines.missing(name):
            raise CannotRun(why)
        start = engines.docker if name == "docker" else engines.podman
        started = start(folder)
        try:
            daemon = started.__enter__()
        except (AssertionError, OSError) as failed:
            log = folder / "log"
            end = log.read_text(errors="replace")[-1000:] if log.exists() else ""
            raise CannotRun(f"{failed}\n{end}") from None
        try:
            os.environ[variable] = f"unix://{daemon.socket}"
            yield daemon
        finally:
            started.__exit__(None, None, None)
    finally:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


@contextmanager
def installed_engine(name: str) -> Iterator[Daemon]:
    """Install an engine if it is missing, and run it in a temporary folder. Raises `CannotRun`."""
    install(("dockerd" if name == "docker" else "podman",))
    with tempfile.TemporaryDirectory(prefix="mw-") as folder, engine(name, Path(folder) / "e") as e:
        yield e
