"""GitHub, as the rest of the bot sees it: reads, writes, merges, lost webhooks, git's header."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from bot.github.auth import Credentials
from bot.github.calls import Calls
from bot.github.files import Files
from bot.github.merging import Merges
from bot.github.read import Reads
from bot.github.redelivery import Hook
from bot.github.reports import Reports
from bot.github.reviews import Reviews
from bot.github.write import Writes


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
        self._calls = Calls(
            api_url, credentials, timeout_seconds, clock, write_interval_seconds, redact
        )
        self.places = self._calls.places
        self.read = Reads(self._calls)
        self.write = Writes(self._calls, self.read.me)
        self.reviews = Reviews(self._calls, self.read.me)
        self.reports = Reports(self._calls, self.read.me, self.write)
        self.merges = Merges(self._calls)
        self.files = Files(self._calls)
        self.hook = Hook(self._calls)

    def remembering(self) -> AbstractContextManager[None]:
        """Remember lists that are read in here, if the end of it is reached: keep them in here.

        What is read so again and has not changed costs nothing of what may be asked in an hour.
        """
        return self._calls.memory.remembering()

    def git_header(self, repository: str) -> str:
        """The value of `http.<url>.extraHeader` with which git may fetch and push. A secret."""
        return self._calls.tokens.git_header(repository)

    def close(self) -> None:
        """Close every connection."""
        self._calls.close()
