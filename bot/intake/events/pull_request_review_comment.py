"""`pull_request_review_comment`: somebody commented on a line of a pull request."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Comment, Numbered, Outcome, Repository


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    pull_request: Numbered
    comment: Comment


def read(body: bytes) -> Outcome:
    """Look at the pull request again; a new comment may hold commands."""
    payload = msgspec.json.decode(body, type=_Payload)
    repository, number = payload.repository, payload.pull_request.number
    comment = payload.comment
    new = payload.action == "created"
    command = comment.said("line", comment.id, repository, number) if new else None
    return Outcome(refreshes=(repository.refresh("pull", number),), command=command)
