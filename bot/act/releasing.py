"""Releases a session's programs, workspace and home. Every step is safe to repeat."""

from bot.archive.archiver import Archive
from bot.store import Session
from bot.system.locations import Locations
from runtimes.host import home_of, run_name


def end_programs(locations: Locations, archive: Archive, session: Session, run: int) -> None:
    """End all processes of the runs up to this one, and archive their files.

    Their run tokens are deleted, so that no surviving process can use a model.
    """
    for number in range(1, run + 1):
        locations.host.runs.stop(run_name(session.id, number))
        locations.paths.run_token(session.id, number).unlink(missing_ok=True)
    archive.keep(session)


def release(locations: Locations, archive: Archive, session: Session, run: int) -> str | None:
    """End its programs, preserve its work in the mirror, remove its workspace and home.

    Returns the commit that holds what was preserved; None: nothing would have been lost.
    """
    end_programs(locations, archive, session, run)
    workspace = locations.workspace_of(session)
    kept = locations.mirror(session.project).preserve(workspace, run)
    workspace.remove()
    archive.pack(session.id)
    locations.host.records.remove(home_of(session.id))
    return kept
