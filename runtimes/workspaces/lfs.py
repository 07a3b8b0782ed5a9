"""Git LFS: the bot fetches LFS files for workspaces, and uploads those of pushed commits.

A commit contains a small file, the pointer, in place of each LFS file. The bot keeps the LFS files
in the folder `lfs/objects` of its mirror of the project. A session's repository borrows git's
objects from the mirror or, if the workspace is a clone, from the clone's own `origin`, which is a
copy of the mirror. For a clone, the bot also puts the LFS files into `lfs/objects` of that copy.
git-lfs in a session needs neither a network nor a password, because it also searches `lfs/objects`
of the repository from which git borrows. On files that an agent wrote, the bot runs git-lfs only in
a sandbox (`session_git`).
https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from runtimes.files import open_regular
from runtimes.workspaces.git import GitFailure, ask, git
from runtimes.workspaces.lfs_checkout import POINTER_BYTES
from runtimes.workspaces.lfs_client import LfsClient, LfsObject, place_of, save
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.push_checks import finds_in, parts
from runtimes.workspaces.worktree import Worktree

_STORE = "lfs/objects"
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n"
)
_LISTED_BYTES = 512 * 1024**2
_CHUNK = 1024 * 1024
_MEGABYTE = 1_000_000


class TooManyLfsFiles(Exception):
    """The LFS files of a checkout are larger, together, than is allowed."""

    def __init__(self, megabytes: int) -> None:
        self.megabytes = megabytes  #: Their size, rounded up.
        super().__init__(f"{megabytes} MB of LFS files")


@lru_cache(maxsize=16)  # Most sessions begin at the newest commit of one branch.
def uses_lfs(mirror: Mirror, commit: str) -> bool:
    """Whether a commit in the mirror has files of LFS, as its `.gitattributes` say."""
    where = (commit, "--", ":(glob)**/.gitattributes")
    return ask(mirror.path, "grep", "--quiet", "-e", "filter=lfs", *where) is not None


def fetch(
    mirror: Mirror, workspace: Worktree, most_mb: int, *commits: str, write: bool = True
) -> list[LfsObject]:
    """Fetch the LFS files of the workspace's branch and of `commits` for git-lfs in the session.

    With `write`, pointers in the checkout are replaced by their files; the agent must be at rest.
    Files that a sparse checkout leaves out are not fetched. Returns the files that neither the
    mirror nor the server has. Raises `GitFailure`, and `TooManyLfsFiles` for more than `most_mb`
    megabytes (of 1,000,000 bytes).
    """
    head = workspace.head()
    if head is None or not mirror.contains(head):
        head = mirror.take(workspace)
    using = [commit for commit in (head, *commits) if uses_lfs(mirror, commit)]
    if not using:
        return []
    collect(mirror, workspace, head, most_mb)
    files = {commit: [*_files_of(mirror, workspace, commit)] for commit in using}
    wanted = {one.oid: one for listed in files.values() for one in listed}.values()
    size = sum(one.size for one in wanted)
    if size > most_mb * _MEGABYTE:
        raise TooManyLfsFiles(-(-size // _MEGABYTE))
    missing = []
    if lacking := [one for one in wanted if not _has(mirror, one)]:
        client = LfsClient(mirror.url, mirror.password())
        missing = client.download(lacking, _made(mirror.path / _STORE))
    if workspace.origin != mirror.path:
        _lend(mirror.path / _STORE, _made(workspace.origin / _STORE), wanted)
    if write:
        workspace.write_lfs_files([one.path for one in files.get(head, ())])
    return missing


def _files_of(mirror: Mirror, workspace: Worktree, commit: str) -> Iterator[LfsObject]:
    """Yield the LFS files of a commit that the workspace's checkout should have."""
    how = ("-r", "-z", "--format=%(objectname) %(objecttype) %(objectsize) %(path)")
    with tempfile.NamedTemporaryFile(dir=mirror.path, prefix="tmp_") as file:
        listed = Path(file.name)
        git(mirror.path, "ls-tree", *how, commit, into=listed, most=_LISTED_BYTES)
        found = {one.path: one for one in _pointers(mirror, listed, b"\0")}
    yield from map(found.__getitem__, workspace.in_checkout(found))


def holding(mirror: Mirror, commit: str, finds: Callable[[str], bool]) -> str:
    """Return the path of an LFS file that a push of `commit` publishes and `finds` is true of.

    `finds` gets parts of the file's content as text. The path is empty if there is no such file.
    Files that the mirror does not have are not examined.
    """
    for one in _unpublished(mirror, commit):
        if _has(mirror, one):
            with place_of(one, mirror.path / _STORE).open("rb") as content:
                if any(finds_in(part, finds) for part in parts(content)):
                    return one.path
    return ""


def collect(mirror: Mirror, workspace: Worktree, commit: str, most_mb: int) -> None:
    """Copy the LFS files of a session's new commits from its workspace into the mirror.

    The files are hostile input: a copy is kept only if it has the size and the checksum that the
    commit names. At most `most_mb` megabytes are copied. All other files are skipped without an
    error. Raises `GitFailure`.
    """
    left = most_mb * _MEGABYTE
    for one in _unpublished(mirror, commit):
        left -= one.size
        if left < 0 or _has(mirror, one):
            continue
        for store in workspace.lfs_stores:
            try:
                with open_regular(place_of(one, store)) as content:
                    save(one, _made(mirror.path / _STORE), _pieces(content), workspace.session)
                break
            except (OSError, GitFailure):
                continue


def upload(mirror: Mirror, commit: str) -> list[LfsObject]:
    """Upload the LFS files of the commits that a push of `commit` publishes, before that push.

    Returns the files that neither the bot nor the server has. Idempotent. Raises `GitFailure`.
    """
    objects = _unpublished(mirror, commit)
    if not objects:
        return []
    home = mirror.fork or mirror
    return LfsClient(home.url, home.password()).upload(objects, _made(mirror.path / _STORE))


def _unpublished(mirror: Mirror, commit: str) -> list[LfsObject]:
    """Return the LFS files of the commits that a push of `commit` publishes.

    Returns none if `commit` itself does not use LFS.
    """
    if not uses_lfs(mirror, commit):
        return []
    objects = git(mirror.path, "rev-list", "--objects", commit, "--not", "--branches")
    shown = "--batch-check=%(objectname) %(objecttype) %(objectsize) %(rest)"
    with tempfile.NamedTemporaryFile(dir=mirror.path, prefix="tmp_") as file:
        listed = Path(file.name)
        git(mirror.path, "cat-file", shown, stdin=objects, into=listed, most=_LISTED_BYTES)
        return list({one.oid: one for one in _pointers(mirror, listed, b"\n")}.values())


def _pointers(mirror: Mirror, listed: Path, end: bytes) -> Iterator[LfsObject]:
    """Yield the LFS files whose pointers are among the files in `listed`.

    Each line of `listed` has an object's name, type, size and path, and ends with `end`.
    """
    small: dict[str, list[str]] = {}
    for line in listed.read_bytes().split(end):
        name, _, rest = line.decode(errors="surrogateescape").partition(" ")
        kind, _, rest = rest.partition(" ")
        size, _, path = rest.partition(" ")
        if kind == "blob" and int(size) in POINTER_BYTES:
            small.setdefault(name, []).append(path)
    if not small:
        return
    names = "".join(f"{name}\n" for name in small)
    with tempfile.NamedTemporaryFile(dir=mirror.path, prefix="tmp_") as contents:
        into = Path(contents.name)
        git(mirror.path, "cat-file", "--batch", stdin=names, into=into, most=_LISTED_BYTES)
        while header := contents.readline():
            name, _, size = header.decode().split()
            if match := _POINTER.fullmatch(contents.read(int(size) + 1)[:-1]):
                for path in small[name]:
                    yield LfsObject(match[1].decode(), int(match[2]), path)


def _has(mirror: Mirror, one: LfsObject) -> bool:
    return place_of(one, mirror.path / _STORE).is_file()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _lend(store: Path, to: Path, objects: Iterable[LfsObject]) -> None:
    """Link or copy the files of `objects` from `store` into `to`, the store of a clone's `origin`.

    Hard links are safe, because the session's programs can only read that folder. Files that
    `store` lacks are left out.
    """
    for one in objects:
        there, file = place_of(one, to), place_of(one, store)
        if file.is_file() and not there.is_file():
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file, there)
            except OSError:  # Another file system.
                with file.open("rb") as content:
                    save(one, to, _pieces(content), str(store))


def _pieces(content: BinaryIO) -> Iterator[bytes]:
    while piece := content.read(_CHUNK):
        yield piece
