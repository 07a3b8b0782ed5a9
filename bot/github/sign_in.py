"""Signs people in with the GitHub App, to learn which GitHub account a browser's user has.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app

The protocol is OAuth 2 with PKCE, in two requests. The person's access token is used once, to read
their login, and then forgotten: for everything else the bot uses its own credentials. These
requests do not pass through `Transport`, because it masks secrets in what it sends.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode

import httpx
import msgspec
from msgspec import Struct

from bot.github.errors import UNDECODABLE, Refused, TryLater

T = TypeVar("T")
_SECONDS = 30.0
#: The error of an exchange whose code is wrong, too old or used, or whose verifier is wrong.
BAD_CODE = "bad_verification_code"
_REMEDIES = {
    "incorrect_client_credentials": "Check sign-in.client-id and MERGEWRIGHT_GITHUB_CLIENT_SECRET.",
    "redirect_uri_mismatch": "Check the callback URL of the GitHub App and server.public-url.",
    BAD_CODE: "Sign in once more.",
}


class GitHubUser(Struct, frozen=True):
    """An account: https://docs.github.com/en/rest/users/users#get-the-authenticated-user"""

    id: int
    login: str


class _Exchange(Struct, frozen=True):
    """The access token, or an error. GitHub sends either with the status 200."""

    access_token: str = ""
    error: str = ""


class GitHubSignIn:
    """The App's side of the sign-in. Thread-safe."""

    def __init__(self, web_url: str, api_url: str, client_id: str, client_secret: str) -> None:
        """`web_url` is the URL of GitHub's pages, with a trailing slash."""
        self._web_url = web_url
        self._user = f"{api_url.rstrip('/')}/user"
        self._client_id = client_id
        self._client_secret = client_secret

    def address(self, callback: str, state: str, verifier: str) -> str:
        """Return the URL of the page on GitHub where a person signs in.

        GitHub sends the person back to `callback` with `state` and a code. Pass the same secret
        `verifier` to `user`, to prove that this program has requested the code (PKCE).
        """
        challenge = hashlib.sha256(verifier.encode()).digest()
        query = {
            "client_id": self._client_id,
            "redirect_uri": callback,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{self._web_url}login/oauth/authorize?{urlencode(query)}"

    def user(self, code: str, callback: str, verifier: str) -> GitHubUser:
        """Exchange the code that GitHub sent for the account that signed in. A code works once.

        `callback` and `verifier` are those given to `address`.

        Raises:
            Refused: GitHub does not accept the code, or the App's credentials.
            TryLater: GitHub cannot be reached, or cannot answer now.
        """
        with httpx.Client(timeout=_SECONDS, headers={"accept": "application/json"}) as http:
            given = self._sent(
                http,
                "POST",
                f"{self._web_url}login/oauth/access_token",
                _Exchange,
                data={
                    "client_id": self._client_id,
                    "client_secret": self._client_secret,
                    "code": code,
                    "redirect_uri": callback,
                    "code_verifier": verifier,
                },
            )
            if given.error or not given.access_token:
                remedy = _REMEDIES.get(given.error, "")
                raise Refused(f"GitHub refused the sign-in: {given.error}. {remedy}".strip(), 401)
            bearer = {"authorization": f"Bearer {given.access_token}"}
            return self._sent(http, "GET", self._user, GitHubUser, headers=bearer)

    def check_secret(self) -> str:
        """Return why GitHub does not accept the App's credentials; empty if it does.

        Tries to exchange a code that cannot exist. Raises `TryLater`.
        """
        try:
            self.user("0", "", "0")
        except Refused as refusal:
            return "" if BAD_CODE in str(refusal) else str(refusal)
        return ""

    def _sent(
        self,
        http: httpx.Client,
        method: str,
        url: str,
        shape: type[T],
        *,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        try:
            response = http.request(method, url, data=data, headers=headers)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise TryLater(f"Sign-in: GitHub cannot be reached ({why}).") from error
        if response.status_code >= 500 or response.status_code == 429:
            raise TryLater(f"Sign-in: GitHub answered {response.status_code}.")
        if not response.is_success:
            raise Refused(f"Sign-in: GitHub answered {response.status_code}.", response.status_code)
        try:
            return msgspec.json.decode(response.content, type=shape)
        except UNDECODABLE as error:
            raise TryLater(f"Sign-in: GitHub's answer cannot be read: {error}.") from error
