"""Authenticates the bot by a token, or as a GitHub App with a token for each repository.

https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec import Struct

from bot.github.errors import Refused
from bot.system.clock import Clock

#: A token is renewed this long before it expires, so that a push that uses it can finish.
RENEW_EARLY = timedelta(minutes=10)


#: GitHub recommends that a JWT begins a minute in the past, and allows ten minutes at most.
_JWT_AGE, _JWT_LASTS = timedelta(seconds=60), timedelta(minutes=8)


class Credentials(Struct, frozen=True, kw_only=True):
    """An App's id and private key (PEM), or a token. The repr shows no secret.

    Raises:
        ValueError: the token contains anything but visible ASCII characters.
    """

    token: str = ""
    app_id: str = ""
    private_key: str = ""
    #: The owners whose installations of the App are used, or all owners if empty. Ignored with a
    #: token.
    owners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an invalid token at once, because a later error message would show it."""
        if re.search(r"[^!-~]", self.token):
            raise ValueError(
                "The GitHub token has a space or another invalid character: paste it again."
            )

    def __repr__(self) -> str:
        """Return the kind of credentials, and an App's id, without secrets."""
        kind = f"app {self.app_id}" if self.app_id else "token" if self.token else "none"
        return f"Credentials({kind})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return no fields, so that pretty printers show no secret."""
        return []


class InstallationToken(Struct, frozen=True):
    """A token of one of the App's installations, and when it expires.

    https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app
    """

    token: str
    expires_at: datetime


class AccessTokens:
    """Returns the token for each repository; requests an App's tokens on demand. Thread-safe."""

    def __init__(
        self,
        credentials: Credentials,
        make: Callable[[str, bool], InstallationToken],
        server_time: Clock,
    ) -> None:
        """`make(repository, for_git)` requests a token; `server_time` returns GitHub's time."""
        self._credentials = credentials
        self._make = make
        self._server_time = server_time
        self._made: dict[tuple[str, bool], InstallationToken] = {}
        self._locks: dict[tuple[str, bool], Lock] = {}

    @property
    def is_app(self) -> bool:
        """Whether the bot authenticates as an App; an App takes precedence over a token."""
        return bool(self._credentials.app_id)

    def of(self, repository: str) -> str:
        """Return the token to use for a repository (`owner/name`)."""
        return self._of(repository, for_git=False)

    def of_git(self, repository: str) -> str:
        """Return git's token. For an App, it has only the permissions of `permissions_of_git`.

        It is weaker than the API's token, because more programs can see it: git is a separate
        process. Without an App, git and the API use the same token.
        """
        return self._of(repository, for_git=True)

    def _of(self, repository: str, *, for_git: bool) -> str:
        if not self.is_app:
            return self._credentials.token
        kind = repository, for_git
        with self._locks.setdefault(kind, Lock()):
            made = self._made.get(kind)
            if made is None or made.expires_at - RENEW_EARLY <= self._server_time():
                made = self._made[kind] = self._make(repository, for_git)
            return made.token

    def app_jwt(self) -> str:
        """Return a new JWT of the App itself, valid for 8 minutes by GitHub's clock.

        https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app

        Raises:
            Refused: the App's private key cannot be used.
        """
        now = self._server_time()
        claims = {"iss": self._credentials.app_id, "iat": now - _JWT_AGE, "exp": now + _JWT_LASTS}
        try:
            return jwt.encode(claims, self._credentials.private_key, algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise Refused(
                "Signing as the GitHub App failed: its private key cannot be read. "
                "Give the PEM file that GitHub made for the App.",
                401,
            ) from error

    def allows_owner(self, owner: str) -> bool:
        """Whether `owner` is one of the configured owners; always True if none are configured."""
        allowed = {name.casefold() for name in self._credentials.owners}
        return not allowed or owner.casefold() in allowed

    def forget(self, repository: str) -> None:
        """Drop the App's cached API token for a repository, because GitHub no longer accepts it."""
        self._made.pop((repository, False), None)


def key_fault(pem: str) -> str:
    """Return why a text cannot be the private key of a GitHub App (RSA, PEM); empty if it can."""
    try:
        key = load_pem_private_key(pem.encode(), None)
    except TypeError:
        return "it is encrypted"
    except (ValueError, UnsupportedAlgorithm):
        if "-----BEGIN " not in pem:
            return "it is not a PEM file"
        if " PUBLIC KEY-----" in pem or "-----BEGIN CERTIFICATE" in pem:
            return "it holds a public key"
        return "it is incomplete or damaged"
    return "" if isinstance(key, RSAPrivateKey) else "it is not an RSA key"


def permissions_of_git(granted: Mapping[str, str]) -> Mapping[str, str]:
    """Return the permissions of git's token: contents, and workflows if the App has it.

    Without the permission `workflows`, GitHub refuses pushes that change workflow files:
    https://docs.github.com/en/rest/authentication/permissions-required-for-github-apps
    """
    return {"contents": "write"} | {
        name: level for name, level in granted.items() if (name, level) == ("workflows", "write")
    }
