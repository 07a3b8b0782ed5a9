"""Writes packs in a session, and imports such packs, which may be hostile, into the mirror.

An imported pack is examined in a folder of its own, which git reads as further objects of the
repository. A refused pack leaves nothing behind, as with git's own `receive-pack`.
"""

import re
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, git
from runtimes.workspaces.preservable import ALL_BYTES, FILE_BYTES

#: Larger packs are not imported. All work that may be preserved fits into a pack of this size.
PACK_BYTES = ALL_BYTES
_MOST_OBJECTS = 5_000_000
#: The most memory for unpacking, because deltas can turn a few bytes into gigabytes.
_MEMORY_BYTES = 4 * 1024**3
_FEW_OBJECTS = 100  #: `fetch.unpackLimit` of git.
#: Lines that the header of a commit has at most once. Of several, `git log` shows the last author,
#: the last committer and the first encoding, but libgit2 reads the first, the first and the last.
#: https://github.com/libgit2/libgit2/blob/main/src/libgit2/commit.c
_ONCE = re.compile(rb"^(?:author|committer|encoding) ", re.MULTILINE)
_HEADER_BYTES = 1024**2  #: The most of a commit's header, with the signed tags that it contains.
_REMEDY = "have the agent remove it from its commits"
_LESS = "have the agent leave generated files out of its commits"


def write_pack(
    run: Callable[..., str], commit: str, have: Collection[str], into: Path, most: int
) -> None:
    """Write the objects of a commit to a file; see `Worktree.pack`.

    `run` runs git in the session's sandbox.
    """
    kinds = run("cat-file", "--batch-check", stdin="\n".join((*have, "")))
    known = [line.split()[0] for line in kinds.splitlines() if " commit " in line]
    wanted = "".join(f"{line}\n" for line in (commit, *(f"^{sha}" for sha in known)))
    command = ("pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q")
    run(*command, stdin=wanted, into=into, most=most, seconds=NETWORK_SECONDS)


def import_pack(repository: Path, pack: Path) -> None:
    """Import a pack, after its objects were checked as `fetch` with `fsckObjects` does.

    Fewer than 100 objects become loose objects. Raises `GitFailure`, also for more than 5,000,000
    objects, for an object of more than `FILE_BYTES`, and for a commit with a header of more than
    1 MiB or with several authors, committers or encodings.
    """
    with pack.open("rb") as opened:
        count = int.from_bytes(opened.read(12)[8:])
    if count > _MOST_OBJECTS:
        words = f"the commits have {count:,} objects"
        raise GitFailure("index-pack", str(repository), words, _LESS)
    objects = repository / "objects"
    with tempfile.TemporaryDirectory(dir=objects, prefix="tmp_") as folder:
        env = {"GIT_OBJECT_DIRECTORY": folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)}
        # `--strict` checks every object, and that what it refers to is there.
        command = ("index-pack", "--stdin", "--fix-thin", "--strict")
        git(
            repository, *command, stdin=pack, env=env, seconds=NETWORK_SECONDS, memory=_MEMORY_BYTES
        )
        checked = Path(folder, "pack")
        [index] = checked.glob("*.idx")
        _check_objects(repository, index, env, Path(folder, "commits"))
        if count < _FEW_OBJECTS:
            git(repository, "unpack-objects", "-q", stdin=index.with_suffix(".pack"))
            return
        (objects / "pack").mkdir(exist_ok=True)
        for file in sorted(checked.iterdir(), key=lambda file: file == index):
            file.rename(objects / "pack" / file.name)  # The index last: git looks for it.


def _check_objects(repository: Path, index: Path, env: dict[str, str], into: Path) -> None:
    """Raise `GitFailure` for an object of more than `FILE_BYTES`, and for an ambiguous commit.

    A commit is ambiguous if git and GitHub may read its header differently; see `_ambiguity`.
    Writes the contents of all commits to the file `into`.
    """
    listed = git(repository, "show-index", stdin=index)
    names = "".join(f"{line.split()[1]}\n" for line in listed.splitlines())
    shown = "--batch-check=%(objectsize) %(objecttype) %(objectname)"
    commits = []
    for line in git(repository, "cat-file", shown, stdin=names, env=env).splitlines():
        size, kind, name = line.split()
        if int(size) > FILE_BYTES:
            words = f"the object {name} has {int(size) / 1e9:.1f} GB"
            raise GitFailure("index-pack", str(repository), words, _REMEDY)
        if kind == "commit":
            commits.append(f"{name}\n")
    batch = ("cat-file", "--batch")
    git(repository, *batch, stdin="".join(commits), env=env, into=into, most=PACK_BYTES)
    with into.open("rb") as file:
        while title := file.readline():
            name, _, size = title.decode().split()
            end = file.tell() + int(size) + 1
            if problem := _ambiguity(file.read(min(int(size), _HEADER_BYTES)), int(size)):
                words = f"the commit {name} has {problem}"
                raise GitFailure("index-pack", str(repository), words, _REMEDY)
            file.seek(end)


def _ambiguity(begin: bytes, size: int) -> str:
    """Return what git and GitHub may read differently in a commit of `size` bytes; mostly empty.

    `begin` has the commit's first bytes, at most `_HEADER_BYTES`.
    """
    header, blank, _ = begin.partition(b"\n\n")
    if not blank and size > len(begin):
        return f"a header of more than {_HEADER_BYTES} bytes"
    found = _ONCE.findall(header)
    repeated = next((line for line in found if found.count(line) > 1), b"")
    return f"more than one {repeated.decode().strip()}" if repeated else ""
