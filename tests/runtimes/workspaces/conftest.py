"""A GitHub repository on disk, its mirror, and one session's worktree: all real git."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree

BRANCH = "mergewright/12-add-a-test"


class Git:
    """Git as a person or an agent runs it: with whatever the repository's configuration says."""

    def __init__(self, home: Path) -> None:
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def __call__(self, place: Path, *args: str) -> str:
        run = subprocess.run(
            ["git", *args], cwd=place, env=self.env, text=True, capture_output=True
        )
        assert run.returncode == 0, f"git {args}: {run.stderr}"
        return run.stdout.strip()

    def commit(self, place: Path, name: str, text: str, message: str = "") -> str:
        (place / name).write_text(text)
        self(place, "add", "--", name)
        self(place, "commit", "--quiet", "-m", message or f"Write {name}")
        return self(place, "rev-parse", "HEAD")


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


@pytest.fixture
def person(github: Path, tmp_path: Path, git: Git) -> Path:
    """A person's clone, with the right to push."""
    clone = tmp_path / "person"
    git(tmp_path, "clone", "--quiet", "--template=", str(github), str(clone))
    return clone


@pytest.fixture
def mirror(github: Path, tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "data" / "mirror.git", str(github))
    mirror.refresh()
    return mirror


@pytest.fixture
def workspace(mirror: Mirror, tmp_path: Path) -> Callable[[], Worktree]:
    """Names the session's workspace; a second call is what a restarted bot has in hand."""
    root = tmp_path / "data" / "workspaces"
    return lambda: Worktree(root, "widgets-12", BRANCH, str(mirror.path))


@pytest.fixture
def worktree(mirror: Mirror, workspace: Callable[[], Worktree]) -> Worktree:
    made = workspace()
    prepare(mirror, made, "main")
    return made
