"""Hostile repositories run no program in the bot and make it follow no links."""

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.git import git as bot_git
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A program that writes a file when it runs."""
    program = tmp_path / "trap"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/sprung\nexec cat\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def sprung(tmp_path: Path) -> Path:
    return tmp_path / "sprung"


def the_bot_does_everything(worktree: Worktree, mirror: Mirror) -> None:
    worktree.head()
    worktree.dirty()
    mirror.take(worktree)
    mirror.preserve(worktree, 1)
    mirror.refresh()
    prepare(mirror, worktree, "main")
    worktree.remove()


def test_programs_in_the_sessions_git_config_are_never_run(
    worktree: Worktree, mirror: Mirror, git: Git, trap: Path, sprung: Path
) -> None:
    git(worktree.path, "config", "extensions.worktreeConfig", "true")
    for setting in (
        "core.sshCommand",
        "core.alternateRefsCommand",
        "core.editor",
        "core.pager",
        "credential.helper",
        "diff.external",
        "diff.trap.textconv",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "merge.trap.driver",
        "gpg.program",
        "remote.origin.uploadpack",
        "uploadpack.packObjectsHook",
        "core.fsmonitor",
    ):
        git(worktree.path, "config", setting, f"{trap} {setting}")
        git(worktree.path, "config", "--worktree", setting, f"{trap} {setting}")
    sprung.unlink(missing_ok=True)
    (worktree.path / ".gitattributes").write_text("* filter=trap diff=trap merge=trap\n")
    (worktree.path / "new").write_text("new")
    the_bot_does_everything(worktree, mirror)
    assert not sprung.exists(), sprung.read_text()


def test_filters_of_committed_attributes_are_never_run(
    worktree: Worktree,
    workspace: Callable[[], Worktree],
    mirror: Mirror,
    git: Git,
    trap: Path,
    sprung: Path,
) -> None:
    (worktree.path / ".gitattributes").write_text("* filter=trap\n")
    git(worktree.path, "add", ".gitattributes")
    git.commit(worktree.path, "a", "1")
    for kind in ("clean", "smudge", "process"):
        git(worktree.path, "config", f"filter.trap.{kind}", str(trap))
    (worktree.path / "a").write_text("2")
    assert worktree.dirty()
    the_bot_does_everything(worktree, mirror)
    prepare(mirror, workspace(), "main")
    assert not sprung.exists()


def test_hooks_are_never_run(
    worktree: Worktree, mirror: Mirror, git: Git, trap: Path, sprung: Path
) -> None:
    hooks = worktree.repository / "hooks"
    for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction",
                 "pre-push", "pre-auto-gc", "post-commit", "fsmonitor-watchman"):  # fmt: skip
        for place in (hooks, mirror.path / "hooks"):
            place.mkdir(exist_ok=True)
            shutil.copy(trap, place / name)
    git(worktree.path, "config", "core.hooksPath", str(hooks))
    sprung.unlink(missing_ok=True)
    (worktree.path / "new").write_text("new")
    the_bot_does_everything(worktree, mirror)
    assert not sprung.exists()


def test_the_users_git_config_is_not_used(
    worktree: Worktree,
    mirror: Mirror,
    trap: Path,
    sprung: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "bots-home"
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\nfsmonitor = {trap}\nhooksPath = {tmp_path}\n")
    monkeypatch.setenv("HOME", str(home))
    the_bot_does_everything(worktree, mirror)
    assert not sprung.exists()


def test_rewritten_urls_are_not_followed(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.git"
    git(tmp_path, "init", "--quiet", "--bare", str(elsewhere))
    git(worktree.path, "config", f"url.{elsewhere}.insteadOf", str(github))
    git(worktree.path, "config", f"url.{elsewhere}.insteadOf", str(worktree.repository))
    git(worktree.path, "config", "remote.origin.url", str(elsewhere))
    sha = git.commit(worktree.path, "a", "1")
    assert mirror.take(worktree) == sha
    mirror.push(sha, worktree.branch, "")
    assert git(github, "rev-parse", worktree.branch) == sha
    assert git(elsewhere, "for-each-ref") == ""


@pytest.mark.parametrize("kind", ["file", "folder", "gone"])
def test_a_replaced_git_file_is_not_followed(
    worktree: Worktree,
    mirror: Mirror,
    git: Git,
    trap: Path,
    sprung: Path,
    tmp_path: Path,
    kind: str,
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    other = tmp_path / "other"
    git(tmp_path, "init", "--quiet", str(other))
    git(other, "config", "core.fsmonitor", str(trap))
    link = worktree.path / ".git"
    link.unlink()
    if kind == "file":
        link.write_text(f"gitdir: {other}/.git\n")
    elif kind == "folder":
        shutil.copytree(other / ".git", link)
    assert worktree.head() == sha
    assert not worktree.dirty()
    assert mirror.take(worktree) == sha
    assert not sprung.exists()


def ref(worktree: Worktree) -> Path:
    return worktree.repository / "refs" / "heads" / worktree.branch


def test_a_ref_that_is_no_regular_file_with_a_commit_is_ignored(
    worktree: Worktree, mirror: Mirror, tmp_path: Path
) -> None:
    sha = worktree.head()
    path = ref(worktree)
    outside = tmp_path / "outside"
    outside.write_text(f"{sha}\n")

    def becomes(make: Callable[[], object]) -> None:
        path.unlink(missing_ok=True)
        make()
        assert worktree.head() is None
        with pytest.raises(GitFailure):
            mirror.take(worktree)

    becomes(lambda: path.symlink_to(outside))
    becomes(lambda: os.mkfifo(path))
    becomes(lambda: path.write_text("ref: refs/heads/main\n"))
    becomes(lambda: path.write_text("x" * 100_000_000))
    becomes(lambda: path.write_text("--upload-pack=touch x"))
    becomes(lambda: path.write_bytes(b"\xff" * 40))
    becomes(lambda: path.write_text(""))


def test_a_linked_folder_of_refs_is_not_followed(worktree: Worktree, tmp_path: Path) -> None:
    folder = ref(worktree).parent
    shutil.move(folder, tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert worktree.head() is None


def test_packed_refs_are_read_without_links_and_within_a_limit(
    worktree: Worktree, git: Git, tmp_path: Path
) -> None:
    git(worktree.repository, "pack-refs", "--all")
    packed = worktree.repository / "packed-refs"
    assert worktree.head()
    shutil.move(packed, tmp_path / "packed")
    packed.symlink_to(tmp_path / "packed")
    assert worktree.head() is None
    packed.unlink()
    packed.write_text((tmp_path / "packed").read_text() + "x" * 5_000_000)
    assert worktree.head() is None


def test_a_missing_commit_fails_and_nothing_is_taken(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    ref(worktree).write_text("1234567890" * 4 + "\n")
    with pytest.raises(GitFailure):
        mirror.take(worktree)
    with pytest.raises(GitFailure):
        worktree.dirty()
    assert git(mirror.path, "for-each-ref", "refs/mergewright") == ""


def test_a_commit_with_incomplete_history_is_not_taken(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    old = git.commit(worktree.path, "a", "1")
    git.commit(worktree.path, "a", "2")
    (worktree.repository / "objects" / old[:2] / old[2:]).unlink()
    with pytest.raises(GitFailure):
        mirror.take(worktree)
    assert git(mirror.path, "for-each-ref", "refs/mergewright") == ""


def test_a_malformed_object_is_not_taken(
    worktree: Worktree, mirror: Mirror, git: Git, tmp_path: Path
) -> None:
    blob = tmp_path / "blob"
    blob.write_text("[core]\nfsmonitor = x\n")
    sha = git(worktree.path, "hash-object", "-w", str(blob))
    made = bot_git(worktree.repository, "mktree", stdin=f"100644 blob {sha}\t.git\n").strip()
    commit = git(worktree.path, "commit-tree", made, "-p", "HEAD", "-m", "x")
    ref(worktree).write_text(f"{commit}\n")
    with pytest.raises(GitFailure, match="hasDotgit"):
        mirror.take(worktree)


def test_a_checkout_replaced_by_a_link_is_not_read(
    worktree: Worktree, mirror: Mirror, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    shutil.rmtree(worktree.path)
    worktree.path.symlink_to(outside)
    with pytest.raises(GitFailure, match="replaced"):
        worktree.dirty()
    with pytest.raises(GitFailure, match="replaced"):
        mirror.preserve(worktree, 1)
    worktree.remove()
    assert (outside / "secret").exists()


def test_commits_are_preserved_without_branch_and_checkout(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    git(worktree.path, "checkout", "--quiet", "-b", "aside")
    git(worktree.path, "branch", "--delete", "--force", worktree.branch)
    shutil.rmtree(worktree.path)
    kept = mirror.preserve(worktree, 1)
    assert kept
    assert mirror.is_ancestor(sha, kept)


def test_replace_refs_are_ignored(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    base = worktree.head()
    assert base
    sha = git.commit(worktree.path, "a", "1")
    git(worktree.path, "replace", sha, base)
    assert mirror.take(worktree) == sha
    git(mirror.path, "replace", sha, base)
    assert [commit.subject for commit in mirror.commits(sha, base)] == ["Write a"]


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit the file size, which simulates a full disk without root."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_named_and_leaves_no_lock(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    (worktree.path / "big").write_bytes(os.urandom(400_000))
    git(worktree.path, "add", "big")
    git(worktree.path, "commit", "--quiet", "-m", "big")
    with full_disk(), pytest.raises(GitFailure, match="free disk space"):
        mirror.take(worktree)
    assert git(mirror.path, "for-each-ref", "refs/mergewright") == ""
    assert mirror.take(worktree) == worktree.head()


def test_a_full_disk_leaves_no_half_made_workspace(
    workspace: Callable[[], Worktree], mirror: Mirror, person: Path, git: Git
) -> None:
    (person / "big").write_bytes(os.urandom(400_000))
    git(person, "add", "big")
    git(person, "commit", "--quiet", "-m", "big")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    with full_disk(), pytest.raises(GitFailure, match="free disk space"):
        prepare(mirror, workspace(), "main")
    assert not workspace().made
    prepare(mirror, workspace(), "main")
    assert not workspace().dirty()
