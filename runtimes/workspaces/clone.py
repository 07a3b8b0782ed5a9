"""Makes and updates the repository that a clone has as its `origin`.

It has GitHub's branches as they are in the mirror, and belongs to one session: its programs need no
path of another repository, and see neither work nor objects of other sessions. They can only read
it, and their own repository borrows its objects.

With a limit of depth it is shallow (gitglossary(7)). Its boundary does not move, so that the agent
can fetch from it with the same boundary in its own repository.
"""

from collections.abc import Sequence
from pathlib import Path

from runtimes.workspaces.git import NETWORK_SECONDS, ask, git, init
from runtimes.workspaces.repositories import SHALLOW, remove_tree

_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
_HEADS = "+refs/heads/*:refs/heads/*"


def update(origin: Path, mirror: Path, commits: Sequence[str], depth: int) -> None:
    """Have `origin` contain the branches and `commits` of the mirror; make it if it is missing.

    A new one has the last `depth` commits of each; 0: all of them. It gets the whole history if the
    merge base of the first of `commits` with another one would be missing. Raises `GitFailure`.
    """
    made = origin.is_dir()
    at = origin if made else origin.with_name(f"{origin.name}.making")
    if not made:
        remove_tree(at)
        init(at)
    limit = (f"--depth={depth}",) if depth and not made else ()
    _fetch(at, "--prune", *limit, str(mirror), _HEADS, *commits)
    for other in commits[1:]:
        if (at / SHALLOW).is_file() and not _has_merge_base(at, mirror, commits[0], other):
            # `--deepen` reaches no commit that is on no branch (measured with git 2.39).
            _fetch(at, "--unshallow", str(mirror), _HEADS, *commits)
    if not made:
        at.rename(origin)


def _has_merge_base(origin: Path, mirror: Path, one: str, other: str) -> bool:
    return ask(origin, "merge-base", one, other) == ask(mirror, "merge-base", one, other)


def _fetch(origin: Path, *args: str) -> None:
    git(origin, *_FETCH, *args, protocol="file", seconds=NETWORK_SECONDS)
