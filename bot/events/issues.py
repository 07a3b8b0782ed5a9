"""`issues`: an issue was labelled, edited, closed, ..."""

import msgspec
from msgspec import Struct

from bot.events.base import Numbered, Outcome, Repository

#: The other actions (assigned, milestoned, pinned, ...) change nothing a session depends on.
_ACTIONS = frozenset(
    {
        "opened",
        "edited",
        "labeled",
        "unlabeled",
        "closed",
        "reopened",
        "deleted",
        "transferred",
    }
)


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    issue: Numbered


def read(body: bytes) -> Outcome:
    """Look at the issue again."""
    payload = msgspec.json.decode(body, type=_Payload)
    if payload.action not in _ACTIONS:
        return Outcome()
    return Outcome(touches=(payload.repository.touch("issue", payload.issue.number),))
