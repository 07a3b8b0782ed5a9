"""Measures what thousands of idle sessions cost: restart, observation of all agents, and memory.

The time of one observation of all agents (`AgentObserver.sweep`) is divided by the time of a call
of `decide.reference` in the same process, because this ratio hardly depends on the machine.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.benchmarks.figure import Figure
from scripts.benchmarks.population import Population

SIZES = (10, 100, 1000, 10_000)
SWEEP_SECONDS = 5.0
#: In memory: creating the sessions is not measured, and would wait for the disk 10,000 times.
_MEMORY = Path("/dev/shm")
#: The limit of a sweep's time for each session, divided by that of the reference. With it, a sweep
#: of 10,000 sessions takes 5 % of a core where the reference takes 114 microseconds.
MOST_EACH = 0.22
RESTART_SECONDS, MEMORY_MB = 2.0, 200.0


def run() -> dict[str, Figure]:
    """Grow one population and start a bot on it at every size."""
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory(
        prefix="mw-", dir=_MEMORY if _MEMORY.is_dir() else None
    ) as name:
        folder = Path(name)
        for size in SIZES:
            _grow(folder, size)
            measured = _idle(folder, size)
            percent = 100 * measured["sweep"] / SWEEP_SECONDS
            most = size == SIZES[-1]
            figures[f"sessions.{size}.sweep"] = Figure(value=percent, unit="% core")
            figures[f"sessions.{size}.sweep_each"] = Figure(
                value=measured["sweep"] / size * 1e6, unit="us"
            )
            figures[f"sessions.{size}.sweep_relative"] = _held(
                measured["sweep"] / size / measured["reference"], "references", MOST_EACH, most
            )
            figures[f"sessions.{size}.restart"] = _held(
                measured["restart"], "s", RESTART_SECONDS, size == 1000
            )
            figures[f"sessions.{size}.memory"] = _held(measured["memory"], "MB", MEMORY_MB, most)
    return figures


def _held(value: float, unit: str, most: float, held: bool) -> Figure:
    limit = f"<= {most:g}" if held else ""
    return Figure(value=value, unit=unit, limit=limit, holds=not held or value <= most)


def _grow(folder: Path, size: int) -> None:
    population = Population(folder, restored=sum(1 for _ in (folder / "sessions").glob("*_r1")))
    try:
        population.grows(size)
    finally:
        population.store.close()


def _idle(folder: Path, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "scripts.benchmarks.idle", str(folder), str(size)]
    measured = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(measured)
    return figures
