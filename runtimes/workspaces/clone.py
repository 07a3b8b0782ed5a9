"""Makes and updates the repository that a workspace of the kind `CLONE` has as its `origin`.

It has GitHub's branches as they are in the mirror, and belongs to one session, so that the
session's programs need no path of another repository, and see no work or objects of other sessions.
The programs can only read it; their own repository borrows its objects.

If the depth is limited, it is shallow (gitglossary(7)). Its boundary never moves, except that
`update` may fetch the whole history. So the agent's repository can have the same boundary and still
fetch from it.
"""

from collections.abc import Sequence
from pathlib import Path

from runtimes.workspaces.git import NETWORK_SECONDS, ask, git, init
from runtimes.workspaces.repositories import SHALLOW, remove_tree

_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
_HEADS = "+refs/heads/*:refs/heads/*"


def update(origin: Path, mirror: Path, commits: Sequence[str], depth: int) -> None:
    """Update `origin` to the branches and `commits` of the mirror; make it if it is missing.

    A new repository has the last `depth` commits of each, or all if `depth` is 0. A shallow
    repository gets the whole history if it lacks the merge base of `commits[0]` and another one of
    `commits`. Raises `GitFailure`.
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
