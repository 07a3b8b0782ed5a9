"""Reads the refs of a repository that an agent writes to, as plain files, without running git.

Whatever the agent put there (a link, a pipe, a huge file, another format), the result is a commit's
SHA or None, and nothing outside the repository is opened.
"""

import os
import re
from itertools import islice
from pathlib import Path

from msgspec import Struct

from runtimes.files import is_about_file, read_bytes, replacing, walk

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_REF_BYTES = 256
_PACKED_BYTES = 4 * 1024 * 1024
_BRANCHES, _FILES = 200, 10_000  #: The most refs and files that are read.


def is_sha(text: str) -> bool:
    """Whether a text is a full object name (40 or 64 hex digits), so safe in a command line."""
    return _SHA.fullmatch(text) is not None


def check_branch(branch: str) -> str:
    """Return the branch name; raise `ValueError` if it is not safe in a path and a refspec.

    Refuses what git-check-ref-format(1) refuses, and also unprintable characters of Unicode and
    parts that end with a dot.
    """
    parts = branch.split("/")
    bad = (
        re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{", branch)
        or not branch.isprintable()
        or branch.startswith("-")
        or any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    )
    if bad:
        raise ValueError(f"{branch!r} is not a branch name that git accepts")
    return branch


def check_session(session: str) -> str:
    """Return the session name; raise `ValueError` if it is not safe in a path and a ref."""
    if not _SESSION.fullmatch(session) or ".." in session or session.endswith((".", ".lock")):
        raise ValueError(f"{session!r} is not a session name: use letters, digits, `-`, `_`, `.`")
    return session


def commit_at(repository: Path, ref: str) -> str | None:
    """Return the commit of a ref, or None if there is no such ref or it cannot be trusted.

    Raises `OSError` if the machine, not the file, is the cause.
    """
    if os.path.lexists(repository / ref):
        return _commit(_read(repository, ref, _REF_BYTES))
    return _packed(repository).get(ref)


class Tip:
    """Caches the commit of a ref until the ref's file changes; small, as there are many tips."""

    __slots__ = ("_commit", "_marker", "_ref", "_repository", "_seen")

    def __init__(self, repository: Path | str, ref: str, marker: str = "") -> None:
        """If a `marker` is given, there is no commit while that file is missing."""
        self._repository, self._ref, self._marker = str(repository), ref, marker
        self._seen: tuple[int, ...] | None = None
        self._commit: str | None = None

    def commit(self) -> str | None:
        """Return the ref's commit or None, as `commit_at` does. Raises `OSError`."""
        if self._marker and not os.path.lexists(self._marker):
            return None
        files = (f"{self._repository}/{self._ref}", f"{self._repository}/packed-refs")
        seen = next(filter(None, map(_identity, files)), None)
        if seen is None or seen != self._seen:
            self._commit = commit_at(Path(self._repository), self._ref)
            self._seen = seen
        return self._commit


def _identity(path: str) -> tuple[int, ...] | None:
    """Return a value that changes when a file is written or replaced; None if it does not exist."""
    try:
        at = os.lstat(path)
    except OSError:
        return None
    return (at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)


def commits(repository: Path, worktree: str) -> list[str]:
    """Return the commits that a worktree's HEAD, stashes and branches point to; at most 200."""
    refs = (f"worktrees/{worktree}/HEAD", "refs/stash")
    found = [_commit(_read(repository, ref, _REF_BYTES)) for ref in refs]
    found += branches(repository).values()
    # `refs/stash` is the latest stash; its log has all of them.
    log = _read(repository, "logs/refs/stash", _PACKED_BYTES) or ""
    found += [_commit(line.split(" ", 2)[1]) for line in log.splitlines() if line.count(" ") > 1]
    return [sha for sha in dict.fromkeys(found) if sha][:_BRANCHES]


class CheckedOut(Struct, frozen=True):
    """What a worktree's HEAD points to."""

    branch: str | None  #: If None, HEAD is detached or unreadable.
    commit: str | None  #: If None, there is none, or it cannot be read.


def checked_out(repository: Path, worktree: str) -> CheckedOut:
    """Return the branch and commit that a worktree has checked out."""
    text = (_read(repository, f"worktrees/{worktree}/HEAD", _REF_BYTES) or "").strip()
    ref = text.removeprefix("ref: refs/heads/")
    if ref == text:
        return CheckedOut(None, _commit(text))
    try:
        return CheckedOut(check_branch(ref), commit_at(repository, f"refs/heads/{ref}"))
    except ValueError:
        return CheckedOut(None, None)


def branches(repository: Path) -> dict[str, str]:
    """Return the commits of local branches by name; at most 200."""
    packed = _packed(repository).items()
    found = {ref: sha for ref, sha in packed if ref.startswith("refs/heads/")}
    for path, _ in islice(walk(repository / "refs" / "heads"), _FILES):
        ref = path.relative_to(repository).as_posix()
        if sha := _commit(_read(repository, ref, _REF_BYTES)):
            found[ref] = sha
    return {ref.removeprefix("refs/heads/"): sha for ref, sha in [*found.items()][:_BRANCHES]}


def replace_file(repository: Path, name: str, data: bytes) -> None:
    """Replace one of the repository's files without following links. Raises `OSError`."""
    # Git removes folders whose refs it packed, and takes no file with this suffix for a ref.
    with replacing(repository / name, ".lock") as file:
        file.write(data)


def _packed(repository: Path) -> dict[str, str]:
    text = _read(repository, "packed-refs", _PACKED_BYTES) or ""
    pairs = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in "#^")
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and is_sha(pair[0])}


def _commit(text: str | None) -> str | None:
    """Return the commit in the text of a ref's file; None without one, as in a symbolic ref."""
    sha = (text or "").strip()
    return sha if is_sha(sha) else None


def _read(repository: Path, name: str, limit: int) -> str | None:
    """Return the text of a small regular file, without following links below the repository.

    Returns None if the file is missing or cannot be trusted. Raises `OSError` if the machine, not
    the file, is the cause.
    """
    try:
        data = read_bytes(repository / name, limit + 1)
    except OSError as error:
        if is_about_file(error):
            return None
        raise  # Nothing is known then, least of all that there is no such ref.
    except ValueError:
        return None
    return data.decode("ascii", "replace") if len(data) <= limit else None


def branch_tip(root: Path, session: str, branch: str) -> Tip:
    """Return a `Tip` of a session's branch; it has no commit until the workspace is complete."""
    place = f"{root}/{check_session(session)}"
    ref = f"refs/heads/{check_branch(branch)}"
    return Tip(f"{place}/repository.git", ref, marker=f"{place}/made")


def modified(file: Path) -> int:
    """Return when a file was modified, in nanoseconds since 1970; 0 without such a file."""
    return file.stat().st_mtime_ns if file.is_file() else 0
