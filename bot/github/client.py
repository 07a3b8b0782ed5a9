"""Combines reads, writes and the password for git into the GitHub client that the bot uses."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TypeVar

from bot.github.api_client import ApiClient
from bot.github.auth import Credentials
from bot.github.github_app import AppInstallations, AppWebhook
from bot.github.merging import PullMerger
from bot.github.reader import GitHubReader
from bot.github.reports import StatusReporter
from bot.github.repository_setup import RepositorySetup
from bot.github.reviews import ReviewReplies
from bot.github.roles import RoleReader
from bot.github.writer import GitHubWriter
from bot.system.clock import Clock, utc_now

T = TypeVar("T")


class GitHub:
    """One GitHub (github.com or an Enterprise server) and one account on it. Thread-safe.

    `api_url` is `https://api.github.com` or `https://HOST/api/v3`. `timeout_seconds` limits each of
    these: connecting, sending, waiting for the response, and reading its body. Writes of one
    installation are `write_interval_seconds` apart. `redact` masks secrets in what is sent.
    """

    def __init__(
        self,
        api_url: str,
        credentials: Credentials,
        *,
        timeout_seconds: float = 30.0,
        write_interval_seconds: float = 0.0,
        redact: Callable[[object], object] = lambda body: body,
        clock: Clock = utc_now,
    ) -> None:
        self._api = ApiClient(
            api_url, credentials, timeout_seconds, clock, write_interval_seconds, redact
        )
        self.aliases = self._api.aliases
        self.read = GitHubReader(self._api)
        self.write = GitHubWriter(self._api)
        self.reviews = ReviewReplies(self._api)
        self.reports = StatusReporter(self._api)
        self.merges = PullMerger(self._api)
        self.hook = AppWebhook(self._api)
        self.installations = AppInstallations(self._api)
        self.setup = RepositorySetup(self._api)
        self.roles = RoleReader(self._api)

    def write_only_while(self, may_write: Callable[[], bool]) -> None:
        """Make writes raise `TryLater` while `may_write` returns False.

        Requests as the App itself, such as those for redelivery of a webhook, are not affected.
        """
        self._api.may_write = may_write

    def caching(self) -> AbstractContextManager[None]:
        """Return a context manager that caches REST responses: lists, and repositories read by id.

        Only reads inside the block by the same thread are cached, and none if the block raises.
        The requests are still sent, but unchanged responses do not count against the rate limit:
        https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
        """
        return self._api.etag_cache.caching()

    def convert_manifest(self, code: str, shape: type[T]) -> T:
        """Exchange a manifest's one-time code for the new App's keys, decoded as `shape`."""
        return self._api.convert_manifest(code, shape)

    def git_password(self, repository: str) -> str:
        """Return the password with which git fetches and pushes a repository.

        With an App, this may request a token, and so raise `TryLater` or `Refused`.
        """
        return self._api.tokens.of_git(repository)

    def server_time(self) -> datetime:
        """Return GitHub's current time, estimated from the time of its last response."""
        return self._api.transport.server_time()

    def answers(self, git_base: str = "") -> bool:
        """Whether GitHub answers at its API, and at `git_base` if that is an http or https URL.

        A refusal counts as an answer; a server error (5xx) only if it says when to retry. If the
        network drops packets silently, this takes as long as the time limit of a request.
        """
        urls = ("", git_base) if git_base.startswith("http") else ("",)
        return all(map(self._api.transport.answers, urls))

    def close(self) -> None:
        """Close every connection."""
        self._api.transport.close()
