"""The operator's files in a workspace: git ignores them, and the bot does not preserve them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.host import WorkspaceOptions
from runtimes.isolation.base import Isolation
from runtimes.workspaces.env_files import place_env_files
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.workspaces.conftest import BRANCH

FILES = {".env": "PASSWORD=hunter2\n", "web/.env.local": "PORT=1\n"}


@pytest.fixture
def named(mirror: Mirror, tmp_path: Path, isolation: Isolation) -> Worktree:
    """A workspace whose project names these files."""
    root, options = tmp_path / "data" / "workspaces", WorkspaceOptions(excluded=tuple(FILES))
    made = Worktree(root, "widgets-12", BRANCH, mirror.path, lambda: isolation, options)
    prepare(mirror, made, "main")
    place_env_files(made, FILES)
    return made


def test_the_files_are_private_and_the_agents_git_ignores_them(named: Worktree, git: Git) -> None:
    for name, text in FILES.items():
        assert (named.path / name).read_text() == text
        assert (named.path / name).stat().st_mode & 0o777 == 0o600
    assert git(named.path, "status", "--porcelain") == ""
    git(named.path, "add", "--all")
    assert git(named.path, "diff", "--cached", "--name-only") == ""
    assert not named.dirty()


def test_a_file_that_exists_is_not_replaced(named: Worktree) -> None:
    (named.path / ".env").write_text("PASSWORD=another\n")
    place_env_files(named, FILES)
    assert (named.path / ".env").read_text() == "PASSWORD=another\n"


def test_a_file_that_was_removed_is_put_back(named: Worktree) -> None:
    (named.path / ".env").unlink()
    place_env_files(named, FILES)
    assert (named.path / ".env").exists()


def test_the_bot_preserves_none_even_if_the_agent_has_git_see_them(
    named: Worktree, mirror: Mirror, git: Git
) -> None:
    (named.repository / "info" / "exclude").write_text("")
    assert ".env" in git(named.path, "status", "--porcelain")
    assert not named.dirty()
    (named.path / "work.txt").write_text("work")
    kept = mirror.preserve(named, 1) or ""
    names = git(mirror.path, "ls-tree", "-r", "--name-only", kept).split()
    assert "work.txt" in names
    assert not FILES.keys() & set(names)


def test_lines_of_the_agents_own_are_kept(named: Worktree) -> None:
    exclude = named.repository / "info" / "exclude"
    exclude.write_text("/mine\n")
    for _ in range(2):
        place_env_files(named, FILES)
    assert exclude.read_text() == "/mine\n/.env\n/web/.env.local\n"


@pytest.mark.parametrize("link", ["checkout/web", "repository.git/info"])
def test_no_link_is_followed(named: Worktree, tmp_path: Path, link: str) -> None:
    outside, place = tmp_path / "outside", named.place / link
    outside.mkdir()
    place.rename(tmp_path / "moved")
    place.symlink_to(outside)
    with pytest.raises(OSError, match=r"symbolic link|Not a directory|loop"):
        place_env_files(named, FILES)
    assert [*outside.iterdir()] == []


def test_a_link_in_the_place_of_a_file_is_left(named: Worktree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (named.path / ".env").unlink()
    (named.path / ".env").symlink_to(outside)
    place_env_files(named, FILES)
    assert (named.path / ".env").is_symlink()
    assert not outside.exists()


def test_a_workspace_without_such_files_has_no_such_settings(
    worktree: Worktree, workspace: Callable[[], Worktree]
) -> None:
    place_env_files(workspace(), {})
    assert not (worktree.repository / "info" / "exclude").exists()


def test_the_mirror_knows_what_a_repository_tracks(mirror: Mirror) -> None:
    mirror.refresh()
    head = mirror.head_of("main") or ""
    assert mirror.tracked(head, ["README", ".env"]) == ["README"]
