"""Submodules by allow-list: their files in a workspace, and hostile `.gitmodules`."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtimes.workspaces import submodules
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.submodules import AllowedRepository, Submodules
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.repositories import Git

_ENTRY = '[submodule "{name}"]\n\tpath = {path}\n\turl = {url}\n'


class Projects:
    """Repositories on GitHub beside the project's own one."""

    def __init__(self, github: Path, person: Path, mirror: Mirror, git: Git) -> None:
        self.github, self._person, self._mirror, self._git = github.parent, person, mirror, git

    def url(self, name: str) -> str:
        return str(self.github / f"{name}.git")

    def commits(self, name: str, files: dict[str, str], **pinned: str) -> str:
        """Commit files and submodules (by name) to a repository there, made if it is missing."""
        place = self.github / name
        if not place.is_dir():
            self._git(self.github, "init", "--quiet", "--template=", "--initial-branch=main", name)
            Path(self.url(name)).symlink_to(place / ".git")
        return self._commit(place, files, pinned)

    def project_has(self, files: dict[str, str], **pinned: str) -> str:
        """Commit files and submodules to the project's base branch."""
        sha = self._commit(self._person, files, pinned)
        self._git(self._person, "push", "--quiet", "origin", "main")
        self._mirror.refresh()
        return sha

    def _commit(self, place: Path, files: dict[str, str], pinned: dict[str, str]) -> str:
        entries = [_ENTRY.format(name=n, path=n, url=f"../{n}.git") for n in pinned]
        if entries and ".gitmodules" not in files:
            files = {**files, ".gitmodules": "".join(entries)}
        self._git(place, "rm", "--quiet", "-r", "--ignore-unmatch", "--", ".")
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        self._git(place, "add", "--all")
        for path, sha in pinned.items():
            self._git(place, "update-index", "--add", "--cacheinfo", f"160000,{sha},{path}")
        self._git(place, "commit", "--quiet", "--allow-empty", "-m", "Change")
        return self._git(place, "rev-parse", "HEAD")

    def allows(self, *names: str) -> Submodules:
        allowed = [AllowedRepository(self.url(name), str) for name in names]
        return Submodules(self.github.parent / "data" / "submodules", allowed)


@pytest.fixture
def projects(github: Path, person: Path, mirror: Mirror, git: Git) -> Projects:
    return Projects(github, person, mirror, git)


@pytest.fixture
def begins(mirror: Mirror, workspace: Callable[[], Worktree]) -> Callable[[], Worktree]:
    """Prepares the workspace at the base branch."""

    def prepared() -> Worktree:
        made = workspace()
        prepare(mirror, made, "main")
        return made

    return prepared


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_an_allowed_submodule_has_its_files_as_the_commit_records_them(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree], git: Git
) -> None:
    pinned = projects.commits("lib", {"a": "1", "deep/b": "1"})
    projects.commits("lib", {"a": "2"})
    projects.project_has({"README": "1"}, lib=pinned)
    worktree = begins()
    assert projects.allows("lib").fill(mirror, worktree) == []
    assert _files(worktree.path / "lib") == ["a", "deep/b"]
    assert (worktree.path / "lib" / "a").read_text() == "1"
    assert git(worktree.path, "status", "--porcelain") == ""
    assert not worktree.dirty()
    git(worktree.path, "add", "--all")
    git.commit(worktree.path, "b", "1")
    assert git(worktree.path, "ls-tree", "HEAD", "lib").split()[2] == pinned


def test_submodules_are_left_out_unless_they_are_allowed(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree]
) -> None:
    lib, other = projects.commits("lib", {"a": "1"}), projects.commits("other", {"b": "1"})
    projects.project_has({"README": "1"}, lib=lib, other=other)
    worktree = begins()
    assert projects.allows().fill(mirror, worktree) == []
    assert not _files(worktree.path / "lib")
    left_out = projects.allows("lib").fill(mirror, worktree)
    assert left_out == [("other", "../other.git is not allowed", True)]
    assert _files(worktree.path / "lib") == ["a"]
    assert not _files(worktree.path / "other")


def test_submodules_of_submodules_have_to_be_allowed_too(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree]
) -> None:
    inner = projects.commits("inner", {"x": "1"})
    lib = projects.commits("lib", {"a": "1"}, inner=inner)
    projects.project_has({"README": "1"}, lib=lib)
    worktree = begins()
    left_out = projects.allows("lib").fill(mirror, worktree)
    assert left_out == [("lib/inner", "../inner.git is not allowed", True)]
    assert projects.allows("lib", "inner").fill(mirror, worktree) == []
    assert _files(worktree.path / "lib") == [".gitmodules", "a", "inner/x"]


def test_a_submodule_follows_the_commit_that_its_branch_records(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree]
) -> None:
    old = projects.commits("lib", {"a": "1", "gone": "1"})
    projects.project_has({"README": "1"}, lib=old)
    worktree, allowed = begins(), projects.allows("lib")
    allowed.fill(mirror, worktree)
    new = projects.commits("lib", {"a": "2"})
    later = projects.project_has({"README": "1"}, lib=new)
    worktree.move(worktree.base(), later)
    allowed.fill(mirror, worktree)
    assert _files(worktree.path / "lib") == ["a"]
    assert (worktree.path / "lib" / "a").read_text() == "2"
    assert not worktree.dirty()


def test_what_an_agent_left_in_a_submodule_cannot_steer_the_next_run(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree]
) -> None:
    pinned = projects.commits("lib", {"CLAUDE.md": "kind", "a": "1"})
    projects.project_has({"README": "1"}, lib=pinned)
    worktree, allowed = begins(), projects.allows("lib")
    allowed.fill(mirror, worktree)
    (worktree.path / "lib" / "CLAUDE.md").write_text("obey")
    (worktree.path / "lib" / "deep").mkdir()
    (worktree.path / "lib" / "deep" / "CLAUDE.md").write_text("obey")
    (worktree.path / "lib" / "built").write_text("result")
    assert allowed.fill(mirror, worktree, ("CLAUDE.md",)) == []
    assert _files(worktree.path / "lib") == ["CLAUDE.md", "a", "built"]
    assert (worktree.path / "lib" / "CLAUDE.md").read_text() == "kind"


# -- hostile files ---------------------------------------------------------------------------------

_REFUSED = {
    "a name that leads out": {"name": "../../.git/hooks"},
    "a name that is an option": {"name": "-x"},
    "a path that leads out": {"path": "../lib"},
    "an absolute path": {"path": "/tmp/lib"},
    "a path into the repository": {"path": "lib/.GIT/hooks"},
    "a path into the repository by its short name": {"path": "GIT~1/hooks"},
    "a path that is an option": {"path": "--upload-pack=trap"},
    "an empty path": {"path": ""},
    "a URL that is an option": {"url": "--upload-pack=trap"},
    "a URL that runs a program": {"url": "ext::sh -c trap"},
    "a URL of a file": {"url": "file://{folder}/lib.git"},
    "a URL without a protocol": {"url": "{folder}/secret.git"},
    "a URL of another server": {"url": "https://evil.example/acme/lib.git"},
    "a URL of another server, by SSH": {"url": "git@evil.example:acme/lib.git"},
    "a relative URL that leads elsewhere": {"url": "../../secret.git"},
    "a URL with a line end": {"url": '"../lib.git\\nx"'},
    "a path without a submodule": {"path": "README"},
}


@pytest.mark.parametrize("case", _REFUSED)
def test_a_hostile_entry_is_left_out(
    projects: Projects,
    mirror: Mirror,
    begins: Callable[[], Worktree],
    case: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pinned = projects.commits("lib", {"a": "1"})
    entry = {"name": "lib", "path": "lib", "url": "../lib.git", **_REFUSED[case]}
    text = _ENTRY.format(**entry).replace("{folder}", str(projects.github))
    projects.project_has({"README": "1", ".gitmodules": text}, lib=pinned)
    worktree = begins()
    contacted: list[Any] = []
    monkeypatch.setattr(submodules, "with_remote", lambda *args: contacted.append(args))
    assert len(projects.allows("lib").fill(mirror, worktree)) == 1
    assert contacted == []
    assert not _files(worktree.path / "lib")


def test_git_connects_only_to_the_configured_url_with_its_password(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree], monkeypatch: Any
) -> None:
    pinned = projects.commits("lib", {"a": "1"})
    text = _ENTRY.format(name="lib", path="lib", url="git@github.example:Acme/lib.git")
    projects.project_has({"README": "1", ".gitmodules": text}, lib=pinned)
    url, contacted = "https://github.example/acme/lib.git", list[tuple[str, str]]()

    def refuse(_: Path, url: str, password: str, *_args: str) -> str:
        contacted.append((url, password))
        raise GitFailure("fetch", url, "refused")

    monkeypatch.setattr(submodules, "with_remote", refuse)
    allowed = Submodules(projects.github / "s", [AllowedRepository(url, lambda: "secret")])
    with pytest.raises(GitFailure, match="refused"):
        allowed.fill(mirror, begins())
    assert contacted == [(url, "secret")]


def test_no_link_in_place_of_a_submodule_is_followed(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree], tmp_path: Path
) -> None:
    pinned = projects.commits("lib", {"a": "1", "deep/b": "1"})
    projects.project_has({"README": "1"}, lib=pinned)
    worktree, allowed = begins(), projects.allows("lib")
    (outside := tmp_path / "outside").mkdir()
    (worktree.path / "lib").rmdir()
    (worktree.path / "lib").symlink_to(outside)
    assert allowed.fill(mirror, worktree) == [("lib", "something else is in its place", False)]
    (worktree.path / "lib").unlink()
    assert allowed.fill(mirror, worktree) == []
    shutil.rmtree(worktree.path / "lib" / "deep")
    (worktree.path / "lib" / "deep").symlink_to(outside)
    assert allowed.fill(mirror, worktree) == []
    assert _files(worktree.path / "lib") == ["a", "deep/b"]
    assert _files(outside) == []


def test_a_repository_in_place_of_a_submodule_is_not_touched(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree], git: Git
) -> None:
    pinned = projects.commits("lib", {"a": "1"})
    projects.project_has({"README": "1"}, lib=pinned)
    worktree = begins()
    git(worktree.path / "lib", "init", "--quiet", "--template=")
    left_out = projects.allows("lib").fill(mirror, worktree)
    assert left_out == [("lib", "something else is in its place", False)]


def test_gitmodules_includes_no_file_of_the_machine(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree], tmp_path: Path
) -> None:
    """Git reads `.gitmodules` without a sandbox, so it must not follow an `include` in that file.

    Otherwise it could read any file of the machine, name that file in an error, or wait at a pipe.
    """
    stolen = tmp_path / "stolen"
    stolen.write_text(_ENTRY.format(name="a", path="a", url="https://git.example/hunter2"))
    projects.project_has({".gitmodules": f"[include]\n\tpath = {stolen}\n"})
    assert projects.allows("lib").fill(mirror, begins()) == []


def test_a_huge_gitmodules_is_not_read(
    projects: Projects, mirror: Mirror, begins: Callable[[], Worktree]
) -> None:
    text = _ENTRY.format(name="lib", path="lib", url="../lib.git") + "#" * 70_000
    projects.project_has({".gitmodules": text}, lib=projects.commits("lib", {"a": "1"}))
    worktree = begins()
    with pytest.raises(GitFailure, match=r"\.gitmodules has more than 65536 bytes"):
        projects.allows("lib").fill(mirror, worktree)
