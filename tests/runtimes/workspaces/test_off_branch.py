"""Commits that an agent made on a branch of its own, or on a detached HEAD."""

import os
from collections.abc import Callable

import msgspec
import pytest

from lifecycle.model.facts import OffBranch
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.workspaces.conftest import BRANCH

#: How the agent leaves the session's branch, with the name of the branch it is on then.
WAYS = {
    "another branch": (("checkout", "-q", "-b", "fix"), "fix"),
    "a detached HEAD": (("checkout", "-q", "--detach"), ""),
    "a renamed branch": (("branch", "-m", "fix"), "fix"),
}


@pytest.mark.parametrize(("leaves", "name"), WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("commits", [0, 1])
def test_commits_that_build_on_the_branch_are_adopted(
    worktree: Worktree, mirror: Mirror, git: Git, leaves: tuple[str, ...], name: str, commits: int
) -> None:
    for number in range(commits):
        git.commit(worktree.path, "a", f"{number}")
    tip = worktree.head() or ""
    git(worktree.path, *leaves)
    assert worktree.off_branch(tip) is None
    head = git.commit(worktree.path, "b", "1")
    assert worktree.off_branch(tip) == OffBranch(head=head, branch=name, adoptable=True)
    assert not worktree.dirty()
    for _ in range(2):
        assert worktree.adopt(tip, head)
        assert worktree.head() == mirror.take(worktree) == head
        assert git(worktree.path, "branch", "--show-current") == BRANCH
        assert git(worktree.path, "status", "--porcelain") == ""
        assert worktree.off_branch(head) is None


def test_an_interrupted_adoption_is_finished(
    worktree: Worktree, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = worktree.head() or ""
    git(worktree.path, "checkout", "-q", "--detach")
    head = git.commit(worktree.path, "b", "1")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Worktree, "_attach", crash)
        with pytest.raises(KeyboardInterrupt):
            worktree.adopt(tip, head)
    assert worktree.adopt(tip, head)
    assert git(worktree.path, "branch", "--show-current") == BRANCH


def test_commits_beside_those_of_the_branch_are_not_adopted(worktree: Worktree, git: Git) -> None:
    own = git.commit(worktree.path, "a", "1")
    git(worktree.path, "checkout", "-q", "-b", "fix", "origin/main")
    head = git.commit(worktree.path, "b", "1")
    assert worktree.off_branch(own) == OffBranch(head=head, branch="fix")


def test_a_branch_of_any_bytes_has_a_name_that_can_be_stored(worktree: Worktree, git: Git) -> None:
    """The agent may write the ref's file itself. An unstorable name would stop the bot."""
    tip = worktree.head() or ""
    head = git.commit(worktree.path, "a", "1")
    git(worktree.path, "reset", "-q", "--hard", tip)
    ref = os.fsencode(worktree.repository) + b"/refs/heads/fix\xff"
    with open(ref, "w") as file:  # noqa: PTH123 - a `Path` has no such name.
        file.write(f"{head}\n")
    found = worktree.off_branch(tip)
    assert msgspec.json.encode(found)
    assert found == OffBranch(head=head, branch="fix\ufffd")


def test_nothing_is_adopted_during_a_rebase(worktree: Worktree, git: Git) -> None:
    tip = git.commit(worktree.path, "a", "1")
    git.env["GIT_SEQUENCE_EDITOR"] = "echo break >>"
    git(worktree.path, "rebase", "-q", "-i", "HEAD^")
    head = git.commit(worktree.path, "b", "1")
    assert worktree.off_branch(tip) == OffBranch(head=head)


def test_commits_of_a_branch_that_is_not_checked_out_count_if_there_are_no_others(
    worktree: Worktree, git: Git
) -> None:
    git(worktree.path, "checkout", "-q", "-b", "fix")
    head = git.commit(worktree.path, "b", "1")
    git(worktree.path, "checkout", "-q", BRANCH)
    assert worktree.off_branch("") == OffBranch(head=head, branch="fix")
    own = git.commit(worktree.path, "a", "1")
    assert worktree.off_branch(own) is None


def test_a_checkout_of_somebody_elses_commit_is_neither_work_nor_dirty(
    worktree: Worktree, git: Git
) -> None:
    own = git.commit(worktree.path, "a", "1")
    for place in ("origin/main", own):
        git(worktree.path, "checkout", "-q", "--detach", place)
        assert worktree.off_branch(own) is None
        assert not worktree.dirty()
    (worktree.path / "a").write_text("2")
    assert worktree.dirty()


def test_files_are_compared_with_what_is_checked_out(worktree: Worktree, git: Git) -> None:
    git(worktree.path, "checkout", "-q", "-b", "fix")
    git.commit(worktree.path, "b", "1")
    (worktree.path / "c").write_text("1")
    changes = worktree.changes(worktree.base())
    assert [line.split(" ", 1)[1] for line in changes.commits] == ["Write b"]
    assert changes.uncommitted == ("?? c",)


def test_a_commit_that_is_no_longer_checked_out_is_not_adopted(
    worktree: Worktree, git: Git
) -> None:
    tip = worktree.head() or ""
    git(worktree.path, "checkout", "-q", "-b", "fix")
    head = git.commit(worktree.path, "b", "1")
    later = git.commit(worktree.path, "b", "2")
    assert not worktree.adopt(tip, head)
    assert not worktree.adopt(head, later)
    assert worktree.head() == tip


@pytest.mark.parametrize(
    "head", ["f" * 40, "ref: refs/heads/../../../x", "ref: refs/heads/none", "\x00", ""]
)
def test_a_head_that_leads_nowhere_changes_nothing(
    worktree: Worktree, git: Git, head: str, workspace: Callable[[], Worktree]
) -> None:
    own = git.commit(worktree.path, "a", "1")
    (worktree.repository / "worktrees" / worktree.path.name / "HEAD").write_text(head)
    assert workspace().off_branch(own) is None
    assert not workspace().dirty()
    with pytest.raises(GitFailure, match="not checked out"):
        worktree.move(own, worktree.base())
