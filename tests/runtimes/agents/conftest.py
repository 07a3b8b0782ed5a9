"""The files of one run, and a program that is alive or dead."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from lifecycle.model.facts import Exit
from lifecycle.model.status import Probe
from runtimes.agents.base import RunFiles
from runtimes.base import Seen
from tests.runtimes.agents.fake_port import answering
from tests.runtimes.agents.recordings import Recording

ALIVE = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    run = RunFiles(
        session="widgets-12",
        run=2,
        dir=tmp_path / "runs" / "widgets-12_r2",
        workspace=tmp_path / "checkout",
        branch="mergewright/12-add-a-test",
    )
    for folder in (run.inputs, run.outputs):
        folder.mkdir(parents=True, mode=0o700)
    run.workspace.mkdir()
    return run


@pytest.fixture
def alive() -> Seen:
    return ALIVE


@pytest.fixture
def dead() -> Seen:
    end = Exit(at=NOW, code=3, tail="last words")
    return Seen(runtime=Probe.ALIVE, program=Probe.DEAD, exit=end)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def port(case: Path) -> Iterator[int]:
    """A port with the recorded responses, or with none if none were recorded."""
    path = case / "port.json"
    with answering(msgspec.json.decode(path.read_bytes()) if path.exists() else {}, "secret") as it:
        yield it


@pytest.fixture
def recording(case: Path, files: RunFiles, port: int, alive: Seen) -> Recording:
    return Recording(case, files, port, alive)
