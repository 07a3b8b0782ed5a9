"""Who we are at GitHub: a token, or an App that gets itself a token for each repository."""

import re
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

import jwt
from githubkit import UnauthAuthStrategy
from githubkit.auth.app import AppAuth
from githubkit.core import GitHubCore
from msgspec import Struct

from bot.github.errors import Refused

#: A token is renewed this long before it ends, so that a push started with it can finish.
RENEW_EARLY = timedelta(minutes=10)


class Credentials(Struct, frozen=True, kw_only=True):
    """Either an App's id and private key (PEM), or a token. Never shown.

    Raises `ValueError` where a token holds spaces or line breaks: no HTTP header can carry it.
    """

    token: str = ""
    app_id: str = ""
    private_key: str = ""
    #: Whose installations of the App are used; empty: everybody's. Not looked at for a token.
    owners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse here, without showing it, what would fail later in a message that shows it."""
        if re.search(r"[^!-~]", self.token):
            raise ValueError("The GitHub token holds a space or a line break: paste it again.")

    def __repr__(self) -> str:
        """Which kind of credentials these are, and nothing of them."""
        kind = f"app {self.app_id}" if self.app_id else "token" if self.token else "none"
        return f"Credentials({kind})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Nothing for pretty printers, which would read the fields."""
        return []


class InstallationToken(Struct, frozen=True):
    """GitHub's answer to the question for an installation's token."""

    token: str
    expires_at: datetime


class AccessTokens:
    """The token for each repository. An App's are made on demand, once for all who wait for one."""

    def __init__(
        self,
        credentials: Credentials,
        http: GitHubCore[UnauthAuthStrategy],
        make: Callable[[str, str], InstallationToken],
        clock: Callable[[], datetime],
    ) -> None:
        self._credentials = credentials
        self._make = make  # Asks GitHub: (repository, the App's own token) -> token.
        self._clock = clock
        self._app = AppAuth(http, credentials.app_id, credentials.private_key)
        self._made: dict[str, InstallationToken] = {}
        self._locks: dict[str, Lock] = {}

    @property
    def is_app(self) -> bool:
        """Whether an App is used: it is where one is named, whatever token there is besides."""
        return bool(self._credentials.app_id)

    def of(self, repository: str) -> str:
        """The token to use for a repository (`owner/name`)."""
        if not self.is_app:
            return self._credentials.token
        if token := self._valid(repository):
            return token
        with self._locks.setdefault(repository, Lock()):
            if token := self._valid(repository):
                return token
            made = self._make(repository, self.app_jwt())
            self._made[repository] = made
            return made.token

    def app_jwt(self) -> str:
        """The short-lived token with which the App speaks for itself."""
        try:
            return self._app.get_jwt()
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise Refused(
                "Signing as the GitHub App failed: its private key cannot be read. "
                "Give the PEM file that GitHub made for the App.",
                401,
            ) from error

    def allows_owner(self, owner: str) -> bool:
        """Whether the App works for this account where it is installed."""
        allowed = {name.casefold() for name in self._credentials.owners}
        return not allowed or owner.casefold() in allowed

    def forget(self, repository: str) -> None:
        """Drop an App's token that GitHub does not take any more."""
        self._made.pop(repository, None)

    def git_header(self, repository: str) -> str:
        """The value of `http.<url>.extraHeader` with which git may fetch and push."""
        login = b64encode(f"x-access-token:{self.of(repository)}".encode()).decode()
        return f"Authorization: Basic {login}"

    def _valid(self, repository: str) -> str:
        made = self._made.get(repository)
        fresh = made is not None and made.expires_at - RENEW_EARLY > self._clock()
        return made.token if made is not None and fresh else ""
