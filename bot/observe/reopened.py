"""Opening an issue or a pull request again: a person's command to bring the ended session back."""

import logging
from datetime import datetime

from bot.github.snapshots import IssueReading
from bot.github.write_access import WriteAccess
from bot.store import NewCommand, Session

log = logging.getLogger(__name__)


def command_to_restore(
    session: Session, reading: IssueReading, people: WriteAccess, now: datetime
) -> NewCommand | None:
    """The command of whoever opened what was read; None where that is unknown or may not write.

    Raises `GitHubFailure` where the permission cannot be read.
    """
    opened = reading.reopened
    if session.ended is None or opened is None:
        return None
    if not people.may_steer(session.repository, opened.actor, fresh=True):
        log.warning("%s: not restored: @%s may not write", session.id, opened.actor)
        return None
    number = reading.issue.number
    return NewCommand(
        key=f"reopened:{session.id}:{number}:{opened.at.isoformat()}",
        repository=session.repository,
        number=session.issue.number,
        kind="restore",
        actor=opened.actor,
        at=now,
    )
