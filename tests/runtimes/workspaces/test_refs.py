"""Tests of reading refs from files."""

from pathlib import Path

import pytest

from runtimes.workspaces import refs
from runtimes.workspaces.refs import Tip

ONE, TWO, THREE = "1" * 40, "2" * 40, "3" * 40
REF = "refs/heads/main"


@pytest.fixture
def tip(tmp_path: Path) -> Tip:
    """The branch of a repository that is at its first commit."""
    moves(tmp_path, ONE)
    return Tip(tmp_path, REF)


def moves(repository: Path, sha: str) -> None:
    """Move a branch as git does, by replacing the file."""
    ref = repository / REF
    ref.parent.mkdir(parents=True, exist_ok=True)
    new = ref.with_suffix(".lock")
    new.write_text(f"{sha}\n")
    new.replace(ref)


def packs(repository: Path, sha: str) -> None:
    """Pack refs as `git pack-refs` does."""
    (repository / "packed-refs").write_text(f"# pack-refs with: peeled\n{sha} {REF}\n")
    (repository / REF).unlink(missing_ok=True)


def test_a_moved_branch_is_read_again(tip: Tip, tmp_path: Path) -> None:
    assert tip.commit() == ONE
    moves(tmp_path, TWO)
    assert tip.commit() == TWO
    packs(tmp_path, TWO)
    assert tip.commit() == TWO
    packs(tmp_path, THREE)
    assert tip.commit() == THREE
    moves(tmp_path, ONE)
    assert tip.commit() == ONE


def test_an_unchanged_branch_is_not_read_again(
    tip: Tip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tip.commit() == ONE
    monkeypatch.setattr(refs, "commit_at", lambda repository, ref: 1 / 0)
    assert tip.commit() == ONE
    packs(tmp_path, TWO)
    with pytest.raises(ZeroDivisionError):
        tip.commit()


def test_a_deleted_branch_has_no_commit(tip: Tip, tmp_path: Path) -> None:
    assert tip.commit() == ONE
    (tmp_path / REF).unlink()
    assert tip.commit() is None


def test_a_linked_branch_has_no_commit(tip: Tip, tmp_path: Path) -> None:
    assert tip.commit() == ONE
    ref = tmp_path / REF
    ref.rename(ref.with_name("elsewhere"))
    ref.symlink_to("elsewhere")
    assert tip.commit() is None


def test_files_are_never_written_through_links(tmp_path: Path) -> None:
    repository, outside = tmp_path / "repository.git", tmp_path / "outside"
    moves(repository, ONE)
    (repository / REF).parent.rename(outside)
    (repository / REF).parent.symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|symbolic link"):
        refs.replace_file(repository, REF, f"{TWO}\n".encode())
    assert (outside / "main").read_text() == f"{ONE}\n"
