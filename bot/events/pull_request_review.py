"""`pull_request_review`: somebody approved or asked for changes."""

from bot.events.base import Outcome, read_pull


def read(body: bytes) -> Outcome:
    """Look at the pull request again."""
    return read_pull(body)
