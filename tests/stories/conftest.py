"""The world in which every story happens."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.decide.replay import replay
from tests.world.clock import observed_by
from tests.world.faulty_github import FaultyGitHub
from tests.world.repeated_work import cache_routes
from tests.world.world import World


@pytest.fixture(scope="session", autouse=True)
def _repeated_work() -> None:
    cache_routes()


@pytest.fixture
def world() -> Iterator[World]:
    """A world for each story, under a path short enough for a socket."""
    with (
        tempfile.TemporaryDirectory(prefix="mw-") as folder,
        FaultyGitHub(Path(folder) / "github") as github,
    ):
        made = World(Path(folder), github)
        with observed_by(made.clock):
            try:
                yield made
                if made.app is not None:
                    every_decision_comes_out_the_same(made)
            finally:
                made.close()


def every_decision_comes_out_the_same(world: World) -> None:
    """Replay every decision of the story from its history."""
    for session in world.store.sessions.all():
        for again in replay(world.store.decisions.replayable(session.id)):
            assert again.differences == (), session.id
