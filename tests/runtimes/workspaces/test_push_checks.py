"""Tests of the checks before a push: protected paths, skipped CI, secrets."""

from pathlib import Path

import pytest

from lifecycle.model.policy import PROTECTED_PATHS
from runtimes.workspaces import push_checks
from runtimes.workspaces.held_commits import suspicious_places
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.push_checks import (
    PatchTooLarge,
    foreign_encoding,
    holds,
    skips_checks,
    touched,
)
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git
from tests.runtimes.workspaces.conftest import BRANCH


@pytest.fixture
def base(mirror: Mirror) -> str:
    found = mirror.head_of("main")
    assert found
    return found


def found(mirror: Mirror, base: str, head: str) -> list[str]:
    return touched(mirror, base, mirror.head_of(BRANCH) or "", head, PROTECTED_PATHS)


def test_protected_files_are_found_by_name(
    worktree: Worktree, mirror: Mirror, git: Git, base: str
) -> None:
    protected = {
        *(".github/workflows/ci.yml", "CODEOWNERS", "docs/CODEOWNERS", "deep/er/AGENTS.md"),
        *("claude.md", ".Claude/settings.json", ".mcp.json", "packages/a/.npmrc", "GEMINI.md"),
        *(".codex/config.toml", ".gemini/settings.json", ".opencode/agent/x.md"),
        *("opencode.jsonc", ".aider.conf.yml"),
        *(".circleci/config.yml", ".gitlab-ci.yml", "azure-pipelines.yml", "app/Jenkinsfile"),
        *(".travis.yml", ".buildkite/hooks/pre-command", "bitbucket-pipelines.yml", ".drone.star"),
        *("appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".woodpecker/test.yaml", ".zuul.yaml"),
        *(".woodpecker.yml", ".semaphore/semaphore.yml", ".teamcity/settings.kts", "netlify.toml"),
        *("bamboo-specs/bamboo.yml", ".tekton/push.yaml", ".forgejo/workflows/a.yml", ".build.yml"),
        *("zuul.d/jobs.yaml", ".prow.yaml", "deploy/cloudbuild.yaml", "buildspec.yml"),
    }
    git.commit(worktree.path, "a", "1")
    for name in {*protected, "github/workflows/ci.yml", "src/AGENTS.md.txt", "README"}:
        (worktree.path / name).parent.mkdir(parents=True, exist_ok=True)
        (worktree.path / name).write_text("x\n")
    git(worktree.path, "add", "--all")
    git(worktree.path, "commit", "--quiet", "-m", "Write them")
    head = mirror.take(worktree)
    assert sorted(found(mirror, base, head)) == sorted(protected)
    assert touched(mirror, base, "", head, ()) == []


def test_a_protected_folder_replaced_by_a_link_is_found(
    worktree: Worktree, mirror: Mirror, git: Git, base: str
) -> None:
    (worktree.path / ".claude").symlink_to("elsewhere")
    git(worktree.path, "add", ".claude")
    git(worktree.path, "commit", "--quiet", "-m", "Link")
    assert found(mirror, base, mirror.take(worktree)) == [".claude"]


@pytest.mark.parametrize(
    "name", ['.github/"workflows"/a b.yml', ".github/new\nline.yml", ".github/ä.yml", ".github"]
)
def test_deceptive_file_names_are_found(
    worktree: Worktree, mirror: Mirror, git: Git, base: str, name: str
) -> None:
    (worktree.path / name).parent.mkdir(parents=True, exist_ok=True)
    git.commit(worktree.path, name, "x\n")
    git.commit(worktree.path, "a", "1")
    assert found(mirror, base, mirror.take(worktree)) == [name]


def test_a_protected_file_that_was_moved_or_became_a_repository_is_found(
    worktree: Worktree, mirror: Mirror, git: Git, base: str
) -> None:
    (worktree.path / ".github/workflows").mkdir(parents=True)
    git.commit(worktree.path, ".github/workflows/ci.yml", "x\n")
    there = mirror.take(worktree)
    git(worktree.path, "mv", ".github", "hidden")
    git(worktree.path, "commit", "--quiet", "-m", "Move")
    moved = mirror.take(worktree)
    assert touched(mirror, there, "", moved, PROTECTED_PATHS) == [".github/workflows/ci.yml"]
    git(worktree.path, "update-index", "--add", "--cacheinfo", f"160000,{there},.github")
    git(worktree.path, "commit", "--quiet", "-m", "Nest")
    assert ".github" in found(mirror, base, mirror.take(worktree))


def test_protected_changes_already_on_github_are_not_reported_again(
    worktree: Worktree, mirror: Mirror, git: Git, base: str
) -> None:
    head = git.commit(worktree.path, "CODEOWNERS", "* @ada\n")
    mirror.push(mirror.take(worktree), BRANCH, "")
    git.commit(worktree.path, "a", "1")
    assert found(mirror, base, mirror.take(worktree)) == []
    git.commit(worktree.path, "CODEOWNERS", "* @eve\n")
    assert found(mirror, base, mirror.take(worktree)) == ["CODEOWNERS"]
    assert mirror.head_of(BRANCH) == head


def test_changes_of_the_base_are_not_reported_but_changes_hidden_in_a_merge_are(
    worktree: Worktree, mirror: Mirror, person: Path, git: Git
) -> None:
    git.commit(person, "CODEOWNERS", "* @ada\n")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    base = mirror.head_of("main")
    assert base
    git.commit(worktree.path, "a", "1")
    assert found(mirror, base, mirror.take(worktree)) == []
    git(worktree.path, "fetch", "--quiet", "origin", "main")
    git(worktree.path, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
    assert found(mirror, base, mirror.take(worktree)) == []
    git(worktree.path, "reset", "--quiet", "--hard", "HEAD^1")
    git(worktree.path, "merge", "--quiet", "--no-edit", "-s", "ours", "FETCH_HEAD")
    assert found(mirror, base, mirror.take(worktree)) == ["CODEOWNERS"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Write a", ""),
        ("Write a [skip ci]", "[skip ci]"),
        ("Write a\n\nAs asked: [CI Skip]", "[CI Skip]"),
        ("Write a\n\nskip-checks: true", "skip-checks: true"),
        ("Say why we skip ci", ""),
    ],
)
def test_commit_messages_that_skip_checks_are_found(
    worktree: Worktree, mirror: Mirror, git: Git, message: str, words: str
) -> None:
    git.commit(worktree.path, "a", "1", message)
    assert skips_checks(mirror, mirror.take(worktree)) == words


@pytest.mark.parametrize("encoding", ["IBM037", "UTF-16", "ISO-8859-1"])
def test_a_message_that_git_would_convert_is_found(
    worktree: Worktree, mirror: Mirror, git: Git, encoding: str
) -> None:
    """Git shows an EBCDIC message as empty, so the checks would miss what GitHub reads in it."""
    git.commit(worktree.path, "a", "1")
    assert foreign_encoding(mirror.commits(mirror.take(worktree))) == ""
    named = ("-c", f"i18n.commitEncoding={encoding}")
    git(worktree.path, *named, "commit", "--quiet", "--allow-empty", "-m", "Use hunter2 [skip ci]")
    hidden = git(worktree.path, "rev-parse", "--short", "HEAD").strip()
    git.commit(worktree.path, "a", "2")
    found = foreign_encoding(mirror.commits(mirror.take(worktree)))
    assert found == f"commit {hidden} declares the message encoding {encoding}"


def secret(text: str) -> bool:
    return "hunter2" in text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a", "key: hunter2\n", "Add"),
        ("a.db", "\0 hunter2 \0", "Add"),
        ("a", "k\0:\0 \0h\0u\0n\0t\0e\0r\x002\0\n\0", "Add UTF-16"),
        ("hunter2", "x\n", "Add"),
        ("a", "x\n", "Use hunter2"),
    ],
)
def test_a_secret_is_found_in_every_commit_of_a_push(
    worktree: Worktree, mirror: Mirror, git: Git, name: str, text: str, message: str
) -> None:
    git.commit(worktree.path, "b", "1\n")
    assert not holds(mirror, mirror.commits(mirror.take(worktree)), secret)
    git.commit(worktree.path, name, text, message)
    git(worktree.path, "rm", "--quiet", "-f", name)
    git.commit(worktree.path, "b", "2\n")
    assert holds(mirror, mirror.commits(mirror.take(worktree)), secret)


def test_a_patch_is_searched_in_parts(worktree: Worktree, mirror: Mirror, git: Git) -> None:
    """A megabyte of objects may hold a patch of gigabytes."""
    parts: list[int] = []

    def noted(text: str) -> bool:
        parts.append(len(text))
        return False

    (worktree.path / "big").write_text(("." * 99 + "\n") * 200_000)
    git(worktree.path, "add", "big")
    git(worktree.path, "commit", "--quiet", "-m", "Add")
    assert not holds(mirror, mirror.commits(mirror.take(worktree)), noted)
    assert sum(parts) > 20_000_000
    assert max(parts) < 5_000_000


def test_no_secret_is_missed_between_two_parts(
    worktree: Worktree, mirror: Mirror, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_checks, "_PART_BYTES", 101)
    monkeypatch.setattr(push_checks, "_OVERLAP_BYTES", 10)
    secrets, found = {f"secret-{number:03}" for number in range(500)}, set[str]()
    git.commit(worktree.path, "a", "".join(sorted(secrets)))

    def note(text: str) -> bool:
        found.update(one for one in secrets if one in text)
        return False

    assert not holds(mirror, mirror.commits(mirror.take(worktree)), note)
    assert found == secrets


def test_a_patch_that_is_too_large_to_search_is_not_pushed(
    worktree: Worktree, mirror: Mirror, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_checks, "_PATCH_BYTES", 2 * 1024**2)
    git.commit(worktree.path, "big", "." * 1024**2)
    assert not holds(mirror, mirror.commits(mirror.take(worktree)), secret)
    git.commit(worktree.path, "big", "hunter2" + "." * 3 * 1024**2)
    with pytest.raises(PatchTooLarge, match="more than 2 MB"):
        holds(mirror, mirror.commits(mirror.take(worktree)), secret)
    assert not [*mirror.path.glob("tmp_*")]


def test_a_secret_added_in_a_merge_commit_is_found(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    git.commit(worktree.path, "b", "1\n")
    git(worktree.path, "checkout", "--quiet", "-b", "aside", "HEAD~1")
    git.commit(worktree.path, "c", "1\n")
    git(worktree.path, "checkout", "--quiet", BRANCH)
    git(worktree.path, "merge", "--quiet", "--no-commit", "aside")
    git.commit(worktree.path, "b", "hunter2\n")
    assert holds(mirror, mirror.commits(mirror.take(worktree)), secret)


def test_a_secret_added_in_a_merge_of_three_commits_is_found(
    worktree: Worktree, mirror: Mirror, git: Git
) -> None:
    """Git shows no patch for the changes made by hand in such a merge."""
    start = git(worktree.path, "rev-parse", "HEAD").strip()
    parents = list[str]()
    for name in ("b", "c", "d"):
        git(worktree.path, "reset", "--quiet", "--hard", start)
        parents += ["-p", git.commit(worktree.path, name, "1\n").strip()]
    (worktree.path / "a").write_text("hunter2\n")
    git(worktree.path, "add", "a")
    tree = git(worktree.path, "write-tree").strip()
    merge = git(worktree.path, "commit-tree", tree, *parents, "-m", "Merge").strip()
    git(worktree.path, "reset", "--quiet", "--hard", merge)
    head = mirror.take(worktree)
    assert holds(mirror, mirror.commits(head), secret)
    assert suspicious_places(mirror, mirror.commits(head), secret) == [(merge, "a")]


def test_a_secret_that_github_already_has_does_not_block_a_push(
    worktree: Worktree, mirror: Mirror, person: Path, git: Git
) -> None:
    git.commit(person, "b", "hunter2\n")
    git(person, "push", "--quiet", "origin", "main")
    mirror.refresh()
    git(worktree.path, "fetch", "--quiet", "origin")
    git(worktree.path, "merge", "--quiet", "origin/main")
    git.commit(worktree.path, "c", "1\n")
    assert not holds(mirror, mirror.commits(mirror.take(worktree)), secret)
