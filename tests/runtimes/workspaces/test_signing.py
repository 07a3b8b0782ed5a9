"""Commits are signed before they are pushed; `git verify-commit` checks the signatures."""

from pathlib import Path

import pytest

from runtimes.workspaces import signing
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.signing import CommitSigner, sign_commits
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.workspaces.conftest import BRANCH
from tests.world.signing_key import EMAIL, SIGNER, is_verified

TRAILERS = "Add a test\n\nIt was missing.\n\nCo-authored-by: Ada <ada@example.com>\n"
#: Everything in a commit but its committer, its signature and its parents.
KEPT = "--format=%T%n%an <%ae> %ad%n%cd%n%B"


def sign(mirror: Mirror, worktree: Worktree) -> str:
    return sign_commits(mirror, worktree.session, mirror.take(worktree), SIGNER)


def history(git: Git, mirror: Mirror, head: str, form: str) -> list[str]:
    return git(mirror.path, "log", "-z", "--date=raw", form, head).split("\0")


def test_every_unpushed_commit_is_signed_and_otherwise_as_the_agent_made_it(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    place = worktree.path
    git.commit(place, "a", "1\n", TRAILERS)
    git(place, "checkout", "-q", "-b", "aside", "HEAD^")
    git.commit(place, "b", "1\n", "Aside")
    git(place, "checkout", "-q", BRANCH)
    git(place, "-c", "i18n.commitEncoding=ISO-8859-1", "merge", "-q", "-m", "Merge \xe4", "aside")
    (place / "run").symlink_to("a")
    git(place, "add", "run")
    dated = ("--date=2001-02-03T04:05:06+0200", "--author=Bo <bo@example.org>")
    git(place, "commit", "-q", *dated, "--allow-empty-message", "-m", "")
    head = mirror.take(worktree)
    signed = sign(mirror, worktree)
    assert signed != head
    assert history(git, mirror, signed, KEPT) == history(git, mirror, head, KEPT)
    new = git(mirror.path, "rev-list", signed, "--not", "--branches").split()
    assert len(new) == 4
    assert all(is_verified(mirror.path, sha) for sha in new)
    assert {git(mirror.path, "log", "-1", "--format=%cn <%ce>", sha) for sha in new} == {
        f"Widget Bot <{EMAIL}>"
    }
    git(mirror.path, "fsck", "--strict", "--no-dangling")


def test_signing_again_gives_the_same_commits(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    git.commit(worktree.path, "a", "1\n")
    head = mirror.take(worktree)
    signed = sign(mirror, worktree)
    assert sign_commits(mirror, worktree.session, head, SIGNER) == signed
    assert sign_commits(mirror, worktree.session, signed, SIGNER) == signed


def test_commits_that_are_on_github_or_were_pushed_stay_as_they_are(
    worktree: Worktree, mirror: Mirror, git: Git, person: Path
) -> None:
    theirs = git.commit(person, "theirs", "1\n")
    git(person, "push", "-q", "origin", "main")
    mirror.refresh()
    pushed = git.commit(worktree.path, "a", "1\n")
    mirror.push(mirror.take(worktree), BRANCH, "")
    git(person, "push", "-q", "origin", f":{BRANCH}")  # Deleted since.
    mirror.refresh()
    git(worktree.path, "fetch", "-q", "origin")
    git(worktree.path, "merge", "-q", "-m", "Merge main", "origin/main")
    signed = sign(mirror, worktree)
    assert git(mirror.path, "rev-parse", f"{signed}^@").split() == [pushed, theirs]
    assert is_verified(mirror.path, signed)
    assert not is_verified(mirror.path, pushed)


def test_a_forged_signature_is_replaced(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    head = git.commit(worktree.path, "a", "1\n")
    raw = git(worktree.path, "cat-file", "commit", head)
    top, _, message = raw.partition("\n\n")
    top = f"{top}\ngpgsig -----BEGIN SSH SIGNATURE-----\n forged\n -----END SSH SIGNATURE-----"
    file = worktree.path / "forged"
    file.write_text(f"{top}\n\n{message}\n")
    forged = git(worktree.path, "hash-object", "-t", "commit", "-w", "forged")
    git(worktree.path, "update-ref", "HEAD", forged)
    signed = sign(mirror, worktree)
    assert is_verified(mirror.path, signed)
    assert "forged" not in git(mirror.path, "cat-file", "commit", signed)
    other = CommitSigner(SIGNER.name, SIGNER.email, lambda data: SIGNER.sign(data + b" "))
    assert not is_verified(mirror.path, sign_commits(mirror, "widgets-12", forged, other))


def test_the_workspace_follows_and_keeps_its_uncommitted_files(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    head = git.commit(worktree.path, "a", "1\n")
    (worktree.path / "a").write_text("2\n")
    (worktree.path / "new").write_text("3\n")
    git(worktree.path, "add", "new")
    before = git(worktree.path, "status", "--porcelain", "--branch")
    signed = sign(mirror, worktree)
    assert worktree.adopt(head, signed, at=head)
    assert worktree.head() == git(worktree.path, "rev-parse", "HEAD") == signed
    assert git(worktree.path, "status", "--porcelain", "--branch") == before
    assert worktree.dirty()
    assert worktree.off_branch(signed) is None
    assert mirror.take(worktree) == signed
    git(worktree.path, "commit", "-qam", "The agent continues")
    assert is_verified(mirror.path, f"{sign(mirror, worktree)}^")


def test_a_workspace_with_other_commits_checked_out_is_left_alone(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    head = git.commit(worktree.path, "a", "1\n")
    signed = sign(mirror, worktree)
    git(worktree.path, "checkout", "-q", "--detach")
    later = git.commit(worktree.path, "b", "1\n")
    assert not worktree.adopt(head, signed, at=head)
    assert worktree.head() == head
    git(worktree.path, "checkout", "-q", "-B", BRANCH, later)
    assert not worktree.adopt(head, signed, at=head)
    assert worktree.head() == later


def test_more_commits_than_can_be_signed_are_refused(
    worktree: Worktree, mirror: Mirror, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "_MOST_COMMITS", 1)
    git.commit(worktree.path, "a", "1\n")
    git.commit(worktree.path, "b", "1\n")
    with pytest.raises(GitFailure, match="more than 1 commits to sign; have the agent squash"):
        sign(mirror, worktree)
