"""`pull_request_review_comment`: somebody commented on a line of a pull request."""

from bot.events.base import Outcome, read_pull


def read(body: bytes) -> Outcome:
    """Look at the pull request again."""
    return read_pull(body)
