"""Tests what happens in a session's workspace when a person pushes to the session's branch."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.workspaces.conftest import BRANCH

SESSION = "widgets-12"


class Branch:
    """The session's branch, pushed by the bot once, and a person's clone that has it."""

    def __init__(self, worktree: Worktree, mirror: Mirror, person: Path, git: Git) -> None:
        self.worktree, self.mirror, self.person, self.git = worktree, mirror, person, git
        self.pushed = self.commits("ours", "1\n")
        mirror.take(worktree)
        mirror.push(self.pushed, BRANCH, expected="")
        git(person, "fetch", "--quiet", "origin")
        git(person, "checkout", "--quiet", BRANCH)

    def commits(self, name: str, text: str) -> str:
        """Commit as the agent."""
        return self.git.commit(self.worktree.path, name, text)

    def person_pushes(self, name: str, text: str, *, over: str = "") -> str:
        """Commit and push as a person, on the branch or on another commit."""
        if over:
            self.git(self.person, "reset", "--quiet", "--hard", over)
        sha = self.git.commit(self.person, name, text)
        self.git(self.person, "push", "--quiet", "--force", "origin", BRANCH)
        self.mirror.refresh()
        return sha

    def join(self, theirs: str) -> str | None:
        ours = self.mirror.take(self.worktree)
        return self.mirror.join(SESSION, BRANCH, ours, theirs)


@pytest.fixture
def branch(worktree: Worktree, mirror: Mirror, person: Path, git: Git) -> Branch:
    return Branch(worktree, mirror, person, git)


def test_a_persons_commit_on_top_of_the_bots_is_taken_as_it_is(branch: Branch, git: Git) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    assert branch.join(theirs) == theirs
    branch.worktree.move(branch.pushed, theirs)
    here = branch.worktree.path
    assert branch.worktree.head() == theirs
    assert (here / "theirs").read_text() == "2\n"
    assert git(here, "status", "--porcelain", "--branch") == f"## {BRANCH}"
    assert not branch.worktree.dirty()
    git.commit(here, "more", "3\n")
    assert git(here, "rev-parse", "HEAD~1") == theirs


def test_a_persons_commit_beside_the_agents_is_merged(branch: Branch, git: Git) -> None:
    ours = branch.commits("more", "2\n")
    theirs = branch.person_pushes("theirs", "2\n")
    joined = branch.join(theirs)
    assert joined is not None
    branch.worktree.move(ours, joined)
    here = branch.worktree.path
    assert git(here, "rev-parse", "HEAD^@").split() == [ours, theirs]
    assert all((here / name).is_file() for name in ("ours", "more", "theirs"))
    assert git(here, "status", "--porcelain") == ""
    branch.mirror.push(joined, BRANCH, expected=theirs)


def test_commits_that_the_agent_merged_itself_change_nothing(branch: Branch, git: Git) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    git(branch.worktree.path, "fetch", "--quiet", "origin")
    git(branch.worktree.path, "merge", "--quiet", f"origin/{BRANCH}")
    ours = branch.commits("more", "2\n")
    assert branch.join(theirs) == ours
    branch.worktree.move(ours, ours)


def test_conflicts_are_left_to_the_agent(branch: Branch) -> None:
    branch.commits("same", "1\n")
    assert branch.join(branch.person_pushes("same", "2\n")) is None


def test_a_person_can_discard_the_bots_commits(branch: Branch) -> None:
    theirs = branch.person_pushes("theirs", "2\n", over="origin/main")
    assert branch.join(theirs) == theirs
    branch.worktree.move(branch.pushed, theirs)
    assert not (branch.worktree.path / "ours").exists()
    assert not branch.worktree.dirty()


def test_discarded_commits_do_not_come_back_with_new_ones(branch: Branch) -> None:
    branch.commits("more", "2\n")
    assert branch.join(branch.person_pushes("theirs", "2\n", over="origin/main")) is None


def test_a_person_can_remove_the_bots_last_commit(branch: Branch, mirror: Mirror) -> None:
    later = branch.commits("more", "2\n")
    mirror.take(branch.worktree)
    mirror.push(later, BRANCH, expected=branch.pushed)
    assert branch.join(branch.pushed) == branch.pushed
    branch.commits("even more", "2\n")
    assert branch.join(branch.pushed) is None


def test_a_move_does_not_touch_uncommitted_files(branch: Branch) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    branch.join(theirs)
    (branch.worktree.path / "theirs").write_text("mine")
    with pytest.raises(GitFailure, match="not committed"):
        branch.worktree.move(branch.pushed, theirs)
    assert (branch.worktree.path / "theirs").read_text() == "mine"
    assert branch.worktree.head() == branch.pushed


def test_a_branch_that_is_elsewhere_is_not_moved(branch: Branch, git: Git) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    branch.join(theirs)
    later = branch.commits("more", "2\n")
    with pytest.raises(GitFailure, match="not at"):
        branch.worktree.move(branch.pushed, theirs)
    git(branch.worktree.path, "checkout", "--quiet", "--detach", "HEAD^")
    with pytest.raises(GitFailure, match="not checked out"):
        branch.worktree.move(later, theirs)


def test_a_detached_head_at_the_branchs_commit_is_attached_by_a_move(
    branch: Branch, git: Git
) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    branch.join(theirs)
    git(branch.worktree.path, "checkout", "--quiet", "--detach")
    branch.worktree.move(branch.pushed, theirs)
    assert git(branch.worktree.path, "branch", "--show-current") == branch.worktree.branch
    assert branch.worktree.head() == theirs
    assert not branch.worktree.dirty()


def test_an_interrupted_move_is_finished(
    branch: Branch, workspace: Callable[[], Worktree], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    branch.join(theirs)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("runtimes.workspaces.refs.replace_file", crash)
        with pytest.raises(KeyboardInterrupt):
            branch.worktree.move(branch.pushed, theirs)
    assert not workspace().dirty(), "the agent would be asked to commit it"
    workspace().move(branch.pushed, theirs)
    assert workspace().head() == theirs
    assert not workspace().dirty()


def test_a_move_follows_no_link_in_the_repository(branch: Branch, tmp_path: Path) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    branch.join(theirs)
    repository, outside = branch.worktree.repository, tmp_path / "outside"
    (repository / "worktrees").rename(outside)
    (repository / "worktrees").symlink_to(outside)
    before = (outside / "checkout" / "index").read_bytes()
    with pytest.raises((GitFailure, OSError)):
        branch.worktree.move(branch.pushed, theirs)
    assert (outside / "checkout" / "index").read_bytes() == before


def test_packed_branches_are_moved(branch: Branch, git: Git) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    branch.join(theirs)
    git(branch.worktree.path, "pack-refs", "--all")
    branch.worktree.move(branch.pushed, theirs)
    assert git(branch.worktree.path, "rev-parse", "HEAD") == theirs


# -- branch updates --------------------------------------------------------------------------------


def merged(branch: Branch, git: Git, *changes: str) -> str:
    """Have a person merge a newer base and change these files in the merge commit; return it."""
    git(branch.person, "checkout", "--quiet", "main")
    git.commit(branch.person, "base", "later\n")
    git(branch.person, "push", "--quiet", "origin", "main")
    git(branch.person, "checkout", "--quiet", BRANCH)
    git(branch.person, "merge", "--quiet", "--no-ff", "--no-commit", "main")
    for name in changes:
        (branch.person / name).write_text("changed in the merge\n")
        git(branch.person, "add", name)
    git(branch.person, "commit", "--quiet", "-m", "Merge main")
    git(branch.person, "push", "--quiet", "origin", BRANCH)
    branch.mirror.refresh()
    return git(branch.person, "rev-parse", "HEAD")


def test_a_clean_merge_of_the_base_is_an_update(branch: Branch, git: Git) -> None:
    once = merged(branch, git)
    assert branch.mirror.is_update(branch.pushed, once, "main")
    assert not branch.mirror.is_update(branch.pushed, once, "another")
    git(branch.person, "checkout", "--quiet", "main")
    git.commit(branch.person, "base", "later still\n")
    git(branch.person, "push", "--quiet", "origin", "main")
    git(branch.person, "checkout", "--quiet", BRANCH)
    git(branch.person, "merge", "--quiet", "--no-ff", "main")
    git(branch.person, "push", "--quiet", "origin", BRANCH)
    branch.mirror.refresh()
    assert branch.mirror.is_update(branch.pushed, git(branch.person, "rev-parse", "HEAD"), "main")


def test_a_merge_with_other_changes_is_not_an_update(branch: Branch, git: Git) -> None:
    assert not branch.mirror.is_update(branch.pushed, merged(branch, git, "ours"), "main")


def test_commits_and_merges_of_other_branches_are_not_updates(branch: Branch, git: Git) -> None:
    theirs = branch.person_pushes("theirs", "2\n")
    assert not branch.mirror.is_update(branch.pushed, theirs, "main")
    git(branch.person, "checkout", "--quiet", "-b", "other", "origin/main")
    git.commit(branch.person, "other", "1\n")
    git(branch.person, "checkout", "--quiet", BRANCH)
    git(branch.person, "merge", "--quiet", "--no-ff", "other")
    git(branch.person, "push", "--quiet", "origin", BRANCH)
    branch.mirror.refresh()
    assert not branch.mirror.is_update(theirs, git(branch.person, "rev-parse", "HEAD"), "main")
