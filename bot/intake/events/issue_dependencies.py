"""`issue_dependencies`: an issue waits for another one, or does so no more."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Numbered, Outcome, Repository


class _Payload(Struct, frozen=True):
    repository: Repository  #: Of the blocked issue, unless `blocked_issue_repo` says another.
    blocked_issue: Numbered | None = None
    blocked_issue_repo: Repository | None = None


def read(body: bytes) -> Outcome:
    """Look at the issue that waits again; for the one it waits for, nothing changes."""
    payload = msgspec.json.decode(body, type=_Payload)
    if payload.blocked_issue is None:
        return Outcome()
    repository = payload.blocked_issue_repo or payload.repository
    return Outcome(refreshes=(repository.refresh("issue", payload.blocked_issue.number),))
