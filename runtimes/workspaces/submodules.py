"""Puts the files of allowed submodules into a workspace.

An agent may have written `.gitmodules`: it is used only to look up submodules among the allowed
repositories, whose own URLs and passwords the bot uses. `git submodule` is not used, and no
repository is made in the checkout: a submodule's folder has only the files of the recorded commit.
Commits to a submodule have to be made in its own repository. https://git-scm.com/docs/gitmodules
"""

import fcntl
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from runtimes.workspaces.git import GitFailure, git, init
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.remotes import with_remote
from runtimes.workspaces.repositories import remove_tree
from runtimes.workspaces.worktree import Worktree

_FILE = ".gitmodules"
_FILE_BYTES = 64 * 1024
_MOST, _LEVELS = 100, 5  #: The most submodules, and the most levels of nesting.
_HTTP = re.compile(r"https?://(?:[^/@]*@)?([^/]+)/(.+)", re.IGNORECASE)
_SSH = re.compile(r"ssh://(?:[^/@]*@)?([^/:]+)(?::\d+)?/(.+)|(?:[\w.-]+@)?([\w.-]+):([^/:].*)")


class LeftOut(NamedTuple):
    """A submodule whose files are not in the workspace."""

    #: From the checkout's root. For a refused entry of `.gitmodules`: as given there, any text.
    path: str
    why: str
    forbidden: bool = False  #: Whether only the setting `submodules` keeps it out.


class _Recorded(NamedTuple):
    """A submodule as a commit records it."""

    name: str
    path: str  #: From the root of the repository with the commit.
    url: str


@dataclass(frozen=True)
class AllowedRepository:
    """A repository that may be a submodule."""

    url: str
    password: Callable[[], str]  #: Returns the password for `url`; if empty, none.


@dataclass(frozen=True)
class Submodules:
    """The allowed submodules of a project, and a folder with their commits, which only grows."""

    folder: Path
    allowed: Sequence[AllowedRepository]

    def fill(
        self, mirror: Mirror, workspace: Worktree, steering: Sequence[str] = ()
    ) -> list[LeftOut]:
        """Write the files of all allowed submodules, as the workspace's branch records them.

        Files in their folders that an agent changed are restored, and untracked ones that match the
        patterns `steering` are removed. Call it while the agent is at rest. Returns the submodules
        that are left out; an empty list if the project allows no submodules. Raises `GitFailure`.
        """
        if not self.allowed:
            return []
        head = workspace.head()
        if head is None or not mirror.contains(head):
            head = mirror.take(workspace)
        left_out: list[LeftOut] = []
        waiting = [(mirror.path, head, mirror.url, PurePosixPath(), 1)]
        for done in range(_MOST):
            if not waiting:
                break
            repository, commit, url, above, level = waiting.pop()
            for one in _recorded(repository, commit):
                where = str(above / one.path)
                if why := _unfit(one) or ("too many levels" if level > _LEVELS else ""):
                    left_out.append(LeftOut(one.path, why))
                elif not (pinned := _pinned(repository, commit, one.path)):
                    left_out.append(LeftOut(where, "the commit records no submodule there"))
                elif (source := self._allowed(one.url, url)) is None:
                    left_out.append(LeftOut(where, f"{one.url} is not allowed", True))
                elif done + len(waiting) >= _MOST:
                    left_out.append(LeftOut(where, f"there are more than {_MOST}"))
                else:
                    store = self._fetched(source, pinned)
                    if workspace.fill(where, store, pinned, steering):
                        waiting.append((store, pinned, source.url, above / one.path, level + 1))
                    else:
                        left_out.append(LeftOut(where, "something else is in its place"))
        return left_out

    def _allowed(self, url: str, parent: str) -> AllowedRepository | None:
        """Return the allowed repository that `url` means, or None.

        `url` is from the `.gitmodules` of the repository with the URL `parent`.
        """
        if url.startswith(("./", "../")):
            url = _absolute(url, parent)
        means = _identity(url)
        same = (
            one for one in self.allowed if one.url == url or (means and means == _identity(one.url))
        )
        return next(same, None)

    def _fetched(self, source: AllowedRepository, commit: str) -> Path:
        """Return the bot's repository of `source`, with the commit fetched without its history."""
        name = hashlib.sha256(source.url.encode()).hexdigest()[:16]
        store = self.folder / f"{name}.git"
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (store / "HEAD").is_file():
                remove_tree(store)  # A crash left it half made.
                init(store)
            kind = git(store, "cat-file", "--batch-check", stdin=f"{commit}^{{commit}}\n")
            if kind.endswith(" missing\n"):
                fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1")
                with_remote(store, source.url, source.password(), *fetch, source.url, commit)
        return store


def _recorded(repository: Path, commit: str) -> Iterator[_Recorded]:
    """Yield the submodules in a commit's `.gitmodules`, or none without that file."""
    entry = git(repository, "ls-tree", commit, "--", _FILE).split()
    if not entry or entry[1] != "blob" or entry[0] == "120000":
        return
    if int(git(repository, "cat-file", "-s", entry[2])) > _FILE_BYTES:
        words = f"{_FILE} has more than {_FILE_BYTES} bytes"
        raise GitFailure("config", str(repository), words, "make it smaller")
    # Git reads the files that a blob includes, at any absolute path; this option prevents it.
    listed = git(repository, "config", "--no-includes", "--blob", entry[2], "--null", "--list")
    found: dict[str, dict[str, str]] = {}
    for line in listed.split("\0"):
        key, _, value = line.partition("\n")
        section, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        if section == "submodule" and last in ("path", "url"):
            found.setdefault(name, {})[last] = value
    for name, values in found.items():
        yield _Recorded(name, values.get("path", ""), values.get("url", ""))


def _unfit(one: _Recorded) -> str:
    """Return why the name, path or URL in an entry of `.gitmodules` is refused; empty if none is.

    The rules are those of git's `fsck` (gitmodulesName, gitmodulesUrl, gitmodulesPath); paths and
    names must also be valid for files in a checkout.
    """
    for what, text in (("name", one.name), ("path", one.path), ("URL", one.url)):
        if not text or not text.isprintable() or text.startswith("-"):
            return f"its {what} {text!r} is refused"
    parts = re.split(r"[/\\]", one.path)
    if any(part.casefold().rstrip(". ") in ("", ".git", "git~1") for part in parts):
        return f"its path {one.path!r} is refused"
    if ".." in re.split(r"[/\\]", one.name):
        return f"its name {one.name!r} is refused"
    return ""


def _pinned(repository: Path, commit: str, path: str) -> str:
    """Return the commit of the submodule at a path; empty if there is no submodule."""
    entry = git(repository, "ls-tree", commit, "--", path).split()
    return entry[2] if len(entry) > 2 and entry[:2] == ["160000", "commit"] else ""


def _absolute(url: str, parent: str) -> str:
    """Resolve a relative URL as git does."""
    base = parent.rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("../"):
            base = base.rpartition("/")[0]
        url = url.partition("/")[2]
    return f"{base}/{url}"


def _identity(url: str) -> tuple[str, str] | None:
    """Return a URL's server and path; None if it has `..` or `::`, or is not of HTTP or SSH."""
    if match := _HTTP.fullmatch(url):
        host, path = match[1], match[2]
    elif match := _SSH.fullmatch(url):
        host, path = match[1] or match[3], match[2] or match[4]
    else:
        return None
    if ".." in path.split("/") or "::" in url:
        return None
    return host.casefold(), path.rstrip("/").removesuffix(".git").casefold()
