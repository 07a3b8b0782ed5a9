"""The world every story happens in."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.demo.github import GitHubServer
from tests.world.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """A universe of its own, under a path short enough for a socket."""
    with (
        tempfile.TemporaryDirectory(prefix="mw-") as folder,
        GitHubServer(Path(folder) / "github") as github,
    ):
        made = World(Path(folder), github)
        try:
            yield made
        finally:
            made.close()
