"""Measures reading agents' files: one long transcript, and a sweep over a thousand agents."""

import os
import tempfile
import time
from pathlib import Path

from lifecycle.model.status import Probe
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from scripts.benchmarks.agent_files import ID, KINDS, NOW, Kind, port
from scripts.benchmarks.figure import Figure

SESSIONS, CHANGED, ROUNDS = 1000, 10, 7
MB_A_SECOND, SWEEP_MS = 50.0, 100.0
_STEPS = 4000  #: Of one transcript; each is a tool call with its result of some kilobytes.
_ALIVE = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
_MEMORY = Path("/dev/shm")


def run() -> dict[str, Figure]:
    """Read a long transcript of each agent type, then a thousand transcripts, ten of them grown."""
    figures: dict[str, Figure] = {}
    place = _MEMORY if _MEMORY.is_dir() else None
    for name, kind in KINDS.items():
        if kind.parses:
            with tempfile.TemporaryDirectory(prefix="mw-", dir=place) as folder:
                speed = _parse(name, kind, Path(folder))
            figures[f"reading.{name}.parse"] = Figure(
                value=speed,
                unit="MB/s",
                limit=f">= {MB_A_SECOND:g}",
                holds=speed >= MB_A_SECOND,
            )
        with tempfile.TemporaryDirectory(prefix="mw-", dir=place) as folder:
            sweep = _sweep(name, kind, Path(folder))
        figures[f"reading.{name}.sweep"] = Figure(
            value=sweep, unit="ms", limit=f"<= {SWEEP_MS:g}", holds=sweep <= SWEEP_MS
        )
    return figures


def _parse(name: str, kind: Kind, folder: Path) -> float:
    """Return the MB that are read in a second of processor time."""
    reader, files = _session(name, kind, folder, 0)
    size = kind.grow(files, range(_STEPS))
    begun = time.process_time()
    while reader.read(_ALIVE, None, NOW).usage.output < 42 * _STEPS:
        pass
    return size / 1e6 / (time.process_time() - begun)


def _sweep(name: str, kind: Kind, folder: Path) -> float:
    """Return the processor time of one sweep over all agents, in milliseconds."""
    with port() as number:
        sessions = [_session(name, kind, folder, place) for place in range(SESSIONS)]
        for _, files in sessions:
            kind.beside(files, number)
        sweeps = []
        for step in range(ROUNDS):
            for _, files in sessions[:CHANGED] if step else sessions:
                kind.grow(files, (step,))
            begun = time.process_time()
            for reader, _ in sessions:
                reader.read(_ALIVE, kind.shows, NOW)
            sweeps.append(time.process_time() - begun)
    return min(sweeps[1:]) * 1000


def _session(name: str, kind: Kind, folder: Path, number: int) -> tuple[Reader, RunFiles]:
    """Create a session during a turn, with an empty transcript."""
    session = f"bench-{number}"
    files = RunFiles(
        session=session,
        run=1,
        dir=folder / f"{session}_r1",
        workspace=folder,
        branch="bench",
    )
    files.dir.mkdir()
    files.conversation.write_text(ID)
    os.utime(files.conversation, (0, 0))
    kind.grow(files, ())
    return AGENTS[name](AgentType(program=name)).reader(files), files
