"""How a call to GitHub can fail, sorted by what helps: waiting, looking again, or a person."""

from datetime import datetime

EVERYTHING = ""  #: The resource of a limit that is none of one alone.


class GitHubFailure(Exception):
    """A call to GitHub failed; the message says what was asked, what came back and the remedy."""


class TryLater(GitHubFailure):
    """GitHub could not answer now: an outage, a time-out, a rate limit, an answer nobody can read.

    Nothing is known of what was asked. A write may have happened all the same.
    """

    def __init__(self, message: str, at: datetime | None = None) -> None:
        super().__init__(message)
        self.at = at  #: When GitHub said to come back, or None where it did not say.


class Limited(TryLater):
    """A rate limit is used up: nothing more is to be asked before `until`."""

    def __init__(self, message: str, until: datetime, resource: str = EVERYTHING) -> None:
        super().__init__(f"{message} The rate limit is used up until {until:%H:%M:%S} UTC.", until)
        self.until = until
        self.resource = resource  #: `core`, `graphql` or everything.


class NotInstalled(TryLater):
    """The App is suspended or not installed there: all waits until a person brings it back."""


class Refused(GitHubFailure):
    """GitHub said no, and will say no again until a person changes something."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Conflicted(Refused):
    """A merge was refused because the pull request is not what was judged: look at it again."""
