"""One exchange with GitHub: out with a token, back as an answer or as one of our failures."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

import httpx
import msgspec
from githubkit.exception import RequestError, RequestFailed, RequestTimeout
from msgspec import Struct

from bot.github.errors import TryLater
from bot.github.http_client import HttpClient
from bot.github.responses import UNDECODABLE, http_failure

T = TypeVar("T")
REDIRECTS = 3
#: What was answered so was not done, and is to be asked as it is at another address.
SAME_METHOD = (307, 308)
NOT_MODIFIED = 304


class GitHubRequest(Struct, frozen=True, kw_only=True):
    """What is asked: a method and an address, below the API's or whole."""

    method: str
    url: str
    params: Mapping[str, str] | None = None
    body: object = None
    stream: bool = False
    name: str = ""  #: What people know it by, where that is not its address.
    etag: str = ""  #: What is known already, and need not be answered again.

    def __str__(self) -> str:
        """How messages name it."""
        return self.name or f"{self.method} {self.url}"


class Transport:
    """Sends calls. May be used from any thread.

    No call sleeps, and none is repeated: the outbox decides when to try again.
    """

    def __init__(
        self, http: HttpClient, clock: Callable[[], datetime], redact: Callable[[object], object]
    ) -> None:
        self._http = http
        self._clock = clock
        self._redact = redact

    def send(self, call: GitHubRequest, token: str) -> httpx.Response:
        """Send, and follow where it is sent on; the token goes to GitHub's own host only.

        Raises `TryLater` or `Refused`.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"If-None-Match": call.etag} if call.etag else {}
        url, params = call.url, call.params
        for _ in range(REDIRECTS + 1):
            answer = self._once(call, url, params, headers)
            if answer.is_success or (call.etag and answer.status_code == NOT_MODIFIED):
                return answer
            answer.close()
            target = answer.url.join(answer.headers.get("Location", ""))
            away = _origin(target) != _origin(answer.url)
            follows = call.method == "GET" or (answer.status_code in SAME_METHOD and not away)
            if not follows or not answer.has_redirect_location:
                raise http_failure(
                    str(call), answer.status_code, answer.headers, b"", self._clock()
                )
            if away:
                headers = {}
            url, params = str(target), None
        raise TryLater(f"{call}: redirected more than {REDIRECTS} times.")

    def _once(
        self,
        call: GitHubRequest,
        url: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> httpx.Response:
        try:
            return self._http.request(
                call.method,
                url,
                params=params,
                json=None if call.body is None else self._redact(call.body),
                headers=headers,
                stream=call.stream,
            ).raw_response
        except RequestFailed as error:
            said = error.response
            raise http_failure(
                str(call), said.status_code, said.headers, said.content, self._clock()
            ) from error
        except RequestTimeout as error:
            raise TryLater(f"{call}: GitHub did not answer in time.") from error
        except RequestError as error:
            if not isinstance(error.exc, httpx.RequestError):
                raise
            why = f"{type(error.exc).__name__}: {error.exc}"
            raise TryLater(f"{call}: GitHub cannot be reached ({why}).") from error


def decode(call: GitHubRequest, answer: httpx.Response, shape: type[T]) -> T:
    """What was answered, as a Struct. Raises `TryLater` where it cannot be read."""
    return decode_bytes(call, answer.content, shape)


def decode_bytes(asked: object, content: bytes, shape: type[T]) -> T:
    """The same of an answer's body; `asked` is what messages call it."""
    try:
        return msgspec.json.decode(content, type=shape)
    except UNDECODABLE as error:
        raise TryLater(f"{asked}: GitHub's answer cannot be read: {error}.") from error


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
