"""Stages for the tests of the runtimes, and a GitHub repository on disk with its mirror."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtimes.isolation import ISOLATIONS
from runtimes.workspaces.mirror import Mirror
from tests.runtimes.repositories import Git
from tests.runtimes.stages import FakeStage, IsolatedStage, Stage, TmuxStage


@pytest.fixture
def tmux() -> Iterator[TmuxStage]:
    """Programs, each in its own tmux server, under a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = TmuxStage(Path(folder))
        yield stage
        stage.close()


@pytest.fixture(params=ISOLATIONS)
def isolated(request: pytest.FixtureRequest) -> Iterator[IsolatedStage]:
    """Programs in every kind of isolation in turn."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = IsolatedStage(Path(folder), request.param)
        yield stage
        stage.close()


@pytest.fixture(params=[name for name in ISOLATIONS if name != "none"])
def sandboxed(request: pytest.FixtureRequest) -> Iterator[IsolatedStage]:
    """Programs in every kind of sandbox in turn."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = IsolatedStage(Path(folder), request.param)
        yield stage
        stage.close()


@pytest.fixture
def bubblewrapped() -> Iterator[IsolatedStage]:
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = IsolatedStage(Path(folder), "bubblewrap")
        yield stage
        stage.close()


@pytest.fixture(params=["fake", "tmux", "bubblewrapped"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """The fake runtime, tmux, and tmux with bubblewrap in turn."""
    if request.param == "fake":
        yield FakeStage(tmp_path)
    else:
        yield request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.com\n")
    return Git(home)


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory, git: Git) -> Path:
    """A repository with one commit on main, made once and copied for each test."""
    place = tmp_path_factory.mktemp("begun")
    git(place, "init", "--quiet", "--template=", "--initial-branch=main")
    (place / ".gitignore").write_text("*.log\n")
    git(place, "add", ".")
    git.commit(place, "README", "widgets\n", "Begin")
    return place / ".git"


@pytest.fixture
def github(tmp_path: Path, begun: Path, git: Git) -> Path:
    """The repository on GitHub, with one commit on main."""
    bare = tmp_path / "github" / "widgets.git"
    shutil.copytree(begun, bare)
    (bare / "config").write_text("[core]\nrepositoryformatversion = 0\nbare = true\n")
    return bare


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory, begun: Path) -> Path:
    """The path of a mirror of the repository `begun`, made once and copied for each test."""
    mirror = Mirror(tmp_path_factory.mktemp("fetched") / "mirror.git", str(begun))
    mirror.refresh()
    return mirror.path


@pytest.fixture
def mirror(github: Path, fetched: Path, tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "data" / "mirror.git", str(github))
    shutil.copytree(fetched, mirror.path)
    return mirror
