"""A session's worktree: creating, reading, removing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.host import WorkspaceOptions
from runtimes.isolation.base import Isolation
from runtimes.isolation.unisolated import Unisolated
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

BRANCH = "mergewright/12-add-a-test"


def test_a_new_workspace_is_a_clean_checkout_of_the_base_on_its_own_branch(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    assert git(worktree.path, "branch", "--show-current") == BRANCH
    assert worktree.head() == mirror.head_of("main")
    assert (worktree.path / "README").read_text() == "widgets\n"
    assert not worktree.dirty()


def test_a_new_workspace_has_the_branches_of_the_mirror_in_one_file(
    workspace: Callable[[], Worktree], mirror: Mirror, git: Git
) -> None:
    """With a file for each branch, making a workspace would take longer the more branches exist."""
    head = mirror.head_of("main")
    assert head
    for name in ("a.b", "a/b", "a-b/c", "\u00e9t\u00e9"):
        git(mirror.path, "update-ref", f"refs/heads/{name}", head)
    made = workspace()
    prepare(mirror, made, "main")
    names = git(
        mirror.path, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"
    )
    form = "--format=%(refname:lstrip=3) %(objectname)"
    assert git(made.path, "for-each-ref", form, "refs/remotes/origin") == names
    for name in ("a.b", "a/b", "a-b/c"):
        assert git(made.path, "rev-parse", f"origin/{name}") == head
    assert not (made.repository / "refs" / "remotes").exists()
    git(made.path, "fetch", "--quiet", "--prune", "origin")
    assert git(made.path, "for-each-ref", form, "refs/remotes/origin") == names


def test_a_new_workspace_has_branches_with_any_name_in_any_locale(
    mirror: Mirror, tmp_path: Path, git: Git
) -> None:
    head = mirror.head_of("main")
    assert head
    for name in (b"\xff", "\u00e9t\u00e9".encode()):
        git(mirror.path, "update-ref", f"refs/heads/{os.fsdecode(name)}", head)
    repository, checkout = tmp_path / "made.git", tmp_path / "made"
    made = f"Path({str(repository)!r}), Path({str(checkout)!r}), Path({str(mirror.path)!r})"
    program = (
        "from pathlib import Path",
        "from runtimes.host import USUAL",
        "from runtimes.workspaces.repositories import make_repository",
        f"make_repository({made}, 'x', {head!r}, USUAL)",
    )
    ascii_locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = (sys.executable, "-c", "\n".join(program))
    subprocess.run(command, env={**os.environ, **ascii_locale}, check=True)
    for name in (b"\xff", "\u00e9t\u00e9".encode()):
        assert git(checkout, "rev-parse", f"origin/{os.fsdecode(name)}") == head


def test_the_agent_reads_main_from_the_mirror_and_commits_under_its_own_name(
    worktree: Worktree, mirror: Mirror, person: Path, git: Git
) -> None:
    later = git.commit(person, "a", "1")
    git(person, "push", "origin", "main")
    mirror.refresh()
    git(worktree.path, "fetch", "--quiet", "origin")
    assert git(worktree.path, "rev-parse", "origin/main") == later
    git.commit(worktree.path, "b", "1")
    assert git(worktree.path, "log", "-1", "--format=%an <%ae>") == (
        "Mergewright <mergewright@localhost>"
    )


def test_commits_are_signed_off_if_the_project_wants_that(
    mirror: Mirror, tmp_path: Path, git: Git, isolation: Isolation
) -> None:
    root = tmp_path / "data" / "workspaces"
    signing = WorkspaceOptions(sign_off=True)
    signed = Worktree(root, "widgets-12", BRANCH, mirror.path, lambda: isolation, signing)
    prepare(mirror, signed, "main")
    git.commit(signed.path, "a", "1", "Write a\n\nIt was missing.")
    git(signed.path, "commit", "--amend", "--no-edit", "--quiet")
    sign = "Signed-off-by: Mergewright <mergewright@localhost>"
    assert git(signed.path, "log", "-1", "--format=%B").split("\n\n")[2:] == [sign]
    unsigned = Worktree(root, "widgets-13", "mergewright/13-x", mirror.path, lambda: isolation)
    prepare(mirror, unsigned, "main")
    git.commit(unsigned.path, "a", "1")
    assert "Signed-off-by" not in git(unsigned.path, "log", "-1", "--format=%B")


def test_a_push_of_the_agent_fails_and_says_who_pushes(worktree: Worktree, git: Git) -> None:
    with pytest.raises(AssertionError, match="Mergewright pushes this branch by itself"):
        git(worktree.path, "push", "origin", "HEAD")


def test_preparing_a_whole_workspace_changes_nothing(
    worktree: Worktree, workspace: Callable[[], Worktree], mirror: Mirror, git: Git
) -> None:
    base = mirror.head_of("main")
    sha = git.commit(worktree.path, "a", "1")
    (worktree.path / "b").write_text("not committed")
    assert prepare(mirror, workspace(), "main") == base
    assert worktree.head() == sha
    assert (worktree.path / "b").exists()


def test_locks_of_a_killed_git_are_removed_before_the_next_run(
    worktree: Worktree, mirror: Mirror, git: Git, tmp_path: Path
) -> None:
    (outside := tmp_path / "outside").mkdir()
    (outside / "index.lock").touch()
    (worktree.repository / "linked").symlink_to(outside)
    locked = [
        *("worktrees/checkout/index.lock", "worktrees/checkout/HEAD.lock", "config.lock"),
        *("packed-refs.lock", f"refs/heads/{worktree.branch}.lock"),
    ]
    for name in locked:
        (worktree.repository / name).touch()
    with pytest.raises(AssertionError, match=r"index\.lock"):
        git.commit(worktree.path, "a", "1")
    prepare(mirror, worktree, "main", may_make=lambda: False)
    assert all((worktree.repository / name).exists() for name in locked)
    prepare(mirror, worktree, "main")
    git.commit(worktree.path, "a", "1")
    assert (outside / "index.lock").exists()


@pytest.mark.parametrize("missing", ["made", "bot.git", "repository.git", "checkout"])
def test_a_half_made_workspace_is_made_again(
    worktree: Worktree, workspace: Callable[[], Worktree], missing: str, mirror: Mirror
) -> None:
    gone = worktree.place / missing
    if gone.is_dir():
        shutil.rmtree(gone)
    else:
        gone.unlink()
    again = workspace()
    prepare(mirror, again, "main")
    assert not again.dirty()
    assert (again.path / "README").exists()


def test_commits_survive_a_removed_checkout(
    worktree: Worktree, workspace: Callable[[], Worktree], git: Git, mirror: Mirror
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    shutil.rmtree(worktree.path)
    again = workspace()
    prepare(mirror, again, "main")
    assert again.head() == sha
    assert (again.path / "a").exists()


@pytest.mark.parametrize("missing", ["repository.git", "checkout"])
def test_what_is_there_stays_where_it_may_not_be_made_again(
    worktree: Worktree, workspace: Callable[[], Worktree], missing: str, mirror: Mirror
) -> None:
    work = worktree.path / "b"
    work.write_text("not committed")
    (worktree.place / missing).rename(worktree.place / "aside")
    assert prepare(mirror, workspace(), "main", may_make=lambda: False) is None
    assert work.exists() or (worktree.place / "aside" / "b").exists()


def test_what_another_bot_made_meanwhile_is_not_made_again(
    worktree: Worktree, workspace: Callable[[], Worktree], git: Git, mirror: Mirror
) -> None:
    base = mirror.head_of("main")
    assert base
    sha = git.commit(worktree.path, "a", "1")
    late = workspace()
    assert not late.create(base, None, base, lambda: False)
    assert late.head() == sha
    assert (late.path / "a").exists()


def test_what_another_bot_completes_while_this_one_is_suspended_is_not_made_again(
    workspace: Callable[[], Worktree], git: Git, mirror: Mirror
) -> None:
    base = mirror.head_of("main")
    assert base
    commits: list[str] = []

    def may_make() -> bool:
        prepare(mirror, workspace(), "main")
        commits.append(git.commit(workspace().path, "a", "1"))
        return True

    assert not workspace().create(base, None, base, may_make)
    assert [workspace().head()] == commits
    assert (workspace().path / "a").exists()


def test_an_unknown_base_branch_is_named(mirror: Mirror, workspace: Callable[[], Worktree]) -> None:
    with pytest.raises(GitFailure, match=r"no branch trunk.*exists on GitHub"):
        prepare(mirror, workspace(), "trunk")


def test_a_base_can_be_a_commit(workspace: Callable[[], Worktree], mirror: Mirror) -> None:
    base = mirror.head_of("main")
    assert base
    assert prepare(mirror, workspace(), base) == base


def test_loose_and_packed_heads_are_read(worktree: Worktree, git: Git) -> None:
    sha = git.commit(worktree.path, "a", "1")
    assert worktree.head() == sha
    git(worktree.repository, "pack-refs", "--all")
    assert worktree.head() == sha


def test_dirty_means_changed_staged_or_untracked_but_not_ignored(
    worktree: Worktree, git: Git
) -> None:
    (worktree.path / "noise.log").write_text("noise")
    assert not worktree.dirty()
    (worktree.path / "new").write_text("1")
    assert worktree.dirty()
    git(worktree.path, "add", "new")
    assert worktree.dirty()
    git(worktree.path, "commit", "-m", "Add new")
    assert not worktree.dirty()
    (worktree.path / "new").write_text("2")
    assert worktree.dirty()
    git(worktree.path, "restore", "new")
    assert not worktree.dirty()
    (worktree.path / "README").unlink()
    assert worktree.dirty()


def test_a_file_that_is_committed_twice_between_two_looks_is_clean(
    worktree: Worktree, git: Git
) -> None:
    git.commit(worktree.path, "a", "1")
    assert not worktree.dirty()
    git.commit(worktree.path, "a", "2")
    git.commit(worktree.path, "a", "3")
    assert not worktree.dirty()


@pytest.mark.parametrize("lock", ["index.lock", "index.files.lock", "HEAD.lock"])
def test_a_killed_git_of_the_bot_does_not_block_the_next(
    worktree: Worktree, git: Git, lock: str
) -> None:
    (worktree.place / "bot.git" / lock).touch()
    git.commit(worktree.path, "a", "1")
    assert not worktree.dirty()


def test_removal_handles_write_protected_folders_and_can_be_repeated(worktree: Worktree) -> None:
    cache = worktree.path / "cache" / "module"
    cache.mkdir(parents=True)
    (cache / "file").write_text("x")
    cache.chmod(0o500)
    cache.parent.chmod(0o500)
    worktree.remove()
    assert not worktree.place.exists()
    worktree.remove()
    assert worktree.head() is None


def test_removal_follows_no_link_out_of_the_workspace(worktree: Worktree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    outside.chmod(0o750)
    protected = worktree.path / "protected"
    protected.mkdir()
    (protected / "link").symlink_to(outside)
    protected.chmod(0o500)
    worktree.remove()
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_workspace_that_was_not_made_has_no_changes(
    workspace: Callable[[], Worktree],
) -> None:
    with pytest.raises(GitFailure, match="it is incomplete"):
        workspace().dirty()


@pytest.mark.parametrize("session", ["../x", "a/b", "", ".hidden", "a..b", "-x", "a\nb"])
def test_a_session_name_cannot_escape_its_folder(
    mirror: Mirror, tmp_path: Path, session: str
) -> None:
    with pytest.raises(ValueError, match="session name"):
        Worktree(tmp_path, session, BRANCH, mirror.path, Unisolated)


def test_sessions_do_not_see_each_others_branches(
    worktree: Worktree, mirror: Mirror, tmp_path: Path, git: Git, isolation: Isolation
) -> None:
    root = tmp_path / "data" / "workspaces"
    other = Worktree(root, "widgets-13", "mergewright/13-x", mirror.path, lambda: isolation)
    prepare(mirror, other, "main")
    git.commit(worktree.path, "a", "1")
    assert BRANCH not in git(other.path, "branch", "--all")


def test_git_does_not_get_the_servers_environment(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert not worktree.dirty()
    assert not (tmp_path / "index").exists()
