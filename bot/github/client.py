"""GitHub, as the rest of the bot sees it: reads, writes, merges, lost webhooks, git's header."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from bot.github.auth import Credentials
from bot.github.calls import ApiClient
from bot.github.files import DefaultBranchFiles
from bot.github.merging import PullMerger
from bot.github.read import GitHubReader
from bot.github.redelivery import AppWebhook
from bot.github.reports import StatusReporter
from bot.github.reviews import ReviewReplies
from bot.github.write import GitHubWriter


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


class GitHub:
    """One GitHub (github.com or an Enterprise server) and one account on it.

    `api_url` is `https://api.github.com` or `https://HOST/api/v3`. `timeout_seconds` bounds
    connecting, sending, the wait for an answer, and the answer's body, each. Two changes of one
    installation are `write_interval_seconds` apart: a later one waits its turn, at most twice as
    long, and no method repeats what it asked. `redact` takes secrets out of what is sent. All may
    be called from any thread.
    """

    def __init__(
        self,
        api_url: str,
        credentials: Credentials,
        *,
        timeout_seconds: float = 30.0,
        write_interval_seconds: float = 0.0,
        redact: Callable[[object], object] = lambda body: body,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._calls = ApiClient(
            api_url, credentials, timeout_seconds, clock, write_interval_seconds, redact
        )
        self.aliases = self._calls.aliases
        self.read = GitHubReader(self._calls)
        self.write = GitHubWriter(self._calls, self.read.me)
        self.reviews = ReviewReplies(self._calls, self.read.me)
        self.reports = StatusReporter(self._calls, self.read.me, self.write)
        self.merges = PullMerger(self._calls)
        self.files = DefaultBranchFiles(self._calls)
        self.hook = AppWebhook(self._calls)

    def caching(self) -> AbstractContextManager[None]:
        """Remember lists that are read in here, if the end of it is reached: keep them in here.

        What is read so again and has not changed costs nothing of what may be asked in an hour.
        """
        return self._calls.etag_cache.caching()

    def git_header(self, repository: str) -> str:
        """The value of `http.<url>.extraHeader` with which git may fetch and push. A secret."""
        return self._calls.tokens.git_header(repository)

    def close(self) -> None:
        """Close every connection."""
        self._calls.close()
