"""`issue_comment`: somebody commented on an issue or in a pull request's conversation."""

import msgspec
from msgspec import Raw, Struct

from bot.intake.events.base import Comment, Number, Outcome, Repository, User


class _Issue(Struct, frozen=True):
    number: Number
    pull_request: Raw = Raw(b"null")


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    issue: _Issue
    comment: Comment
    sender: User | None = None


def read(body: bytes) -> Outcome:
    """Look at the issue or pull request again; a new comment may hold commands.

    What an edit says is never a command: one that was carried out could not be taken back.
    """
    payload = msgspec.json.decode(body, type=_Payload)
    issue, comment, repository = payload.issue, payload.comment, payload.repository
    kind = "issue" if bytes(issue.pull_request) == b"null" else "pull"
    said = comment.said("comment", comment.id, repository, issue.number)
    by_author = payload.action == "edited" and payload.sender == comment.user
    return Outcome(
        refreshes=(repository.refresh(kind, issue.number),),
        command=said if payload.action == "created" else None,
        edited=said if by_author else None,
    )
