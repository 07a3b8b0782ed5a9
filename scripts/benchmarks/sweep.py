"""Compares the cost of looking at all terminals with that of the one tmux call it needs."""

import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from runtimes.base import Options
from runtimes.tmux import Tmux
from scripts.benchmarks.figure import Figure

PANES = (1, 100, 1000)
ROUNDS = 15
TIMES_RAW = 2.0  #: The limit of a look's time, divided by the raw call's, at 1,000 panes.


def run() -> dict[str, Figure]:
    """Look at 1, 100 and 1,000 panes, in alternation with the raw tmux call."""
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        runtime = Tmux(Options(data=Path(folder)))
        tmux = ["tmux", "-S", f"{folder}/tmux.sock"]
        raw = [*tmux, "list-panes", "-a"]
        try:
            made = 0
            for panes in PANES:
                _open_panes(tmux, made, panes)
                made = panes
                looks, calls = _measure(runtime, raw)
                look, call = median(looks), median(calls)
                ratio = look / call
                figures[f"sweep.{panes}.look"] = Figure(value=look * 1000, unit="ms")
                figures[f"sweep.{panes}.raw"] = Figure(value=call * 1000, unit="ms")
                held = panes == PANES[-1]
                figures[f"sweep.{panes}.ratio"] = Figure(
                    value=ratio,
                    unit="x raw",
                    limit=f"<= {TIMES_RAW:g}" if held else "",
                    holds=not held or ratio <= TIMES_RAW,
                )
        finally:
            subprocess.run([*tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)
    return figures


def _open_panes(tmux: list[str], have: int, want: int) -> None:
    """Open sessions of one pane each until there are `want`; `have` exist already."""
    for begin in range(have, want, 100):
        sessions: list[str] = []
        for number in range(begin, min(begin + 100, want)):
            sessions += ["new-session", "-d", "-s", f"pane-{number}", "sleep 600", ";"]
        subprocess.run([*tmux, "-f", "/dev/null", *sessions[:-1]], check=True)


def _measure(runtime: Tmux, raw: list[str]) -> tuple[list[float], list[float]]:
    looks: list[float] = []
    calls: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(raw, check=True, stdout=subprocess.PIPE)
        between = time.perf_counter()
        runtime.look()
        calls.append(between - begun)
        looks.append(time.perf_counter() - between)
    return looks, calls
