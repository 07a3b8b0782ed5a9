"""Hostile checkouts: each is either preserved or refused with a reason, and removed afterwards."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.repositories import remove_tree
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

#: So much of a processor's time is enough for bounded steps. How long they wait depends on the
#: machine: removing 3,000 folders takes 0.1 s of a processor, and 10 s if the disk is busy.
_CPU_SECONDS = 20


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    began = _cpu_seconds()
    yield
    assert _cpu_seconds() - began < _CPU_SECONDS


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def nest(folder: Path, depth: int) -> None:
    """Make nested folders, deeper than a path can name them."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def pipe_for(name: str) -> Callable[[Path], None]:
    def lay(path: Path) -> None:
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        os.mkfifo(file)

    return lay


def huge(path: Path) -> None:
    (path / "huge").touch()
    os.truncate(path / "huge", 1 << 40)


def odd_repository(path: Path) -> None:
    inner = Path(os.fsdecode(os.fsencode(path) + b"/in\xff"))
    subprocess.run(["git", "init", "--quiet", "--template=", inner], check=True)
    Path(os.fsdecode(os.fsencode(inner) + b"/\xfe")).write_text("x")


def huge_repository(path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--template=", path / "inner"], check=True)
    huge(path / "inner")


#: What an agent does in its checkout, and the words with which preserving refuses it, if it does.
ATTACKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (pipe_for("pipe"), ""),
    "a pipe for a committed file": (pipe_for("README"), ""),
    "a pipe for attributes": (
        pipe_for(".gitattributes"),
        r"\.gitattributes is a pipe, not a file",
    ),
    "a pipe for ignored names, deep down": (
        pipe_for("a/b/.gitignore"),
        r"a/b/\.gitignore is a pipe, not a file",
    ),
    "names in no encoding": (
        lambda path: Path(os.fsdecode(os.fsencode(path) + b"/\xff\xe9 \n")).write_text("x"),
        "",
    ),
    "a nested repository with a name in no encoding": (odd_repository, ""),
    "a pipe in a nested repository": (
        pipe_for("inner/.git/HEAD"),
        r"inner/\.git/HEAD is a pipe, not a file",
    ),
    "a terabyte of nothing": (huge, "huge has 1,099.5 GB"),
    "a terabyte in a nested repository": (huge_repository, "huge has 1,099.5 GB"),
    "3,000 nested folders": (lambda path: nest(path, 3000), ""),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_checkout_is_preserved_or_refused_and_then_removed(
    worktree: Worktree, mirror: Mirror, git: Git, attack: str
) -> None:
    (worktree.path / "work").write_text("not committed\n")
    lay, refusal = ATTACKS[attack]
    lay(worktree.path)
    if refusal:
        with pytest.raises(GitFailure, match=refusal) as failed:
            mirror.preserve(worktree, 1)
        assert "or have the agent remove" in str(failed.value)
    else:
        assert worktree.dirty()
        kept = mirror.preserve(worktree, 1)
        assert kept
        assert git(mirror.path, "show", f"{kept}:work") == "not committed"
        assert git(mirror.path, "show", f"{kept}:README") == "widgets"
    assert worktree.remove()
    assert not worktree.exists


def test_bytes_of_odd_names_are_preserved(worktree: Worktree, mirror: Mirror) -> None:
    odd_repository(worktree.path)
    kept = mirror.preserve(worktree, 1)
    names = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", str(kept)],
        cwd=mirror.path,
        capture_output=True,
        check=True,
    ).stdout
    assert b"in\xff/\xfe\0" in names


def test_folders_without_permissions_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    (folder / "a" / "b").mkdir(parents=True)
    nest(folder / "a" / "b", 3000)
    (folder / "a" / "b").chmod(0)
    (folder / "a").chmod(0o500)
    remove_tree(folder)
    assert not folder.exists()
    remove_tree(folder)


def test_what_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "link").symlink_to(kept)
    remove_tree(tmp_path / "gone")
    assert kept.stat().st_mode & 0o777 == 0o500
    shutil.rmtree(kept)
