"""`pull_request`: a pull request was opened, pushed to, merged, ..."""

from bot.intake.events.base import Outcome, read_pull


def read(body: bytes) -> Outcome:
    """Look at the pull request again."""
    return read_pull(body)
