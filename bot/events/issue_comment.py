"""`issue_comment`: somebody commented on an issue or in a pull request's conversation."""

from datetime import datetime

import msgspec
from msgspec import Raw, Struct

from bot.events.base import Number, Outcome, RawComment, Repository, User


class _Comment(Struct, frozen=True):
    id: Number
    created_at: datetime
    body: str | None = None
    user: User | None = None  #: null: the account was deleted.


class _Issue(Struct, frozen=True):
    number: Number
    pull_request: Raw = Raw(b"null")


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    issue: _Issue
    comment: _Comment


def read(body: bytes) -> Outcome:
    """Look at the issue or pull request again; a new comment may hold commands.

    What an edit says is never a command: one that was carried out could not be taken back.
    """
    payload = msgspec.json.decode(body, type=_Payload)
    issue, comment = payload.issue, payload.comment
    kind = "issue" if bytes(issue.pull_request) == b"null" else "pull"
    command = None
    if payload.action == "created" and comment.user is not None:
        command = RawComment(
            id=comment.id,
            repository=payload.repository.full_name,
            repository_id=payload.repository.id,
            number=issue.number,
            author=comment.user.login,
            author_type=comment.user.type,
            body=comment.body or "",
            at=comment.created_at,
        )
    return Outcome(touches=(payload.repository.touch(kind, issue.number),), command=command)
