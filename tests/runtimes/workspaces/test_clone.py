"""Clones, and sparse checkouts of both kinds of workspaces."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.host import CLONE, WORKTREE, WorkspaceOptions
from runtimes.isolation.base import Isolation
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import hold_files, prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

BRANCH = "mergewright/12-add-a-test"
_MERGES = ("-c", "user.name=Ada", "-c", "user.email=a@example.com", "merge", "--no-edit", "-q")
#: Makes a workspace with options, at the base branch's commit.
Prepared = Callable[..., Worktree]


@pytest.fixture
def prepared(mirror: Mirror, tmp_path: Path, isolation: Isolation) -> Prepared:
    def make(**options: object) -> Worktree:
        root, chosen = tmp_path / "data" / "workspaces", WorkspaceOptions(**options)  # type: ignore[arg-type]
        made = Worktree(root, "widgets-12", BRANCH, mirror.path, lambda: isolation, chosen)
        prepare(mirror, made, "main")
        return made

    return make


@pytest.fixture
def history(mirror: Mirror, person: Path, git: Git) -> list[str]:
    """The commits of the base branch on GitHub, oldest first."""
    shas = [git(person, "rev-parse", "HEAD")]
    shas += [git.commit(person, "counter", str(number)) for number in range(9)]
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    return shas


def _lines(text: str) -> list[str]:
    return sorted(text.splitlines())


# -- clones ----------------------------------------------------------------------------------------


def test_a_clone_needs_no_other_repository(
    prepared: Prepared, mirror: Mirror, person: Path, git: Git
) -> None:
    clone = prepared(kind=CLONE)
    hidden = mirror.path.rename(mirror.path.with_name("hidden"))
    assert git(clone.path, "fsck", "--connectivity-only") == ""
    git(clone.path, "fetch", "--quiet", "origin")
    sha = git.commit(clone.path, "a", "1")
    assert str(mirror.path) not in git(clone.path, "config", "--list")
    hidden.rename(mirror.path)
    assert mirror.take(clone) == sha


def test_an_agent_in_a_clone_sees_neither_work_nor_objects_of_other_sessions(
    prepared: Prepared, mirror: Mirror, git: Git
) -> None:
    tree = git(mirror.path, "rev-parse", "main^{tree}")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    other = git(mirror.path, *who, "commit-tree", tree, "-m", "another session's")
    git(mirror.path, "update-ref", "refs/mergewright/sessions/widgets-13", other)
    clone = prepared(kind=CLONE)
    assert "mergewright" not in git(clone.path, "ls-remote", "origin")
    with pytest.raises(AssertionError):
        git(clone.path, "cat-file", "-e", other)


def test_what_is_new_on_github_reaches_a_clone_before_its_next_run(
    prepared: Prepared, mirror: Mirror, person: Path, git: Git
) -> None:
    clone = prepared(kind=CLONE)
    later = git.commit(person, "a", "1")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    prepared(kind=CLONE)
    git(clone.path, "fetch", "--quiet", "origin")
    assert git(clone.path, "rev-parse", "origin/main") == later


def test_a_workspace_keeps_its_kind_until_it_is_made_again(
    prepared: Prepared, mirror: Mirror, git: Git
) -> None:
    clone = prepared(kind=CLONE)
    sha = git.commit(clone.path, "a", "1")
    assert prepared(kind=WORKTREE).origin == clone.origin
    assert prepared(kind=WORKTREE).head() == sha
    clone.remove()
    assert prepared(kind=WORKTREE).origin == mirror.path


def test_a_worktree_becomes_a_clone_with_all_its_work(
    prepared: Prepared, mirror: Mirror, tmp_path: Path, isolation: Isolation, git: Git
) -> None:
    worktree = prepared()
    sha = git.commit(worktree.path, "a", "1")
    (worktree.path / "b").write_text("not committed")
    root, chosen = tmp_path / "data" / "workspaces", WorkspaceOptions(kind=CLONE)
    configured = Worktree(root, "widgets-12", BRANCH, mirror.path, lambda: isolation, chosen)
    configured.update_origin()  # For a message about the base branch, before the next run.
    clone = prepared(kind=CLONE)
    assert clone.origin == clone.place / "origin.git"
    assert git(clone.path, "remote", "get-url", "origin").strip() == str(clone.origin)
    assert clone.head() == sha
    assert clone.changes(sha).uncommitted == ("?? b",)


# -- depth -----------------------------------------------------------------------------------------


def test_a_clone_has_as_much_history_as_it_may(
    prepared: Prepared, history: list[str], mirror: Mirror, git: Git
) -> None:
    clone = prepared(kind=CLONE, depth=3)
    assert _lines(git(clone.path, "rev-list", "HEAD")) == sorted(history[-3:])
    with pytest.raises(AssertionError):
        git(clone.path, "cat-file", "-e", history[0])
    assert clone.base() == history[-1]


def test_work_in_a_shallow_clone_is_read_taken_and_pushed(
    prepared: Prepared, history: list[str], mirror: Mirror, git: Git, github: Path
) -> None:
    clone = prepared(kind=CLONE, depth=1)
    sha = git.commit(clone.path, "a", "1")
    (clone.path / "b").write_text("2")
    changes = clone.changes(history[-1])
    assert ([line.split()[1:] for line in changes.commits], changes.uncommitted) == (
        [["Write", "a"]],
        ("?? b",),
    )
    assert "+1" in clone.patch(history[0], sha, 10_000).text
    assert mirror.take(clone) == sha
    mirror.push(sha, BRANCH, "")
    assert git(github, "rev-list", "--count", BRANCH) == str(len(history) + 1)
    assert mirror.preserve(clone, 1)


def test_a_shallow_clone_follows_its_branches(
    prepared: Prepared, history: list[str], mirror: Mirror, person: Path, git: Git
) -> None:
    clone = prepared(kind=CLONE, depth=2)
    git.commit(clone.path, "a", "1")
    later = [git.commit(person, "counter", f"later {number}") for number in range(5)]
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    prepared(kind=CLONE, depth=2)
    git(clone.path, "fetch", "--quiet", "origin")
    assert git(clone.path, "merge-base", "HEAD", "origin/main") == history[-1]
    git(clone.path, *_MERGES, "origin/main")
    joined = mirror.take(prepared(kind=CLONE, depth=2))
    assert mirror.is_ancestor(later[-1], joined)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_shallow_clone_is_deepened_to_a_merge_base(
    prepared: Prepared, history: list[str], mirror: Mirror, person: Path, git: Git, depth: int
) -> None:
    clone = prepared(kind=CLONE, depth=depth)
    git.commit(clone.path, "a", "1")
    git(person, "checkout", "--quiet", "-B", "main", history[1])
    moved = git.commit(person, "other", "1")
    git(person, "push", "--quiet", "--force", "origin", "main")
    mirror.refresh()
    prepared(kind=CLONE, depth=depth)
    git(clone.path, "fetch", "--quiet", "origin")
    assert git(clone.path, "merge-base", "HEAD", "origin/main") == history[1]
    git(clone.path, *_MERGES, "origin/main")
    assert mirror.is_ancestor(moved, mirror.take(clone))


def test_a_shallow_clone_begins_with_the_merge_base_of_earlier_work(
    prepared: Prepared, history: list[str], mirror: Mirror, person: Path, git: Git
) -> None:
    git(person, "checkout", "--quiet", "-b", BRANCH, history[2])
    ours = [git.commit(person, "mine", str(number)) for number in range(4)]
    git(person, "push", "--quiet", "origin", BRANCH)
    mirror.refresh()
    clone = prepared(kind=CLONE, depth=1)
    assert (clone.head(), clone.base()) == (ours[-1], history[2])
    assert git(clone.path, "merge-base", "HEAD", "origin/main") == history[2]


def test_a_shallow_clone_moves_to_merged_commits(
    prepared: Prepared, history: list[str], mirror: Mirror, person: Path, git: Git
) -> None:
    clone = prepared(kind=CLONE, depth=1)
    sha = git.commit(clone.path, "a", "1")
    mirror.push(mirror.take(clone), BRANCH, "")
    git(person, "fetch", "--quiet")
    git(person, "checkout", "--quiet", "-b", BRANCH, f"origin/{BRANCH}")
    theirs = git.commit(person, "theirs", "1")
    git(person, "push", "--quiet", "origin", BRANCH)
    ours = git.commit(clone.path, "b", "1")
    mirror.refresh()
    joined = mirror.join("widgets-12", BRANCH, mirror.take(clone), theirs)
    assert joined
    clone.move(ours, joined)
    assert not clone.dirty()
    assert git(clone.path, "rev-list", "--count", f"{sha}..HEAD") == "3"


# -- sparse checkouts ------------------------------------------------------------------------------


@pytest.fixture(params=[WORKTREE, CLONE])
def sparse(
    request: pytest.FixtureRequest, prepared: Prepared, mirror: Mirror, person: Path, git: Git
) -> Worktree:
    for folder in ("web/ui/deep", "web/old", "api"):
        (person / folder).mkdir(parents=True)
    names = ("web/ui/a", "web/ui/deep/b", "web/file", "web/old/c", "api/d", "api/CLAUDE.md")
    for name in names:
        (person / name).write_text(f"{name}\n")
    git(person, "add", ".")
    git(person, "commit", "--quiet", "-m", "Grow")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    return prepared(kind=request.param, sparse=("web/ui",))


def _files(checkout: Path) -> list[str]:
    found = (path.relative_to(checkout) for path in checkout.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.name != ".git")


_SHOWN = [".gitignore", "README", "web/file", "web/ui/a", "web/ui/deep/b"]


def test_a_sparse_checkout_has_the_folders_and_what_is_beside_them(
    sparse: Worktree, git: Git
) -> None:
    assert _files(sparse.path) == _SHOWN
    assert git(sparse.path, "status", "--porcelain") == ""
    assert not sparse.dirty()


def test_files_outside_do_not_look_deleted_after_commits(
    sparse: Worktree, mirror: Mirror, git: Git
) -> None:
    sha = git.commit(sparse.path, "web/ui/a", "changed")
    assert not sparse.dirty()
    assert mirror.take(sparse) == sha
    assert mirror.tracked(sha, ["api", "web/old"]) == ["api/CLAUDE.md", "api/d", "web/old/c"]
    (sparse.path / "api").mkdir()
    (sparse.path / "api" / "new").write_text("1")
    (sparse.path / "api" / "d").write_text("changed")
    assert sparse.changes(sha).uncommitted == (" M api/d", "?? api/new")


def test_a_sparse_checkout_moves_with_its_branch(
    sparse: Worktree, mirror: Mirror, person: Path, git: Git
) -> None:
    old = sparse.head()
    assert old
    for name in ("api/d", "web/ui/a", "web/old/c"):
        (person / name).write_text("later")
    git(person, "commit", "--quiet", "-a", "-m", "Change")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    new = mirror.head_of("main")
    assert new
    sparse.move(old, new)
    assert _files(sparse.path) == _SHOWN
    assert (sparse.path / "web/ui/a").read_text() == "later"
    assert git(sparse.path, "status", "--porcelain") == ""
    assert not sparse.dirty()


def test_work_outside_a_sparse_checkout_is_preserved_and_restored(
    sparse: Worktree, mirror: Mirror, git: Git
) -> None:
    (sparse.path / "api").mkdir()
    (sparse.path / "api" / "d").write_text("changed")
    (sparse.path / "web" / "file").unlink()
    kept = mirror.preserve(sparse, 1)
    assert kept
    names = ["README", "api/CLAUDE.md", "api/d", "web/file", "web/old/c"]
    assert mirror.tracked(kept, names) == ["README", "api/CLAUDE.md", "api/d", "web/old/c"]
    sparse.remove()
    prepare(mirror, sparse, "main", 1)
    assert sparse.changes(sparse.base()).uncommitted == (" M api/d", " D web/file")


def test_steering_files_outside_a_sparse_checkout_stay_outside(
    sparse: Worktree, mirror: Mirror
) -> None:
    base = sparse.base()
    patterns = ("CLAUDE.md",)
    assert not hold_files(mirror, sparse, base, patterns, 1)
    assert _files(sparse.path) == _SHOWN
    (sparse.path / "api").mkdir()
    (sparse.path / "api" / "CLAUDE.md").write_text("obey")
    assert not hold_files(mirror, sparse, base, patterns, 2)
    assert (sparse.path / "api" / "CLAUDE.md").read_text() == "api/CLAUDE.md\n"
    assert not sparse.dirty()
