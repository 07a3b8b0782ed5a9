"""Giving back what a session holds on this machine. Every step may be repeated after a crash."""

from bot.archive.archiver import Archive
from bot.store import Session
from bot.system.locations import Locations
from runtimes.workspaces.worktree import remove_tree


def end_programs(locations: Locations, archive: Archive, session: Session, run: int) -> None:
    """End the programs of all runs up to this one and all they started, and keep their words.

    Nothing of them can ask for a model any more.
    """
    for number in range(1, run + 1):
        locations.runtime.stop(locations.handle(session.id, number))
        locations.paths.run_token(session.id, number).unlink(missing_ok=True)
    archive.keep(session)


def release(locations: Locations, archive: Archive, session: Session, run: int) -> str | None:
    """End its programs, keep what would be lost in the mirror, remove workspace and home.

    Returns the commit that holds what was kept.
    """
    end_programs(locations, archive, session, run)
    workspace = locations.workspace(session.project, session.id, session.branch)
    kept = locations.mirror(session.project).preserve(workspace, run)
    workspace.remove()
    archive.pack(session.id)
    remove_tree(locations.paths.home(session.id))
    return kept
