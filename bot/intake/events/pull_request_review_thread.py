"""`pull_request_review_thread`: a review thread was resolved or opened again."""

from bot.intake.events.base import Outcome, read_pull


def read(body: bytes) -> Outcome:
    """Look at the pull request again."""
    return read_pull(body)
