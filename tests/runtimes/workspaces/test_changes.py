"""Patches for people: of commits in the mirror, and of commits that only a workspace has."""

from functools import partial

import pytest

from runtimes.workspaces.changes import patch_between
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.git import git as git_of_bot
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

MOST = 100_000


def test_a_patch_is_what_a_branch_changed_since_it_left_its_base(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    base = mirror.head_of("main") or ""
    head = git.commit(worktree.path, "a b.txt", "one\n")
    found = worktree.patch(base, head, MOST)
    assert found.complete
    assert "+++ b/a b.txt" in found.text
    assert found.text.endswith("+one\n")
    mirror.take(worktree)
    assert patch_between(partial(git_of_bot, mirror.path), base, head, MOST) == found
    assert patch_between(partial(git_of_bot, mirror.path), head, head, MOST).text == ""


def test_a_large_patch_is_cut(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    base = mirror.head_of("main") or ""
    head = git.commit(worktree.path, "large.txt", "x" * 79 + "\n" + "y\n" * 100_000)
    found = worktree.patch(base, head, 10_000)
    assert not found.complete
    assert 0 < len(found.text) <= 10_000


def test_no_program_that_an_agent_names_is_run(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    base = mirror.head_of("main") or ""
    ran = worktree.path / "ran"
    git(worktree.path, "config", "diff.evil.textconv", f"touch {ran}; cat")
    git(worktree.path, "config", "diff.evil.command", f"touch {ran}")
    git(worktree.path, "config", "diff.external", f"touch {ran}")
    git.commit(worktree.path, ".gitattributes", "* diff=evil\n")
    head = git.commit(worktree.path, "a.txt", "one\n")
    assert "+one" in worktree.patch(base, head, MOST).text
    assert not ran.exists()


@pytest.mark.parametrize("wrong", ["", "--output=/tmp/x", "HEAD", "a" * 39])
def test_only_commits_are_compared(mirror: Mirror, wrong: str) -> None:
    with pytest.raises(ValueError, match="no commit"):
        patch_between(partial(git_of_bot, mirror.path), wrong, "a" * 40, MOST)


def test_unknown_commits_fail(worktree: Worktree, mirror: Mirror) -> None:
    with pytest.raises(GitFailure):
        worktree.patch(mirror.head_of("main") or "", "a" * 40, MOST)
