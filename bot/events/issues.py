"""`issues`: an issue was labelled, assigned, edited, closed, ..."""

from datetime import datetime

import msgspec
from msgspec import Struct

from bot.events.base import Number, Outcome, RawComment, Repository, User

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


class _Issue(Struct, frozen=True):
    number: Number
    created_at: datetime | None = None
    body: str | None = None
    user: User | None = None  #: null: the account was deleted.


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    issue: _Issue


def read(body: bytes) -> Outcome:
    """Look at the issue again; the text of a new one may hold commands."""
    payload = msgspec.json.decode(body, type=_Payload)
    if payload.action not in _ACTIONS:
        return Outcome()
    touches = (payload.repository.touch("issue", payload.issue.number),)
    return Outcome(touches=touches, command=_command(payload))


def _command(payload: _Payload) -> RawComment | None:
    issue = payload.issue
    if payload.action != "opened" or issue.user is None or issue.created_at is None:
        return None
    return RawComment(
        id=None,
        repository=payload.repository.full_name,
        repository_id=payload.repository.id,
        number=issue.number,
        author=issue.user.login,
        author_type=issue.user.type,
        body=issue.body or "",
        at=issue.created_at,
    )
