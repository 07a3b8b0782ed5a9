"""Compares the start of an agent's program in a container of Docker with `docker run` by hand.

The benchmark starts its own Docker engine, and is left out where that is not possible.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from runtimes.base import Launch, Options
from runtimes.isolation import ISOLATIONS, machine_image
from runtimes.isolation.base import Sandbox
from runtimes.tmux import Tmux
from scripts.benchmarks.figure import Figure
from scripts.benchmarks.start import until_exists
from scripts.engines import CannotRun, installed_engine

ROUNDS = 15
TIMES_BY_HAND = 1.3
_ENGINE = "docker"


def run() -> dict[str, Figure]:
    """Start a program in a container both ways, in alternation."""
    try:
        with installed_engine(_ENGINE), tempfile.TemporaryDirectory(prefix="mw-") as name:
            if why := ISOLATIONS[_ENGINE].unavailable():
                raise CannotRun(why)
            if not shutil.which(_ENGINE):
                raise CannotRun("its command line is not installed")
            return _compared(Path(name).resolve())
    except CannotRun as why:
        sys.stderr.write(f"containers.start is left out, without {_ENGINE}: {why}\n")
        return {}


def _compared(folder: Path) -> dict[str, Figure]:
    runtime = Tmux(Options(data=folder / "tmux", path=os.environ["PATH"]))
    by_hand, as_run = [], []
    try:
        for turn in range(ROUNDS):
            by_hand.append(_by_hand(folder / f"by-hand-{turn}"))
            as_run.append(_as_run(runtime, folder / f"app-{turn}_r1"))
    finally:
        for name in runtime.look():
            runtime.stop(name, grace_seconds=0.1)
    hand, start = median(by_hand) * 1000, median(as_run) * 1000
    most = TIMES_BY_HAND * hand
    return {
        "containers.by_hand": Figure(value=hand, unit="ms"),
        "containers.start": Figure(
            value=start,
            unit="ms",
            limit=f"<= {most:.0f} ({TIMES_BY_HAND:g} x by hand)",
            holds=start <= most,
        ),
    }


def _as_run(runtime: Tmux, folder: Path) -> float:
    """Return the seconds until a program in a container, as agents have it, has made a file."""
    work = folder / "work"
    work.mkdir(parents=True)
    argv = ("/bin/sh", "-c", ": > started; exec sleep 600")
    begun = time.perf_counter()
    launch = Launch(name=folder.name, argv=argv, cwd=work, env={}, dir=folder)
    runtime.start(ISOLATIONS[_ENGINE].wrap(launch, Sandbox(writable=(work,))))
    until_exists(work / "started")
    return time.perf_counter() - begun


def _by_hand(work: Path) -> float:
    """Return the seconds that `docker run` takes until a program has made a file."""
    work.mkdir()
    binds = [f"--volume={one}:{one}:ro" for one in machine_image.folders()]
    # What an agent's container has, too.
    safe = ("--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")
    places = ("--tty", "--tmpfs=/tmp", "--tmpfs=/var/tmp")
    program = ("/bin/sh", "-c", f": > {work}/started; exec sleep 600")
    begun = time.perf_counter()
    command = (_ENGINE, "run", "--detach", "--rm", *safe, *places, *binds)
    done = subprocess.run(
        (*command, f"--volume={work}:{work}", machine_image.name(), *program),
        capture_output=True,
        text=True,
        check=True,
    )
    until_exists(work / "started")
    took = time.perf_counter() - begun
    container = done.stdout.strip()
    subprocess.run((_ENGINE, "rm", "--force", container), check=True, stdout=subprocess.DEVNULL)
    return took
