"""Attacks by a repository: each works where git is not isolated, and fails in the sandbox."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.base import RuntimeFailure
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Isolation
from runtimes.workspaces import packs
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.session_git import SessionGit
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.stages import needs, without_bubblewrap

_BRANCH = "mergewright/12-x"


@pytest.fixture
def other(tmp_path: Path, git: Git) -> Path:
    """Another project's mirror, with a secret file."""
    made = tmp_path / "other"
    git(tmp_path, "init", "--quiet", "--template=", str(made))
    git.commit(made, "secret", "of another project")
    return made / ".git"


@pytest.fixture(params=[name for name in ISOLATIONS if name != "none"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each kind of sandbox in turn. With a container engine, git runs in a container."""
    name: str = request.param
    without_bubblewrap(name, monkeypatch)
    return name


def workspace(mirror: Mirror, tmp_path: Path, kind: str) -> Worktree:
    needs(kind)
    root = tmp_path / "data" / "workspaces"
    made = Worktree(root, "widgets-12", _BRANCH, mirror.path, lambda: ISOLATIONS[kind])
    prepare(mirror, made, "main")
    return made


def lends(worktree: Worktree, other: Path) -> None:
    alternates = worktree.repository / "objects" / "info" / "alternates"
    alternates.write_text(f"{alternates.read_text()}{other}/objects\n")


def links(worktree: Worktree, other: Path) -> None:
    for folder in (other / "objects").glob("??"):
        mine = worktree.repository / "objects" / folder.name
        shutil.rmtree(mine, ignore_errors=True)
        mine.symlink_to(folder)


@pytest.mark.parametrize("leads", [lends, links])
def test_an_attack_on_another_projects_objects(
    mirror: Mirror,
    tmp_path: Path,
    git: Git,
    other: Path,
    leads: Callable[[Worktree, Path], None],
    kind: str,
) -> None:
    tree = git(other, "rev-parse", "HEAD^{tree}")
    linked = {folder.name for folder in (other / "objects").glob("??")}

    def taken(by: str) -> str:
        worktree = workspace(mirror, tmp_path, by)
        leads(worktree, other)
        make = ("commit-tree", tree, "-p", "HEAD", "-m")
        commits = (git(worktree.path, *make, f"Take it {number}") for number in range(99))
        commit = next(one for one in commits if one[:2] not in linked)  # Else it is missing, too.
        (worktree.repository / "refs" / "heads" / _BRANCH).write_text(f"{commit}\n")
        try:
            return git(mirror.path, "show", f"{mirror.take(worktree)}:secret")
        except GitFailure as failure:
            return str(failure)
        finally:
            worktree.remove()

    inside = taken(kind)
    assert f"{tree}" in inside or "bad tree" in inside or "unable to read" in inside
    assert taken("none") == "of another project"


def test_an_attack_by_a_nested_repository_that_git_enters(
    mirror: Mirror, tmp_path: Path, git: Git, kind: str
) -> None:
    """The sandbox stops the attack if git reads the nested repository.

    Git does so only in this test, because the bot makes git ignore nested repositories.
    """
    outside = tmp_path / "outside"

    def springs(by: str) -> bool:
        worktree = workspace(mirror, tmp_path, by)
        nested = worktree.path / "nested"
        git(worktree.path, "init", "--quiet", "--template=", str(nested))
        (nested / ".gitattributes").write_text("* filter=trap\n")
        git.commit(nested, "file", "1")
        git(worktree.path, "add", "nested")
        git(worktree.path, "commit", "--quiet", "-m", "A nested repository")
        git(nested, "config", "filter.trap.clean", f"touch {outside} inside; cat")
        (nested / "file").write_text("2")
        run = SessionGit(
            view=worktree.place / "bot.git",
            checkout=worktree.path,
            repository=worktree.repository,
            origin=mirror.path,
            isolation=lambda: ISOLATIONS[by],
        )
        run.on_files("read-tree", worktree.head() or "")
        run.on_files("status", "--porcelain", "--ignore-submodules=none")
        assert (nested / "inside").exists()
        found = outside.exists()
        worktree.remove()
        return found

    assert not springs(kind)
    assert springs("none")


def test_a_pipe_among_the_objects_is_named_and_blocks_no_other_session(
    mirror: Mirror, tmp_path: Path, git: Git, isolation: Isolation
) -> None:
    kind = next(name for name, one in ISOLATIONS.items() if one is isolation)
    blocked = workspace(mirror, tmp_path, kind)
    blocked_by = blocked.repository / "objects" / "info" / "alternates"
    blocked_by.unlink()
    os.mkfifo(blocked_by)
    (blocked.path / "new").write_text("1")
    for look in (blocked.dirty, lambda: mirror.preserve(blocked, 1)):
        with pytest.raises(GitFailure, match="alternates is a pipe, not a file"):
            look()
    root = tmp_path / "data" / "workspaces"
    other = Worktree(root, "widgets-13", "mergewright/13-x", mirror.path, lambda: isolation)
    prepare(mirror, other, "main")
    assert not other.dirty()
    blocked.remove()


def test_what_git_left_in_the_bots_repository_is_not_followed(
    worktree: Worktree, mirror: Mirror, git: Git, tmp_path: Path
) -> None:
    """Hostile code in git's sandbox can write to `bot.git`, the bot's repository of the session."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    old = worktree.head()
    assert old
    new = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    git(worktree.path, "reset", "--quiet", "--hard", old)
    assert not worktree.dirty()
    view = worktree.place / "bot.git"
    for name in ("lock", "made", "moving", "steering"):
        (view / name).symlink_to(secret)
    (outside := tmp_path / "outside").mkdir()
    (outside / "HEAD.lock").touch()
    (view / "linked").symlink_to(outside)
    (view / "index").unlink()
    (view / "index").symlink_to(secret)
    with pytest.raises((GitFailure, OSError)):
        worktree.move(old, new)
    (worktree.path / "new").write_text("1")
    with pytest.raises((GitFailure, OSError)):
        mirror.preserve(worktree, 1)
    assert (outside / "HEAD.lock").exists()
    assert secret.read_text() == "secret"
    assert b"secret" not in (worktree.repository / "worktrees" / "checkout" / "index").read_bytes()


LIMITS: dict[str, tuple[str, int, int, str | None]] = {
    "an object": ("FILE_BYTES", 1_000_000, 3 << 30, "has 0.0 GB"),
    "the number of objects": ("_MOST_OBJECTS", 2, 5_000_000, "the commits have 3 objects"),
    "memory": ("_MEMORY_BYTES", 1 << 20, 4 << 30, None),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_pack_beyond_a_limit_is_refused_and_leaves_nothing(
    worktree: Worktree, mirror: Mirror, git: Git, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    limit, low, high, words = LIMITS[name]
    sha = git.commit(worktree.path, "large", "x" * 2_000_000)
    before = sorted((mirror.path / "objects").rglob("*"))
    with monkeypatch.context() as lowered:
        lowered.setattr(packs, limit, low)
        with pytest.raises(GitFailure, match=words):
            mirror.take(worktree)
    assert sorted((mirror.path / "objects").rglob("*")) == before
    monkeypatch.setattr(packs, limit, high)
    assert mirror.take(worktree) == sha


def test_a_pack_of_too_many_bytes_is_broken_off(
    worktree: Worktree, git: Git, tmp_path: Path
) -> None:
    (worktree.path / "noise").write_bytes(os.urandom(300_000))
    git(worktree.path, "add", "noise")
    git(worktree.path, "commit", "--quiet", "-m", "Noise")
    head = worktree.head()
    assert head
    into = tmp_path / "pack"
    with pytest.raises(GitFailure) as failed:
        worktree.pack(head, [], into, 100_000)
    assert failed.value.too_much
    assert into.stat().st_size <= 100_000


def test_without_its_isolation_no_git_runs(
    worktree: Worktree, mirror: Mirror, tmp_path: Path
) -> None:
    def missing() -> Isolation:
        raise RuntimeFailure("bubblewrap is not installed")

    root = tmp_path / "data" / "workspaces"
    same = Worktree(root, worktree.session, worktree.branch, mirror.path, missing)
    with pytest.raises(GitFailure, match="bubblewrap is not installed"):
        same.dirty()
