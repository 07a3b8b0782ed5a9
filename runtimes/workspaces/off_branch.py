"""Finds an agent's commits that are not on its session's branch."""

import os
from collections.abc import Iterable

from lifecycle.model.facts import OffBranch
from runtimes.workspaces import refs
from runtimes.workspaces.git import git, readable
from runtimes.workspaces.session_git import SessionGit

#: The files beside a worktree's HEAD during a rebase, or while git applies patches.
_REBASES = ("rebase-merge", "rebase-apply")


def find(run: SessionGit, branch: str, tip: str, base: str) -> OffBranch | None:
    """Return the commits of a session that are not on `branch`; see `Worktree.off_branch`.

    `tip` is the commit of that branch, `base` is the commit at which the work begins.
    """
    here = refs.checked_out(run.repository, run.checkout.name)
    others = {}
    if here.branch != branch and here.commit:
        others = {here.commit: here.branch or ""}
    elif tip == base:
        found = refs.branches(run.repository)
        others = {sha: name for name, sha in found.items() if name != branch}
    newest = _newest(run, others, (tip, base)) if others.keys() - {tip} else ""
    if newest not in others:
        return None
    adoptable = newest == here.commit and _builds_on(run, newest, tip)
    # The name may be of any bytes: the agent may have made the ref's file itself.
    return OffBranch(head=newest, branch=readable(others[newest]), adoptable=adoptable)


def _newest(run: SessionGit, tips: Iterable[str], known: Iterable[str]) -> str:
    """Return the newest of `tips` that is neither on GitHub nor in `known`, or an empty string."""
    remote = git(run.origin, "for-each-ref", "--format=^%(objectname)", "refs/heads")
    wanted = "\n".join((*tips, *(f"^{sha}" for sha in known if sha), remote))
    shown = ("--max-count=1", "--ignore-missing", "--stdin")
    return run("rev-list", *shown, stdin=wanted).strip()


def _builds_on(run: SessionGit, commit: str, tip: str) -> bool:
    """Whether `tip` is an ancestor of a commit, and no rebase is in progress."""
    state = run.repository / "worktrees" / run.checkout.name
    if any(os.path.lexists(state / name) for name in _REBASES):
        return False
    return not run("rev-list", "--max-count=1", tip, f"^{commit}")
