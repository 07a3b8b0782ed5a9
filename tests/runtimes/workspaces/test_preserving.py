"""Tests of preserving the work of spoiled and unusual workspaces."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

BRANCH = "mergewright/12-add-a-test"


def held(mirror: Mirror, git: Git, run: int = 1) -> dict[str, str]:
    """The preserved files of a run."""
    ref = f"refs/mergewright/preserved/widgets-12/{run}"
    names = git(mirror.path, "ls-tree", "-r", "--name-only", ref).split()
    return {name: git(mirror.path, "show", f"{ref}:{name}") for name in names}


def test_all_stashes_are_preserved(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    stashed = []
    for text in ("one\n", "two\n"):
        (worktree.path / "README").write_text(text)
        git(worktree.path, "stash")
        stashed.append(git(worktree.path, "rev-parse", "refs/stash"))
    kept = mirror.preserve(worktree, 1)
    assert kept
    assert [mirror.is_ancestor(sha, kept) for sha in stashed] == [True, True]


@pytest.mark.parametrize("committed", [True, False])
def test_files_of_nested_repositories_are_preserved_and_restored(
    worktree: Worktree,
    workspace: Callable[[], Worktree],
    mirror: Mirror,
    git: Git,
    committed: bool,
) -> None:
    inside = worktree.path / "tools" / "in side"
    inside.mkdir(parents=True)
    git(inside, "init", "--quiet", "--template=")
    (inside / "a").write_text("a\n")
    (inside / ".gitignore").write_text("heavy\n")
    (inside / "heavy").mkdir()
    (inside / "heavy" / "blob").write_text("built\n")
    (inside / "noise.log").write_text("noise\n")
    (inside / "link").symlink_to("a")
    if committed:
        git(inside, "add", ".")
        git(inside, "commit", "--quiet", "-m", "Inside")
    (worktree.path / "beside").write_text("beside\n")
    assert mirror.preserve(worktree, 1)
    worktree.remove()
    again = workspace()
    prepare(mirror, again, "main")
    found = again.path / "tools" / "in side"
    assert (found / "a").read_text() == "a\n"
    assert (found / "link").is_symlink()
    assert {path.name for path in found.iterdir()} == {"a", ".gitignore", "link"}
    assert (again.path / "beside").exists()


@pytest.mark.parametrize(
    "removed", [["made"], ["bot.git"], ["bot.git", "checkout/.git"], ["repository.git"]]
)
def test_work_in_a_spoiled_workspace_is_preserved(
    worktree: Worktree, mirror: Mirror, git: Git, removed: list[str]
) -> None:
    git.commit(worktree.path, "a", "1")
    (worktree.path / "new").write_text("new\n")
    for name in removed:
        spoil(worktree, name)
    assert mirror.preserve(worktree, 1)
    assert held(mirror, git) == {
        ".gitignore": "*.log",
        "README": "widgets",
        "a": "1",
        "new": "new",
    }


@pytest.mark.parametrize("removed", ["made", "bot.git", "repository.git"])
def test_a_spoiled_workspace_is_made_again_with_its_work(
    worktree: Worktree, workspace: Callable[[], Worktree], removed: str, git: Git, mirror: Mirror
) -> None:
    git.commit(worktree.path, "a", "1")
    (worktree.path / "new").write_text("new\n")
    spoil(worktree, removed)
    again = workspace()
    prepare(mirror, again, "main", run=1)
    assert (again.path / "a").read_text() == "1"
    assert (again.path / "new").read_text() == "new\n"
    git(again.path, "status")


def test_a_change_hidden_in_the_agents_index_is_preserved(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    git(worktree.path, "update-index", "--assume-unchanged", "README")
    (worktree.path / "README").write_text("changed\n")
    spoil(worktree, "bot.git")
    assert mirror.preserve(worktree, 1)
    assert held(mirror, git)["README"] == "changed"


def spoil(worktree: Worktree, name: str) -> None:
    path = worktree.place / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def test_a_half_made_workspace_has_nothing_to_preserve(
    worktree: Worktree, workspace: Callable[[], Worktree], mirror: Mirror
) -> None:
    (worktree.place / "making").touch()
    (worktree.place / "made").unlink()
    (worktree.path / "README").unlink()  # Not checked out yet.
    assert not worktree.spoiled
    assert mirror.preserve(worktree, 1) is None
    again = workspace()
    prepare(mirror, again, "main")
    assert (again.path / "README").exists()
    assert not (again.place / "making").exists()


def test_an_empty_workspace_has_nothing_to_preserve(
    worktree: Worktree,
    workspace: Callable[[], Worktree],
    mirror: Mirror,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed(file: Path) -> None:
        raise KeyboardInterrupt

    worktree.remove()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "touch", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare(mirror, workspace(), "main")
    again = workspace()
    assert list(again.place.iterdir()) == []
    assert not again.spoiled
    assert mirror.preserve(again, 1) is None
    prepare(mirror, again, "main")
    assert (again.path / "README").exists()


def test_an_interrupted_removal_does_not_look_like_work(
    worktree: Worktree,
    workspace: Callable[[], Worktree],
    monkeypatch: pytest.MonkeyPatch,
    mirror: Mirror,
) -> None:
    def killed(folder: Path) -> None:
        if folder.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("runtimes.workspaces.repositories.remove_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            worktree.remove()
    again = workspace()
    assert not again.made
    assert not again.spoiled
    prepare(mirror, again, "main")
    again.remove()
    assert list(again.place.parent.iterdir()) == []


def test_preserving_again_keeps_the_runs_earlier_work(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    (worktree.path / "new").write_text("one\n")
    first = mirror.preserve(worktree, 1)
    (worktree.path / "new").write_text("two\n")
    second = mirror.preserve(worktree, 1)
    assert first
    assert second
    assert mirror.is_ancestor(first, second)
    assert held(mirror, git)["new"] == "two"


def test_a_workspace_is_not_removed_if_its_work_cannot_be_preserved(
    worktree: Worktree, workspace: Callable[[], Worktree], mirror: Mirror, git: Git
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    shutil.rmtree(worktree.path)
    (worktree.repository / "objects" / sha[:2] / sha[2:]).unlink()
    with pytest.raises(GitFailure):
        mirror.preserve(worktree, 1)
    with pytest.raises(GitFailure):
        prepare(mirror, workspace(), "main")
    assert worktree.place.exists()


def test_taken_work_is_restored_without_a_branch_on_github(
    worktree: Worktree, workspace: Callable[[], Worktree], mirror: Mirror, github: Path, git: Git
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    mirror.push(sha, BRANCH, "")
    git(github, "branch", "-D", BRANCH)
    shutil.rmtree(worktree.place)
    mirror.refresh()
    again = workspace()
    prepare(mirror, again, "main")
    assert again.head() == sha


def test_preserved_work_is_listed_with_its_size_and_can_be_dropped(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    assert mirror.preserved() == []
    kept = {}
    for run in (1, 10, 9):
        (worktree.path / "new").write_text(f"new in {run}\n")
        kept[run] = mirror.preserve(worktree, run)
    listed = mirror.preserved("widgets-12")
    assert [kept.run for kept in listed] == [1, 9, 10]
    assert {each.run: each.sha for each in listed} == kept
    assert mirror.preserved("widgets-1") == []
    assert 0 < mirror.size_of(listed[0]) < 1000
    for each in listed:
        mirror.forget(each)
    assert mirror.preserved() == []
