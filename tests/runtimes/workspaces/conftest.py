"""One session's worktree on a mirror: all real git."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.isolation import ISOLATIONS, strongest
from runtimes.isolation.base import Isolation
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

BRANCH = "mergewright/12-add-a-test"


@pytest.fixture
def person(github: Path, tmp_path: Path, git: Git) -> Path:
    """A person's clone with push access."""
    clone = tmp_path / "person"
    git(tmp_path, "clone", "--quiet", "--template=", str(github), str(clone))
    return clone


@pytest.fixture
def isolation() -> Isolation:
    """The strongest that works here, for the bot's git as for the agent."""
    return ISOLATIONS[strongest()]


@pytest.fixture
def workspace(mirror: Mirror, tmp_path: Path, isolation: Isolation) -> Callable[[], Worktree]:
    """Returns the session's workspace; a second call is that of a restarted bot."""
    root = tmp_path / "data" / "workspaces"
    return lambda: Worktree(root, "widgets-12", BRANCH, mirror.path, lambda: isolation)


@pytest.fixture
def worktree(mirror: Mirror, workspace: Callable[[], Worktree]) -> Worktree:
    made = workspace()
    prepare(mirror, made, "main")
    return made
