"""Stages for the tests of the runtimes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtimes.stages import MemoryStage, Stage, TmuxStage


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[TmuxStage]:
    """Programs in a tmux server of this test's own."""
    stage = TmuxStage(tmp_path)
    yield stage
    stage.close()


@pytest.fixture(params=["memory", "tmux"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Every runtime in turn."""
    if request.param == "memory":
        yield MemoryStage(tmp_path)
    else:
        yield request.getfixturevalue("tmux")
