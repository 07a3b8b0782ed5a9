"""Writes packs in a session, and imports such packs, which may be hostile, into the mirror.

An imported pack is examined in a folder of its own, which git reads as further objects of the
repository. A refused pack leaves nothing behind, as with git's own `receive-pack`.
"""

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
_REMEDY = "have the agent remove it from its commits"


def write_pack(
    run: Callable[..., str], commit: str, have: Collection[str], into: Path, most: int
) -> None:
    """Write the objects of a commit to a file; see `Worktree.pack`. `run` runs git in a sandbox."""
    kinds = run("cat-file", "--batch-check", stdin="\n".join((*have, "")))
    known = [line.split()[0] for line in kinds.splitlines() if " commit " in line]
    wanted = "".join(f"{line}\n" for line in (commit, *(f"^{sha}" for sha in known)))
    command = ("pack-objects", "--revs", "--thin", "--stdout", "--delta-base-offset", "-q")
    run(*command, stdin=wanted, into=into, most=most, seconds=NETWORK_SECONDS)


def import_pack(repository: Path, pack: Path) -> None:
    """Import a pack. Its objects are checked as `fetch` with `fsckObjects` does.

    Fewer than 100 objects become loose objects. Raises `GitFailure`, also for more than 5,000,000
    objects, and for an object of more than `FILE_BYTES`.
    """
    with pack.open("rb") as opened:
        count = int.from_bytes(opened.read(12)[8:])
    if count > _MOST_OBJECTS:
        raise GitFailure("index-pack", str(repository), f"it has {count} objects", _REMEDY)
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
        _check_sizes(repository, index, env)
        if count < _FEW_OBJECTS:
            git(repository, "unpack-objects", "-q", stdin=index.with_suffix(".pack"))
            return
        (objects / "pack").mkdir(exist_ok=True)
        for file in sorted(checked.iterdir(), key=lambda file: file == index):
            file.rename(objects / "pack" / file.name)  # The index last: git looks for it.


def _check_sizes(repository: Path, index: Path, env: dict[str, str]) -> None:
    """Raise `GitFailure` if an object in a pack has more than `FILE_BYTES`."""
    listed = git(repository, "show-index", stdin=index)
    names = "".join(f"{line.split()[1]}\n" for line in listed.splitlines())
    shown = "--batch-check=%(objectsize) %(objectname)"
    for line in git(repository, "cat-file", shown, stdin=names, env=env).splitlines():
        size, name = line.split()
        if int(size) > FILE_BYTES:
            words = f"the object {name} has {int(size) / 1e9:.1f} GB"
            raise GitFailure("index-pack", str(repository), words, _REMEDY)
