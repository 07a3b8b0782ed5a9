"""The refs of a repository an agent may write to, as plain files, without running git there.

Whatever an agent put there (a link, a pipe, a huge file, another format), the answer is a commit's
name or nothing, and nothing outside the repository is opened.
"""

import os
import re
import stat
from pathlib import Path

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_REF_BYTES = 256
_PACKED_BYTES = 4 * 1024 * 1024
_BRANCHES = 200  #: More local branches than this in one session are not looked at.


def is_sha(text: str) -> bool:
    """Whether this is a whole object name, and so safe to stand in a command line."""
    return _SHA.fullmatch(text) is not None


def check_branch(branch: str) -> str:
    """The same branch name, or `ValueError` where it could not stand in a path or a refspec.

    The rules are those of `git check-ref-format`, and no control character in any script.
    """
    parts = branch.split("/")
    bad = (
        re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{", branch)
        or not branch.isprintable()
        or branch.startswith("-")
        or any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    )
    if bad:
        raise ValueError(f"{branch!r} is no branch name git accepts")
    return branch


def check_session(session: str) -> str:
    """The same session name, or `ValueError` where it could not stand in a path and a ref."""
    if not _SESSION.fullmatch(session) or ".." in session or session.endswith((".", ".lock")):
        raise ValueError(f"{session!r} is no session name: letters, digits, `-`, `_`, `.`")
    return session


def commit_at(repository: Path, ref: str) -> str | None:
    """The commit a ref is at, or None where there is none that can be trusted."""
    if os.path.lexists(repository / ref):
        return _commit(_read(repository, ref, _REF_BYTES))
    return _packed(repository).get(ref)


class Tip:
    """The commit a ref is at, read again only where its file has changed."""

    def __init__(self, repository: Path, ref: str) -> None:
        self._repository, self._ref = repository, ref
        self._files = (str(repository / ref), str(repository / "packed-refs"))
        self._seen: tuple[int, ...] | None = None
        self._commit: str | None = None

    def commit(self) -> str | None:
        """As `commit_at`."""
        seen = next(filter(None, map(_identity, self._files)), None)
        if seen is None or seen != self._seen:
            self._commit = commit_at(self._repository, self._ref)
            self._seen = seen
        return self._commit


def _identity(path: str) -> tuple[int, ...] | None:
    """What differs as soon as a file was written, replaced or linked; None: it is not there."""
    try:
        at = os.lstat(path)
    except OSError:
        return None
    return (at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns)


def commits(repository: Path, worktree: str) -> list[str]:
    """Every commit a local branch, the worktree's own HEAD or a stash is at, each once."""
    refs = [f"worktrees/{worktree}/HEAD", "refs/stash"]
    for folder, _, names in os.walk(repository / "refs" / "heads"):
        refs += [str(Path(folder, name).relative_to(repository)) for name in names]
    found = [_commit(_read(repository, ref, _REF_BYTES)) for ref in refs[:_BRANCHES]]
    found += [sha for ref, sha in _packed(repository).items() if ref.startswith("refs/heads/")]
    # `refs/stash` is the last of several; its log has them all.
    log = _read(repository, "logs/refs/stash", _PACKED_BYTES) or ""
    found += [_commit(line.split(" ", 2)[1]) for line in log.splitlines() if line.count(" ") > 1]
    return [sha for sha in dict.fromkeys(found) if sha][:_BRANCHES]


def on(repository: Path, worktree: str) -> str | None:
    """The ref a worktree has checked out; None where it is at a commit or cannot be told."""
    text = (_read(repository, f"worktrees/{worktree}/HEAD", _REF_BYTES) or "").strip()
    return text.removeprefix("ref: ") if text.startswith("ref: ") else None


def put(repository: Path, name: str, data: bytes) -> None:
    """Write one of the repository's files anew, through no link. Raises `OSError`."""
    path = repository / name
    here = Path(os.path.realpath(repository.parent), repository.name)
    if Path(os.path.realpath(path.parent)) != (here / name).parent:
        raise OSError(f"{path.parent} is not the folder it should be: look at it by hand")
    fresh = repository.parent / "put"
    fresh.unlink(missing_ok=True)
    fresh.write_bytes(data)
    path.parent.mkdir(parents=True, exist_ok=True)  # Git drops folders whose refs it packed.
    fresh.replace(path)


def _packed(repository: Path) -> dict[str, str]:
    text = _read(repository, "packed-refs", _PACKED_BYTES) or ""
    pairs = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in "#^")
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and is_sha(pair[0])}


def _commit(text: str | None) -> str | None:
    """The commit in a ref's file. A symbolic ref is none: git makes no such branches by itself."""
    sha = (text or "").strip()
    return sha if is_sha(sha) else None


def _read(repository: Path, name: str, limit: int) -> str | None:
    """A small regular file's text, reached without following any link below the repository."""
    path = repository / name
    try:
        here = Path(os.path.realpath(repository.parent), repository.name)
        if Path(os.path.realpath(path.parent)) != (here / name).parent:
            return None
        # Without O_NONBLOCK a pipe in a ref's place would hold the bot for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = file.read(limit + 1)
    except (OSError, ValueError):
        return None
    return data.decode("ascii", "replace") if len(data) <= limit else None
