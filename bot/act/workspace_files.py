"""Files in workspaces that git does not have: the operator's, and those of submodules."""

import logging
from collections.abc import Mapping, Sequence

from bot.act.results import Rejected
from bot.store import Session
from bot.system.locations import Locations
from bot.text import messages
from lifecycle.model.status import Reason
from runtimes.workspaces.env_files import place_env_files
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
    """Write all such files into a workspace before a run; return why the run may not start.

    `base`: the commit that the session's work begins at. `env_files`: texts of the operator's, by
    their names. `steering`: patterns of files that no agent may leave for the next run. The log
    says what is left out.
    """
    mirror = locations.mirror(session.project)
    if env_files:
        if tracked := mirror.tracked(base, env_files):
            return Rejected(messages.tracked_env_files(tracked), Reason.SPAWN_FAILED)
        place_env_files(workspace, env_files)
    for one in locations.submodules_of(session.project).fill(mirror, workspace, steering):
        _log.warning("%s: no submodule at %r: %s", session.id, one.path, one.why)
    return None
