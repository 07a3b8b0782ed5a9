"""Measures a look at the terminals of many runs."""

import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from runtimes.base import Launch, Options
from runtimes.tmux import Tmux
from scripts.benchmarks.figure import Figure

RUNS = (1, 20, 100)
ROUNDS = 15
MOST_MS = 1.0  #: The limit of a look's time for each run, in milliseconds, with 100 runs.


def run() -> dict[str, Figure]:
    """Look at 1, 20 and 100 runs."""
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        runtime = Tmux(Options(data=Path(folder)))
        made: list[str] = []
        try:
            for runs in RUNS:
                _start(runtime, Path(folder), range(len(made), runs), made)
                look = median(_looks(runtime)) * 1000
                held = runs == RUNS[-1]
                figures[f"sweep.{runs}.look"] = Figure(
                    value=look,
                    unit="ms",
                    limit=f"<= {MOST_MS * runs:g}" if held else "",
                    holds=not held or look <= MOST_MS * runs,
                )
        finally:
            for name in made:
                subprocess.run([*runtime.attach(name)[:4], "kill-server"], check=False)
    return figures


def _start(runtime: Tmux, folder: Path, numbers: Iterable[int], made: list[str]) -> None:
    """Start a run for each number, and add their names to `made`."""
    for number in numbers:
        name = f"run-{number}"
        own = folder / "folders" / name
        own.mkdir(parents=True)
        made.append(name)
        runtime.start(Launch(name=name, argv=("sleep", "600"), cwd=own, env={}, dir=own))


def _looks(runtime: Tmux) -> list[float]:
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        runtime.look()
        times.append(time.perf_counter() - begun)
    return times
