"""`pull_request_review`: somebody approved, asked for changes or commented."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Comment, Numbered, Outcome, Repository


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository
    pull_request: Numbered
    review: Comment


def read(body: bytes) -> Outcome:
    """Look at the pull request again; the text of a new review may hold commands."""
    payload = msgspec.json.decode(body, type=_Payload)
    repository, number = payload.repository, payload.pull_request.number
    review = payload.review
    new = payload.action == "submitted"
    command = review.said("review", review.id, repository, number) if new else None
    return Outcome(refreshes=(repository.refresh("pull", number),), command=command)
