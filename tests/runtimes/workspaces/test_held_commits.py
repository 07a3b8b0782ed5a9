"""Tests of what holds a push until a person has seen it: sizes, authors, removals, secrets."""

from pathlib import Path

import pytest

from bot.act.publishing import closing_others
from bot.system.secret_forms import looks_like_secret
from runtimes.workspaces.git import EMAIL, GitFailure
from runtimes.workspaces.git import git as bot_git
from runtimes.workspaces.held_commits import (
    foreign_commits,
    large_files,
    removed_commits,
    suspicious_places,
)
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.workspaces.conftest import BRANCH

TOKEN = "glpat-" + "x" * 20


def is_ours(email: str) -> bool:
    return email == EMAIL


def commit_as(git: Git, worktree: Worktree, name: str, *options: str) -> str:
    """Commit a file with the identity of the session's own repository."""
    (worktree.path / name).write_text("x\n")
    git(worktree.path, "add", name)
    ours = (f"user.email={EMAIL}", "user.name=Mergewright")
    settings = [word for one in ours for word in ("-c", one)]
    git(worktree.path, *settings, "commit", "--quiet", "-m", f"Add {name}", *options)
    return git(worktree.path, "rev-parse", "HEAD")


def test_a_large_file_is_found_in_every_commit(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    git.commit(worktree.path, "small", "x" * 1_000_000)
    git.commit(worktree.path, "a large file", "x" * 2_000_001)
    git(worktree.path, "rm", "--quiet", "a large file")
    git.commit(worktree.path, "b", "1\n")
    head = mirror.take(worktree)
    assert large_files(mirror, head, 2) == [("a large file", 2_000_001)]
    mirror.push(head, BRANCH, "")
    assert large_files(mirror, mirror.take(worktree), 1) == []  # GitHub has it already.


def test_who_signs_is_accepted_as_a_committer_and_not_as_an_author(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    email = "signer@example.com"
    commit_as(git, worktree, "a", "--author", f"Signer <{email}>")
    mine = mirror.take(worktree)
    assert [one.email for one in foreign_commits(mirror.commits(mine), is_ours, email)] == [email]
    git(worktree.path, "config", "user.email", email)
    git(worktree.path, "commit", "--quiet", "--amend", "--author", f"Agent <{EMAIL}>", "-m", "a")
    committed = mirror.take(worktree)
    assert foreign_commits(mirror.commits(committed), is_ours, email) == []
    assert [one.email for one in foreign_commits(mirror.commits(committed), is_ours)] == [email]
    assert removed_commits(mirror, committed, mine, mine, is_ours, email) == []


@pytest.mark.parametrize("forged", [(), ("--author", "Ada <ada@example.com>")])
def test_a_commit_in_the_name_of_another_person_is_found(
    worktree: Worktree,
    mirror: Mirror,
    git: Git,
    monkeypatch: pytest.MonkeyPatch,
    forged: tuple[str, ...],
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{who}_EMAIL", raising=False)
        monkeypatch.delenv(f"GIT_{who}_NAME", raising=False)
    sha = commit_as(git, worktree, "a", *forged)
    found = foreign_commits(mirror.commits(mirror.take(worktree)), is_ours)
    assert found == ([(sha, "Ada", "ada@example.com")] if forged else [])


def test_a_forged_committer_is_found_too(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    forged = ("-c", "user.email=eve@example.com", "-c", "user.name=Eve")
    author = ("--author", f"Mergewright <{EMAIL}>")
    git(worktree.path, *forged, "commit", "--quiet", "--allow-empty", "-m", "x", *author)
    (found,) = foreign_commits(mirror.commits(mirror.take(worktree)), is_ours)
    assert found.email == "eve@example.com"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("author EVE", "committer US", "author US"), "more than one author"),
        (("author US", "committer EVE", "committer US"), "more than one committer"),
        (("author US", "committer US", "gpgsig x\n y", "author EVE"), "more than one author"),
        (("author US", "committer US", "encoding UTF-8", "encoding x"), "more than one encoding"),
        (("author US", "committer US", f"x {'y' * 1024**2}"), "a header of more than"),
        (("author US", "committer US", "gpgsig x\n author EVE"), ""),
    ],
)
def test_a_commit_that_github_may_read_differently_is_refused(
    worktree: Worktree, mirror: Mirror, git: Git, tmp_path: Path, lines: tuple[str], problem: str
) -> None:
    """Git shows the last author and committer, and libgit2 the first."""
    git.commit(worktree.path, "a", "1")
    tree, parent = git(worktree.path, "rev-parse", "HEAD^{tree}", "HEAD").split()
    header = "\n".join((f"tree {tree}", f"parent {parent}", *lines))
    header = header.replace("US", f"A <{EMAIL}> 1 +0000").replace("EVE", "E <e@x.org> 1 +0000")
    forged = tmp_path / "forged"
    forged.write_text(f"{header}\n\nauthor x\n\nauthor y\nauthor z\n")
    sha = git(worktree.path, "hash-object", "-t", "commit", "-w", str(forged))
    git(worktree.path, "update-ref", f"refs/heads/{BRANCH}", sha)
    if problem:
        with pytest.raises(GitFailure, match=f"the commit {sha} has {problem}"):
            mirror.take(worktree)
    else:
        assert mirror.take(worktree) == sha
    assert mirror.contains(sha) is not bool(problem)


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x0c"])
def test_names_with_line_separators_break_no_check(
    worktree: Worktree, mirror: Mirror, git: Git, sign: str
) -> None:
    author = ("--author", f"A{sign}da <ada@example.com>")
    git.commit(worktree.path, f"large{sign}file", "x" * 1_500_000)
    git(worktree.path, "commit", "--quiet", "--allow-empty", "-m", "x", *author)
    head = mirror.take(worktree)
    assert "ada@example.com" in [
        one.email for one in foreign_commits(mirror.commits(head), is_ours)
    ]
    assert [one.path for one in large_files(mirror, head, 1)] == [f"large{sign}file"]


def test_commits_of_people_that_a_push_would_remove_are_found(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    """The bot pushed a merge with a person's commit, and the agent went back behind it."""
    first = commit_as(git, worktree, "a")
    person = commit_as(git, worktree, "b", "--author", "Ada <ada@example.com>")
    ours = commit_as(git, worktree, "c")
    there = mirror.take(worktree)
    mirror.push(there, BRANCH, "")
    base = mirror.head_of("main") or ""
    git(worktree.path, "reset", "--quiet", "--hard", first)
    git.commit(worktree.path, "d", "1\n")
    head = mirror.take(worktree)
    assert removed_commits(mirror, there, head, base, is_ours) == [
        (person, "Ada", "ada@example.com")
    ]
    assert removed_commits(mirror, there, ours, base, is_ours) == []
    assert removed_commits(mirror, there, head, there, is_ours) == []  # Merged meanwhile.


@pytest.mark.parametrize(
    ("name", "text", "message", "path"),
    [
        ("a/b c", f"x\nkey = {TOKEN}\n", "Add", "a/b c"),
        ("é", f"x\nkey = {TOKEN}\n", "Add", "é"),
        ('a "b"\\\t\n"', f"x\nkey = {TOKEN}\n", "Add", 'a "b"\\\t\n"'),
        ("a", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n", "Add", "a"),
        ("a", "x\n", f"Use {TOKEN}", ""),
        ("a", f"++ b/{TOKEN}\n", "Add", "a"),  # Git puts a `+` before it, as in a file's header.
        ("a", f"x\nkey={TOKEN}\n".encode("utf-16-le").decode(), "Add", "a"),
        ("a", "x" * 1_500_000 + f" {TOKEN}\n", "Add", "a"),
    ],
)
def test_what_looks_like_a_secret_is_found_with_its_place(
    worktree: Worktree, mirror: Mirror, git: Git, name: str, text: str, message: str, path: str
) -> None:
    (worktree.path / name).parent.mkdir(exist_ok=True)
    sha = git.commit(worktree.path, name, text, message)
    git(worktree.path, "rm", "--quiet", name)
    git.commit(worktree.path, "b", "AKIAIOSFODNN7EXAMPLE sk-learn npm_config\n")
    head = mirror.take(worktree)
    assert suspicious_places(mirror, mirror.commits(head), looks_like_secret) == [(sha, path)]


def test_a_file_name_that_is_longer_than_a_piece_is_cut(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    (worktree.path / "a").write_text(f"{TOKEN}\n")
    blob = git(worktree.path, "hash-object", "-w", "a")
    entry = f"100644 blob {blob}\t!" + '"' * 600_000 + "\0"
    tree = bot_git(worktree.repository, "mktree", "-z", stdin=entry).strip()
    sha = git(worktree.path, "commit-tree", "-p", "HEAD", "-m", "Add", tree)
    git(worktree.path, "reset", "--quiet", "--soft", sha)
    [place] = suspicious_places(mirror, mirror.commits(mirror.take(worktree)), looks_like_secret)
    assert (place.sha, place.path[:3], len(place.path) < 600_000) == (sha, '!""', True)


def test_a_removed_secret_of_the_base_branch_is_no_finding(
    worktree: Worktree, mirror: Mirror, person: Path, git: Git
) -> None:
    git.commit(person, "a", f"{TOKEN}\n")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    git(worktree.path, "fetch", "--quiet", "origin", "main")
    git(worktree.path, "reset", "--quiet", "--hard", "FETCH_HEAD")
    git.commit(worktree.path, "a", "none\n")
    assert suspicious_places(mirror, mirror.commits(mirror.take(worktree)), looks_like_secret) == []


def test_a_carriage_return_hides_nothing_of_a_commit(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    commit_as(git, worktree, "a", "--author", f"A\rB <{EMAIL}>", "-m", "Fixes #99\rFixes #98")
    git(worktree.path, "commit", "--quiet", "--amend", "-m", "Add\rFixes #99\n\nOne\rtwo")
    head = mirror.take(worktree)
    [commit] = mirror.commits(head)
    assert (commit.subject, commit.body) == ("Add Fixes #99", "One\ntwo")
    assert commit.author == f"A B <{EMAIL}>"
    assert closing_others([commit], 1) == head[:7]
    assert foreign_commits(mirror.commits(head), is_ours, "ada@example.com") == []
