"""Prepares a session's workspace before a run, from the commits in the project's mirror."""

from collections.abc import Callable, Sequence

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.refs import is_sha
from runtimes.workspaces.repositories import remove_locks
from runtimes.workspaces.worktree import Worktree


def prepare(
    mirror: Mirror,
    workspace: Worktree,
    base: str,
    run: int = 0,
    may_make: Callable[[], bool] = lambda: True,
) -> str | None:
    """Make the session's workspace ready, for work based on `base`: a branch of GitHub or a commit.

    A complete workspace is kept; if `may_make` allows, stale locks of git are removed from it, and
    the `origin` of a clone is updated. A missing or damaged workspace is made again: what is left
    of it is preserved as the work of `run`, and the branch begins at the session's known work,
    whether pushed, fetched or preserved. Without known work, it begins at `base`. Safe to repeat.

    Returns the commit on which the work is based, also for a workspace that was kept. Returns None
    only if `may_make`, called right before a workspace is made, forbade it, or if another bot had
    just made the workspace. Raises `GitFailure`.
    """
    at = base if is_sha(base) else mirror.head_of(base)
    if at is None:
        remedy = "set the project's base-branch to one that exists on GitHub and has a commit"
        raise GitFailure("worktree add", workspace.session, f"no branch {base}", remedy)
    workspace.repair()
    if workspace.whole:
        if not workspace.base():
            workspace.set_base(mirror.merge_base(at, mirror.take(workspace)))
        if may_make():
            remove_locks(workspace.repository)
            workspace.update_origin(at)
        return workspace.base()
    mirror.preserve(workspace, run)
    start, files = mirror.known_work(workspace.session, workspace.branch) or (at, None)
    based_on = mirror.merge_base(at, start)
    if not workspace.create(start, files, based_on, may_make):
        return None
    workspace.update_origin(at)
    return based_on


def hold_files(
    mirror: Mirror, workspace: Worktree, base: str, patterns: Sequence[str], run: int
) -> Sequence[str]:
    """Restore, before a run begins, the files that match `patterns`. Such files steer agents.

    The files get their versions at the merge base of the session's branch and `base`, a commit of
    the base branch. Their uncommitted changes are preserved first, as work of the previous run,
    whose number is `run`. Safe to repeat. Returns the files whose versions on the session's branch
    differ from the restored ones. Raises `GitFailure`.
    """
    if not patterns:
        return []
    head = workspace.head()
    if head is None or not mirror.contains(head):
        head = mirror.take(workspace)
    if workspace.hold(mirror.merge_base(base, head), patterns):
        mirror.preserve(workspace, run)
    return workspace.put_back(head)
