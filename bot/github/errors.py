"""Failures of GitHub requests, by their remedy: waiting, refreshing, or a person's help."""

from datetime import datetime

EVERYTHING = ""  #: The resource of a rate limit that applies to all requests.


class GitHubFailure(Exception):
    """A request failed; the message says which, why, and the remedy."""


class TryLater(GitHubFailure):
    """GitHub cannot answer now: an outage, a timeout, a rate limit, an invalid response.

    A write may have taken effect nevertheless.
    """

    def __init__(self, message: str, at: datetime | None = None) -> None:
        super().__init__(message)
        self.at = at  #: When GitHub allows a retry; None if it does not say.


class Limited(TryLater):
    """A rate limit is exhausted; requests are held until `until`."""

    def __init__(self, message: str, until: datetime, resource: str = EVERYTHING) -> None:
        super().__init__(f"{message} The rate limit is used up until {until:%H:%M:%S} UTC.", until)
        self.until = until
        self.resource = resource  #: `core`, `graphql` or everything.


class NotInstalled(TryLater):
    """The App is suspended or not installed there. Work waits until a person installs it."""


class Refused(GitHubFailure):
    """GitHub refuses the request, and will refuse it again until a person changes something."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Conflicted(Refused):
    """GitHub refuses because the pull request has changed since it was read: read it again."""
