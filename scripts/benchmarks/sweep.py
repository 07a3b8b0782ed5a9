"""Compares a look at the terminals of many runs with one `list-panes` for as many panes.

Each run has a tmux server of its own, but a look asks none of these servers. So its time should be
proportional to the number of runs, as that of `list-panes` in one shared server is.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

from runtimes.base import Launch, Options
from runtimes.tmux import Tmux
from scripts.benchmarks.figure import Figure

RUNS = (1, 50, 300)
ROUNDS = 15
TIMES_RAW = 2.0  #: The limit of a look's time, divided by that of the call, for the most runs.


def run() -> dict[str, Figure]:
    """Look at 1, 50 and 300 runs, in alternation with a tmux call for as many panes."""
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        runtime = Tmux(Options(data=Path(folder)))
        shared = ("tmux", "-S", f"{folder}/shared")
        made: list[str] = []
        try:
            for runs in RUNS:
                more = range(len(made), runs)
                _open_panes(shared, more)
                _start(runtime, Path(folder), more, made)
                figures |= _compared(runtime, shared, runs)
        finally:
            for server in (shared, *(runtime.attach(name)[:4] for name in made)):
                subprocess.run([*server, "kill-server"], check=False, stderr=subprocess.DEVNULL)
    return figures


def _compared(runtime: Tmux, shared: tuple[str, ...], runs: int) -> dict[str, Figure]:
    looks, calls = [], []
    for _ in range(ROUNDS):
        looks.append(_seconds(runtime.look))
        calls.append(_seconds(lambda: _tmux(shared, "list-panes", "-a")))
    look, call = median(looks), median(calls)
    held = runs == RUNS[-1]
    return {
        f"sweep.{runs}.look": Figure(value=look * 1000, unit="ms"),
        f"sweep.{runs}.raw": Figure(value=call * 1000, unit="ms"),
        f"sweep.{runs}.ratio": Figure(
            value=look / call,
            unit="x raw",
            limit=f"<= {TIMES_RAW:g}" if held else "",
            holds=not held or look <= TIMES_RAW * call,
        ),
    }


def _start(runtime: Tmux, folder: Path, numbers: Iterable[int], made: list[str]) -> None:
    """Start a run for each number, and add their names to `made`."""
    for number in numbers:
        name = f"run-{number}"
        own = folder / "folders" / name
        own.mkdir(parents=True)
        made.append(name)
        runtime.start(Launch(name=name, argv=("sleep", "600"), cwd=own, env={}, dir=own))


def _open_panes(shared: tuple[str, ...], numbers: Iterable[int]) -> None:
    """Open a session of one pane for each number."""
    sessions: list[str] = []
    for number in numbers:
        sessions += ["new-session", "-d", "-s", f"pane-{number}", "sleep 600", ";"]
    _tmux(shared, "-f", "/dev/null", *sessions[:-1])


def _tmux(server: tuple[str, ...], *args: str) -> None:
    subprocess.run([*server, *args], check=True, stdout=subprocess.PIPE)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
