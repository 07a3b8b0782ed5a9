"""Compares durable webhook ingest with a minimal application and with Probot.

All servers run at once and are measured in turns, so that other load affects them alike. Probot
needs node 20 and npm; its packages are kept in the user's cache folder.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from scripts.benchmarks.figure import Figure

ROUNDS = 5
SECONDS = 2.0
CONNECTIONS = (1, 32)
TIMES_PROBOT = 2.0  #: The least ratio to Probot's requests, at 32 connections.

_PROBOT = Path(__file__).parent / "probot"
_SECRET = secrets.token_hex()


class Taker:
    """One server, its port and its database."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path) -> None:
        self.name = name
        self.port = _free_port()
        self.database = folder / f"{name}.db"
        self.answers = 0
        arguments = [*command, str(self.port), self.database, _SECRET]
        self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE)

    def await_start(self) -> None:
        """Wait until the server listens. Raises `RuntimeError` if it does not start."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError(f"the server {self.name} did not start: its error is above")

    def measure(self, connections: int) -> dict[str, float]:
        """Send load for a round; return what `load` prints."""
        word = secrets.token_hex(4)
        numbers = [str(self.port), str(connections), str(SECONDS), _SECRET, word]
        done = subprocess.run(
            [sys.executable, "-m", "scripts.benchmarks.load", *numbers],
            check=True,
            stdout=subprocess.PIPE,
            timeout=SECONDS + 30,
        )
        measured: dict[str, float] = json.loads(done.stdout)
        self.answers += int(measured["answers"])
        return measured

    def end(self) -> None:
        """Stop the server, and check that it stored as many deliveries as it acknowledged.

        Raises `RuntimeError` if the numbers differ.
        """
        self._process.terminate()
        self._process.communicate(timeout=30)
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            ((rows,),) = connection.execute("SELECT count(*) FROM deliveries").fetchall()
        if rows != self.answers:
            raise RuntimeError(f"{self.name} answered {self.answers} times and kept {rows}")


def run() -> dict[str, Figure]:
    """Compare the servers. Takes about a minute, or two if Probot must be installed first."""
    measured: dict[tuple[str, int], list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, _takers(Path(folder)) as takers:
        for turn in range(-1, ROUNDS):
            for connections in CONNECTIONS:
                for taker in takers:
                    figures = taker.measure(connections)
                    if turn >= 0:  # the first warms up
                        measured[taker.name, connections].append(figures)
    return _figures(measured)


@contextlib.contextmanager
def _takers(folder: Path) -> Iterator[list[Taker]]:
    ours = [sys.executable, "-m", "scripts.benchmarks.ingest_server"]
    commands: dict[str, Sequence[str | Path]] = {
        "mergewright": [*ours, "mergewright"],
        "bare": [*ours, "bare"],
    }
    node = shutil.which("node")
    if node and shutil.which("npm"):
        commands["probot"] = [node, _probot() / "server.js"]
    else:
        print("node and npm are not installed: Probot is not measured", file=sys.stderr)
    with contextlib.ExitStack() as ends:
        takers = []
        for name, command in commands.items():
            takers.append(Taker(name, command, folder))
            ends.callback(takers[-1].end)
        for taker in takers:
            taker.await_start()
        yield takers


def _probot() -> Path:
    """Return the folder of Probot, installed once for each version of our `package.json`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "mergewright" / "probot"
    folder.mkdir(parents=True, exist_ok=True)
    for file in _PROBOT.iterdir():
        shutil.copy(file, folder)
    wanted, installed = (_PROBOT / "package.json").read_bytes(), folder / "installed.json"
    if not installed.exists() or installed.read_bytes() != wanted:
        install = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=folder, check=True, stdout=sys.stderr)
        installed.write_bytes(wanted)
    return folder


def _figures(measured: dict[tuple[str, int], list[dict[str, float]]]) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for (name, connections), rounds in sorted(measured.items()):
        for key, unit in (("rps", "1/s"), ("p50_ms", "ms"), ("p99_ms", "ms")):
            value = median(figures[key] for figures in rounds)
            figures[f"ingest_{name}_{connections}_{key}"] = Figure(value=value, unit=unit)
    for connections in CONNECTIONS:
        for other in ("bare", "probot"):
            ratio = _ratio(measured, connections, other)
            if ratio is None:
                continue
            held = (other, connections) == ("probot", 32)
            figures[f"ingest_{connections}_times_{other}"] = Figure(
                value=ratio,
                unit="x",
                limit=f">= {TIMES_PROBOT:g}" if held else "",
                holds=ratio >= TIMES_PROBOT or not held,
            )
    return figures


def _ratio(
    measured: dict[tuple[str, int], list[dict[str, float]]], connections: int, other: str
) -> float | None:
    """Divide Mergewright's requests per second by those of the server `other`, for each round.

    Returns the median of these ratios, or None if `other` was not measured.
    """
    pairs = zip(measured["mergewright", connections], measured[other, connections], strict=False)
    return median([ours["rps"] / theirs["rps"] for ours, theirs in pairs] or [0.0]) or None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def main() -> None:
    figures: dict[str, Any] = run()
    for name, figure in figures.items():
        limit = f"  (limit {figure.limit}: {'holds' if figure.holds else 'MISSED'})"
        print(f"{name:32} {figure.value:10.2f} {figure.unit}{limit if figure.limit else ''}")


if __name__ == "__main__":
    main()
