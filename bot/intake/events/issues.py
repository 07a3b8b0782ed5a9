"""`issues`: an issue was labelled, assigned, edited, closed, ..."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Number, Outcome, Repository, Text

#: The other actions (milestoned, pinned, locked, ...) change nothing a session depends on.
_ACTIONS = frozenset(
    {
        "opened",
        "edited",
        "labeled",
        "unlabeled",
        "assigned",
        "unassigned",
        "closed",
        "reopened",
        "deleted",
        "transferred",
    }
)


class _Issue(Text, frozen=True, kw_only=True):
    number: Number


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    issue: _Issue


def read(body: bytes) -> Outcome:
    """Look at the issue again; the text of a new one may hold commands."""
    payload = msgspec.json.decode(body, type=_Payload)
    if payload.action not in _ACTIONS:
        return Outcome()
    issue, repository = payload.issue, payload.repository
    new = payload.action == "opened"
    command = issue.said("issue", issue.number, repository, issue.number) if new else None
    return Outcome(refreshes=(repository.refresh("issue", issue.number),), command=command)
