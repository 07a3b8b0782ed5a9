"""Stages for the tests of the runtimes."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtimes.stages import FakeStage, Stage, TmuxStage


@pytest.fixture
def tmux() -> Iterator[TmuxStage]:
    """Programs in a tmux server of this test's own, under a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = TmuxStage(Path(folder))
        yield stage
        stage.close()


@pytest.fixture(params=["fake", "tmux"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Every runtime in turn."""
    if request.param == "fake":
        yield FakeStage(tmp_path)
    else:
        yield request.getfixturevalue("tmux")
