"""Before each run, the bot restores the files that steer agents, such as `CLAUDE.md`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import hold_files, prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

PATTERNS = ("CLAUDE.md", ".claude/**", ".mcp.json", ".aider*")


@pytest.fixture
def base(person: Path, mirror: Mirror, git: Git) -> str:
    """The base branch, with instructions and settings of its own."""
    (person / ".claude").mkdir()
    (person / ".gitignore").write_text("*.local.json\nbuilt/\n.aider*\n")
    (person / "CLAUDE.md").write_text("Be brief.\n")
    git(person, "add", ".gitignore")
    git.commit(person, ".claude/settings.json", "{}\n")
    head = git.commit(person, "CLAUDE.md", "Be brief.\n")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    return head


@pytest.fixture
def checkout(base: str, worktree: Worktree) -> Path:
    """The workspace of an earlier run."""
    return worktree.path


def steering(place: Path) -> dict[str, str]:
    """The content of the agent's instruction files."""
    found = (*place.rglob("CLAUDE.md"), *(place / ".claude").rglob("*"), *place.glob(".[ma]*"))
    return {str(file.relative_to(place)): file.read_text() for file in found if file.is_file()}


AS_ON_BASE = {"CLAUDE.md": "Be brief.\n", ".claude/settings.json": "{}\n"}


def test_uncommitted_changes_are_put_back_and_preserved(
    checkout: Path, worktree: Worktree, mirror: Mirror, base: str, git: Git
) -> None:
    (checkout / "CLAUDE.md").write_text("obey")
    (checkout / ".claude/settings.json").write_text("obey")
    (checkout / ".claude/hooks").mkdir()
    (checkout / ".claude/hooks/run").write_text("obey")
    (checkout / ".mcp.json").write_text("obey")
    (checkout / "widgets").mkdir()
    (checkout / "widgets/CLAUDE.md").write_text("obey")
    (checkout / "widgets/code").write_text("work")
    assert hold_files(mirror, worktree, base, PATTERNS, run=1) == []
    assert steering(checkout) == AS_ON_BASE
    assert (checkout / "widgets/code").read_text() == "work"
    (kept,) = mirror.preserved("widgets-12")
    assert git(mirror.path, "show", f"{kept.sha}:.claude/hooks/run") == "obey"


def test_ignored_files_are_put_back_too(
    checkout: Path, worktree: Worktree, base: str, mirror: Mirror
) -> None:
    (checkout / ".gitignore").write_text("*\n")
    (checkout / ".claude/settings.local.json").write_text("obey")
    (checkout / ".aider.tags").mkdir()
    (checkout / ".aider.tags/cache").write_text("obey")
    (checkout / ".aider.conf.yml").write_text("obey")
    (checkout / "built/package").mkdir(parents=True)
    (checkout / "built/package/code").write_text("expensive")
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    assert steering(checkout) == AS_ON_BASE
    assert not (checkout / ".aider.tags").exists()
    assert (checkout / "built/package/code").exists()


def test_committed_changes_are_put_back_and_do_not_count_as_changes(
    checkout: Path, worktree: Worktree, base: str, git: Git, mirror: Mirror
) -> None:
    git.commit(checkout, "CLAUDE.md", "obey")
    git(checkout, "rm", "--quiet", ".claude/settings.json")
    head = git.commit(checkout, ".mcp.json", "obey")
    differing = [".claude/settings.json", ".mcp.json", "CLAUDE.md"]
    for _ in range(2):
        assert hold_files(mirror, worktree, base, PATTERNS, run=1) == differing
        assert steering(checkout) == AS_ON_BASE
        assert not worktree.dirty()
    assert worktree.head() == head
    assert mirror.preserved("widgets-12") == []
    (checkout / "CLAUDE.md").write_text("of this run")
    assert worktree.dirty()


def test_other_changes_count_while_files_are_held(
    checkout: Path, worktree: Worktree, base: str, git: Git, mirror: Mirror
) -> None:
    git.commit(checkout, "CLAUDE.md", "obey")
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    (checkout / "widgets").write_text("work")
    assert worktree.dirty()
    git.commit(checkout, "widgets", "work")
    assert not worktree.dirty()


def test_held_files_follow_the_base_branch_after_a_merge(
    checkout: Path, worktree: Worktree, person: Path, mirror: Mirror, git: Git
) -> None:
    newer = git.commit(person, "CLAUDE.md", "Be kind.\n")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    hold_files(mirror, worktree, newer, PATTERNS, run=1)
    assert steering(checkout) == AS_ON_BASE
    git(checkout, "fetch", "--quiet", "origin")
    git(checkout, "merge", "--quiet", "origin/main")
    assert hold_files(mirror, worktree, newer, PATTERNS, run=1) == []
    assert steering(checkout)["CLAUDE.md"] == "Be kind.\n"


def test_remote_commits_are_merged_over_held_files(
    checkout: Path, worktree: Worktree, base: str, mirror: Mirror, git: Git
) -> None:
    old = git.commit(checkout, "CLAUDE.md", "obey")
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    git(checkout, "stash", "--quiet")
    new = git.commit(checkout, "widgets", "theirs")
    mirror.take(worktree)
    git(checkout, "reset", "--quiet", "--hard", old)
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    worktree.move(old, new)
    assert (checkout / "widgets").read_text() == "theirs"
    assert not worktree.dirty()


def test_a_link_in_place_of_a_held_file_is_not_followed(
    checkout: Path, worktree: Worktree, base: str, tmp_path: Path, mirror: Mirror
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "settings.json").write_text("mine")
    (checkout / ".claude/settings.json").unlink()
    (checkout / ".claude").rmdir()
    (checkout / ".claude").symlink_to(outside)
    (checkout / "CLAUDE.md").unlink()
    (checkout / "CLAUDE.md").symlink_to(outside / "settings.json")
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    assert steering(checkout) == AS_ON_BASE
    assert (outside / "settings.json").read_text() == "mine"


def test_a_nested_repository_does_not_hide_steering_files(
    checkout: Path, worktree: Worktree, base: str, git: Git, mirror: Mirror
) -> None:
    git(checkout / ".claude", "init", "--quiet", "--template=")
    (checkout / ".claude/settings.json").write_text("obey")
    (checkout / ".claude/hook").write_text("obey")
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    assert (checkout / ".claude/settings.json").read_text() == "{}\n"
    assert not (checkout / ".claude/hook").exists()


def test_filters_do_not_change_files_that_are_put_back(
    checkout: Path, worktree: Worktree, base: str, tmp_path: Path, git: Git, mirror: Mirror
) -> None:
    git(checkout, "config", "filter.trap.smudge", f"touch {tmp_path}/sprung; cat")
    (checkout / ".gitattributes").write_text("CLAUDE.md filter=trap\n")
    (checkout / "CLAUDE.md").write_text("obey")
    hold_files(mirror, worktree, base, PATTERNS, run=1)
    assert steering(checkout) == AS_ON_BASE
    assert not (tmp_path / "sprung").exists()


def test_a_workspace_knows_the_commit_it_was_just_made_at_only_without_other_files(
    base: str, mirror: Mirror, workspace: Callable[[], Worktree], git: Git
) -> None:
    made, found = workspace(), workspace()
    prepare(mirror, made, "main")
    assert (made.made_at, found.made_at) == (base, "")
    assert (steering(made.path), made.dirty()) == (AS_ON_BASE, False)
    assert hold_files(mirror, made, base, PATTERNS, run=1) == []
    prepare(mirror, found, "main")
    assert found.made_at == ""  # It was there already, so an agent may have worked in it.
    git.commit(made.path, "CLAUDE.md", "obey")
    (made.path / "CLAUDE.md").write_text("obey at once")
    mirror.preserve(made, run=1)
    made.remove()
    again = workspace()
    prepare(mirror, again, "main", run=1)
    assert (again.made_at, (again.path / "CLAUDE.md").read_text()) == ("", "obey at once")
