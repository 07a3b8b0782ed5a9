"""Replaces LFS pointers in a checkout by their files, with git-lfs in the session's sandbox."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from runtimes.files import read_bytes, replacing
from runtimes.workspaces.refs import replace_file
from runtimes.workspaces.session_git import INDEX_BYTES, SessionGit

#: The possible sizes of a pointer, in bytes: the specification says less than 1024.
POINTER_BYTES = range(100, 1024)


def write_files(
    git: SessionGit, names: Collection[str], status: Callable[[], Sequence[str]]
) -> None:
    """Write those LFS files among `names` that the checkout has as pointers.

    `status` updates the bot's index to the checked-out commit, and returns the entries of changed
    files. Those files are kept. Call this function while the agent is at rest. Raises `GitFailure`
    and `OSError`.
    """
    pointers = [name for name in names if _size(git.checkout / name) in POINTER_BYTES]
    if not pointers:
        return
    status()
    git.on_files("lfs", "checkout")
    changed = {entry[3:] for entry in status()}
    written = "".join(f"{name}\0" for name in pointers if name not in changed)
    # The agent's index has the sizes of the pointers: git would take the files for changed.
    index = f"worktrees/{git.checkout.name}/index"
    before = read_bytes(git.repository / index, INDEX_BYTES)
    with replacing(git.view / "index.lfs") as copy:
        copy.write(before)
    env = {"GIT_INDEX_FILE": str(git.view / "index.lfs")}
    git.on_files("update-index", "-z", "--stdin", env=env, stdin=written)
    replace_file(git.repository, index, read_bytes(git.view / "index.lfs", INDEX_BYTES))


def _size(file: Path) -> int:
    with suppress(OSError):
        return file.lstat().st_size
    return 0
