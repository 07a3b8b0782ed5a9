"""Workspace files from outside the repository: the operator's files, submodules and Git LFS."""

import logging
import shutil
from collections.abc import Mapping, Sequence

from bot.act.results import Rejected
from bot.store import Session
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from bot.system.secret_forms import looks_like_secret
from bot.text import messages
from lifecycle.model.status import Reason
from runtimes.workspaces import lfs
from runtimes.workspaces.env_files import place_env_files
from runtimes.workspaces.lfs_client import shown
from runtimes.workspaces.worktree import Worktree

_log = logging.getLogger(__name__)


def place_files(
    locations: Locations,
    session: Session,
    workspace: Worktree,
    base: str,
    *,
    env_files: Mapping[str, str],
    steering: Sequence[str],
) -> Rejected | None:
    """Write the operator's files, submodules and LFS files into a workspace before a run.

    Returns why the run may not start, or None. `base` is the commit at which the session's work
    begins. `env_files` maps the names of the operator's files to their texts. `steering` has the
    patterns of files with agent instructions, such as AGENTS.md; in the folders of submodules,
    untracked files that match them are removed. The log names the submodules and LFS files that are
    left out.
    """
    mirror = locations.mirror(session.project)
    if env_files:
        if tracked := mirror.tracked(base, env_files):
            return Rejected(messages.tracked_env_files(tracked), Reason.SPAWN_FAILED)
        place_env_files(workspace, env_files)
    for one in locations.submodules_of(session.project).fill(mirror, workspace, steering):
        _log.warning("%s: no submodule at %r: %s", session.id, one.path, one.why)
    try:
        fetch_lfs(locations, session, workspace)
    except LfsUnavailable as problem:
        return Rejected(str(problem), Reason.SPAWN_FAILED)
    return None


class LfsUnavailable(Exception):
    """The files of Git LFS cannot be fetched. The message says why, and names a remedy."""


def fetch_lfs(
    locations: Locations,
    session: Session,
    workspace: Worktree,
    *commits: str,
    write: bool = True,
) -> None:
    """Fetch the Git LFS files that belong to the workspace's branch and to `commits`.

    With `write`, the branch's LFS files are written into the checkout. Files that GitHub lacks are
    only logged. Raises `LfsUnavailable` and `GitFailure`.
    """
    most, mirror = _most(locations, session), locations.mirror(session.project)
    if not most or not workspace.has_lfs:
        return
    if not shutil.which("git-lfs"):
        head = workspace.head()
        if head and mirror.contains(head) and lfs.uses_lfs(mirror, head):
            raise LfsUnavailable(messages.without_git_lfs(session.repository))
        return
    try:
        missing = lfs.fetch(mirror, workspace, most, *commits, write=write)
    except lfs.TooManyLfsFiles as large:
        raise LfsUnavailable(messages.too_many_lfs_files(large.megabytes, most)) from None
    if missing:
        _log.warning("%s: GitHub lacks files of Git LFS: %s", session.id, shown(missing))


def upload_lfs(
    locations: Locations,
    session: Session,
    workspace: Worktree,
    head: str,
    redact: Redaction,
    *,
    checked: bool,
) -> Rejected | None:
    """Upload the LFS files of the commits that a push publishes; return a rejection or None.

    With `checked`, a file that seems to contain a secret also causes a rejection: a person should
    see it before the push. Raises `GitFailure`.
    """
    most, mirror = _most(locations, session), locations.mirror(session.project)
    if not most or not lfs.uses_lfs(mirror, head):
        return None
    keep_lfs(locations, session, workspace, head)
    if path := lfs.holding(mirror, head, redact.finds):
        return Rejected(messages.lfs_file_refused(path), Reason.PUSH_REFUSED)
    if checked and (path := lfs.holding(mirror, head, looks_like_secret)):
        why = messages.held_commits(large=(), foreign=(), removed=(), suspicious=[(head, path)])
        return Rejected(why, Reason.COMMITS_HELD)
    if missing := lfs.upload(mirror, head):
        return Rejected(messages.lfs_files_missing(shown(missing)), Reason.PUSH_REFUSED)
    return None


def keep_lfs(locations: Locations, session: Session, workspace: Worktree, commit: str) -> None:
    """Copy the Git LFS files of a session's new commits into the mirror.

    Skips files that are missing, damaged or beyond the project's limit. Raises `GitFailure`.
    """
    if most := _most(locations, session):
        lfs.collect(locations.mirror(session.project), workspace, commit, most)


def _most(locations: Locations, session: Session) -> int:
    return locations.projects[session.project].lfs_max_mb
