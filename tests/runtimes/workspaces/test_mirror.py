"""Tests of the mirror: fetches, pushes, preserved work."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Fork, Mirror, PushRefused
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

BRANCH = "mergewright/12-add-a-test"


def test_a_mirror_is_made_at_the_first_refresh_and_follows_github(
    mirror: Mirror, github: Path, person: Path, git: Git
) -> None:
    assert mirror.head_of("main") == git(github, "rev-parse", "main")
    later = git.commit(person, "a", "1")
    git(person, "push", "origin", "main", "HEAD:extra/one")
    mirror.refresh()
    assert mirror.head_of("main") == later
    assert mirror.head_of("extra/one") == later
    git(person, "push", "origin", "--delete", "extra/one")
    mirror.refresh()
    assert mirror.head_of("extra/one") is None


def test_a_branch_never_matches_a_longer_name(mirror: Mirror, person: Path, git: Git) -> None:
    git(person, "push", "origin", "HEAD:extra/one")
    mirror.refresh()
    assert mirror.head_of("extra") is None


def test_a_failed_clone_leaves_nothing_and_names_a_remedy(tmp_path: Path, mirror: Mirror) -> None:
    mirror = Mirror(tmp_path / "mirror.git", str(tmp_path / "nowhere"))
    with pytest.raises(GitFailure, match=r"nowhere.*check the repository's address"):
        mirror.refresh()
    assert not mirror.path.exists()


def test_a_half_made_mirror_is_made_again(github: Path, tmp_path: Path, mirror: Mirror) -> None:
    half = tmp_path / "mirror.git.making"
    half.mkdir()
    (half / "HEAD").write_text("half")
    mirror = Mirror(tmp_path / "mirror.git", str(github))
    mirror.refresh()
    assert mirror.head_of("main")
    assert not half.exists()


def test_an_old_lock_is_removed(mirror: Mirror, person: Path, git: Git) -> None:
    git.commit(person, "a", "1")
    git(person, "push", "origin", "main")
    lock = mirror.path / "refs" / "heads" / "main.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(GitFailure, match="remove the lock"):
        mirror.refresh()
    os.utime(lock, (0, 0))
    mirror.refresh()
    assert mirror.head_of("main") == git(person, "rev-parse", "main")


def test_a_push_can_be_repeated(worktree: Worktree, mirror: Mirror, github: Path, git: Git) -> None:
    sha = git.commit(worktree.path, "a", "1")
    assert mirror.take(worktree) == sha
    mirror.push(sha, BRANCH, "")
    mirror.push(sha, BRANCH, "")
    assert git(github, "rev-parse", BRANCH) == sha
    assert mirror.head_of(BRANCH) == sha


def test_a_push_is_refused_if_somebody_else_moved_the_branch(
    worktree: Worktree, mirror: Mirror, github: Path, person: Path, git: Git
) -> None:
    ours = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    mirror.push(ours, BRANCH, "")
    git(person, "fetch", "origin", BRANCH)
    git(person, "checkout", "--quiet", "FETCH_HEAD")
    theirs = git.commit(person, "b", "1")
    git(person, "push", "origin", f"HEAD:{BRANCH}")
    newer = git.commit(worktree.path, "a", "2")
    mirror.take(worktree)
    with pytest.raises(PushRefused) as refused:
        mirror.push(newer, BRANCH, ours)
    assert refused.value.moved
    assert git(github, "rev-parse", BRANCH) == theirs


def test_a_push_of_a_new_branch_is_refused_if_it_exists(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git
) -> None:
    git(github, "branch", BRANCH, "main")
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    with pytest.raises(PushRefused, match="stale info"):
        mirror.push(sha, BRANCH, "")


def test_a_push_refused_by_a_rule_carries_the_rules_message(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git
) -> None:
    has_hook(github, "pre-receive", "echo 'GH013: no pushes here' >&2; exit 1")
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    with pytest.raises(PushRefused, match="GH013: no pushes here") as refused:
        mirror.push(sha, BRANCH, "")
    assert not refused.value.moved


def test_a_missing_remote_is_a_failure_and_not_a_refusal(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    github.rename(github.with_name("moved.git"))
    with pytest.raises(GitFailure, match="push"):
        mirror.push(sha, BRANCH, "")


#: Hooks of a remote at which a push takes effect, but its response is a refusal or is lost.
_TAKES_EFFECT = {
    "the response is lost": ("post-receive", "kill -9 $PPID"),
    "an earlier attempt ends first": (
        "pre-receive",
        'read old new ref; mkdir -p "$(dirname "$ref")"; echo "$new" >"$ref"',
    ),
}


@pytest.mark.parametrize("how", _TAKES_EFFECT)
def test_a_push_that_failed_but_took_effect_is_done(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git, how: str
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    has_hook(github, *_TAKES_EFFECT[how])
    mirror.push(sha, BRANCH, "")
    assert git(github, "rev-parse", BRANCH) == sha
    assert mirror.pushed(BRANCH) == sha


def test_a_push_during_another_push_fails_and_is_not_refused(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    has_hook(
        github, "pre-receive", f'mkdir -p refs/heads/mergewright; touch "refs/heads/{BRANCH}.lock"'
    )
    with pytest.raises(GitFailure):
        mirror.push(sha, BRANCH, "")
    (github / "refs/heads" / f"{BRANCH}.lock").unlink()
    (github / "hooks/pre-receive").unlink()
    mirror.push(sha, BRANCH, "")


def has_hook(repository: Path, name: str, command: str) -> None:
    hook = repository / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{command}\n")
    hook.chmod(0o755)


def test_commits_are_listed_with_subject_and_body_oldest_first(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    base = mirror.head_of("main")
    assert base
    git.commit(worktree.path, "a", "1", "Add a\n\nBecause b.\n\nSecond paragraph.")
    sha = git.commit(worktree.path, "a", "2", "Better a")
    mirror.take(worktree)
    commits = mirror.commits(sha, base)
    assert [commit.subject for commit in commits] == ["Add a", "Better a"]
    assert commits[0].body == "Because b.\n\nSecond paragraph."
    assert commits[1].sha == sha
    assert mirror.commits(sha, sha) == ()


def test_ancestry_of_commits(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    base = mirror.head_of("main")
    assert base
    sha = git.commit(worktree.path, "a", "1")
    assert not mirror.contains(sha)
    mirror.take(worktree)
    assert mirror.contains(sha)
    assert mirror.is_ancestor(base, sha)
    assert not mirror.is_ancestor(sha, base)
    assert mirror.merge_base(base, sha) == base


@pytest.mark.parametrize("name", ["--upload-pack=x", "a b", "a..b", "a:b", "x.lock", "", "a//b"])
def test_ambiguous_names_are_refused(mirror: Mirror, name: str) -> None:
    with pytest.raises(ValueError, match="not a branch name"):
        mirror.head_of(name)
    with pytest.raises(ValueError, match="not a commit"):
        mirror.contains(name)


def test_concurrent_refreshes_succeed(mirror: Mirror, person: Path, git: Git) -> None:
    git.commit(person, "a", "1")
    git(person, "push", "origin", "main", "HEAD:b", "HEAD:c")
    failures: list[Exception] = []

    def refresh() -> None:
        try:
            mirror.refresh()
        except GitFailure as failure:
            failures.append(failure)

    threads = [threading.Thread(target=refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_committed_changed_and_untracked_work_is_preserved_but_nothing_ignored(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    head = git.commit(worktree.path, "a", "1")
    (worktree.path / "README").write_text("changed\n")
    (worktree.path / "new").write_text("new\n")
    (worktree.path / "noise.log").write_text("noise\n")
    kept = mirror.preserve(worktree, 1)
    assert kept
    assert git(mirror.path, "rev-parse", "refs/mergewright/preserved/widgets-12/1") == kept
    assert git(mirror.path, "rev-parse", f"{kept}^1") == head
    names = git(mirror.path, "ls-tree", "--name-only", kept).split()
    assert names == [".gitignore", "README", "a", "new"]
    assert git(mirror.path, "show", f"{kept}:README") == "changed"


def test_published_work_is_not_preserved(
    worktree: Worktree, mirror: Mirror, github: Path, git: Git
) -> None:
    assert mirror.preserve(worktree, 1) is None
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    mirror.push(sha, BRANCH, "")
    git(github, "branch", "-D", BRANCH)  # As after a merge by squash.
    mirror.refresh()
    assert mirror.preserve(worktree, 1) is None


def test_commits_of_other_branches_and_detached_heads_are_preserved(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    git(worktree.path, "checkout", "--quiet", "-b", "aside")
    aside = git.commit(worktree.path, "aside", "1")
    git(worktree.path, "checkout", "--quiet", "--detach", BRANCH)
    loose = git.commit(worktree.path, "loose", "1")
    git(worktree.repository, "pack-refs", "--all")
    git(worktree.path, "checkout", "--quiet", "--detach", loose)
    kept = mirror.preserve(worktree, 2)
    assert kept
    assert mirror.is_ancestor(aside, kept)
    assert mirror.is_ancestor(loose, kept)


def test_preserved_work_is_restored_with_the_workspace(
    worktree: Worktree, workspace: Callable[[], Worktree], mirror: Mirror, git: Git
) -> None:
    base = mirror.head_of("main")
    head = git.commit(worktree.path, "a", "1")
    (worktree.path / "new").write_text("new\n")
    (worktree.path / "README").unlink()
    mirror.preserve(worktree, 1)
    worktree.remove()
    again = workspace()
    assert prepare(mirror, again, "main") == base
    assert again.head() == head
    assert (again.path / "new").read_text() == "new\n"
    assert not (again.path / "README").exists()
    assert again.dirty()


def test_a_new_workspace_begins_at_githubs_branch(
    worktree: Worktree, workspace: Callable[[], Worktree], mirror: Mirror, person: Path, git: Git
) -> None:
    sha = git.commit(worktree.path, "a", "1")
    mirror.take(worktree)
    mirror.push(sha, BRANCH, "")
    worktree.remove()
    git(person, "fetch", "origin", BRANCH)
    git(person, "checkout", "--quiet", "FETCH_HEAD")
    theirs = git.commit(person, "b", "1")
    git(person, "push", "origin", f"HEAD:{BRANCH}")
    mirror.refresh()
    again = workspace()
    prepare(mirror, again, "main")
    assert again.head() == theirs


def test_a_workspace_that_was_never_made_has_nothing_to_preserve(
    workspace: Callable[[], Worktree], mirror: Mirror
) -> None:
    assert mirror.preserve(workspace(), 1) is None


def test_git_gets_no_secret_of_the_bot_but_its_password_by_a_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments and the environment of git can be read by every process of the user."""
    seen, real = tmp_path / "seen", shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >> {seen}.argv\nenv > {seen}.env\n'
        "echo 'fatal: Authorization: Basic b3RoZXI= refused, s3cret-t0ken too' >&2\n"
        'case "$1" in init) exit 0;; esac\n'
        "for host in other github; do\n"
        f'printf "protocol=https\\nhost=$host.example\\n\\n" | {real} credential fill'
        f" > {seen}.$host\n"
        "done\nexit 128\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GITHUB_TOKEN", "of-the-server")
    url = "https://user:password@github.example/o/widgets.git"
    mirror = Mirror(tmp_path / "m.git", url, lambda: "s3cret-t0ken")
    with pytest.raises(GitFailure) as failure:
        mirror.refresh()
    for secret in ("s3cret-t0ken", "b3RoZXI=", "password"):
        assert secret not in str(failure.value)
    assert "s3cret-t0ken" not in Path(f"{seen}.argv").read_text()
    environment = Path(f"{seen}.env").read_text()
    assert "s3cret-t0ken" not in environment
    assert "of-the-server" not in environment
    assert "GIT_ALLOW_PROTOCOL=https\n" in environment
    assert "s3cret-t0ken" not in Path(f"{seen}.other").read_text()
    got = Path(f"{seen}.github").read_text()
    assert "username=x-access-token\npassword=s3cret-t0ken\n" in got


def test_the_pull_request_template_is_found_where_github_looks(
    mirror: Mirror, person: Path, git: Git
) -> None:
    main = mirror.head_of("main")
    assert main is not None
    assert mirror.pull_template(main) == ""
    for folder in ("docs", "", ".github"):
        (person / folder).mkdir(exist_ok=True)
        place = folder or "root"
        name = f"{folder}/PULL_REQUEST_TEMPLATE.md".lstrip("/")
        sha = git.commit(person, name, f"## What ({place})\n")
        git(person, "push", "--quiet", "origin", "main")
        mirror.refresh()
        assert mirror.pull_template(sha) == f"## What ({place})\n"


def test_only_the_bots_branches_are_fetched_from_a_fork(
    github: Path, tmp_path: Path, person: Path, git: Git, mirror: Mirror
) -> None:
    elsewhere = tmp_path / "fork.git"
    git(tmp_path, "clone", "--quiet", "--bare", "--template=", str(github), str(elsewhere))
    fork = Fork(url=str(elsewhere), password=str, branches="mergewright/")
    mirror = Mirror(tmp_path / "forked.git", str(github), fork=fork)
    mirror.refresh()
    ours = git.commit(person, "a", "1")
    git(person, "push", "--quiet", str(mirror.path), f"HEAD:refs/mergewright/sessions/{BRANCH}")
    mirror.push(ours, BRANCH, "")
    assert git(elsewhere, "rev-parse", BRANCH) == ours
    assert git(github, "branch", "--list", BRANCH) == ""

    git(person, "push", "--quiet", "origin", f"HEAD^:refs/heads/{BRANCH}", "HEAD:main")
    git(elsewhere, "update-ref", "refs/heads/main", ours)
    mirror.refresh()
    assert (mirror.head_of(BRANCH), mirror.head_of("main")) == (ours, ours)
    git(elsewhere, "update-ref", "-d", f"refs/heads/{BRANCH}")
    mirror.refresh()
    assert mirror.head_of(BRANCH) is None
