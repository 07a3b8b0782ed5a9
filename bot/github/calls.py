"""One call to GitHub: out with the right token, back as a Struct or as one of our failures.

No call sleeps, and none is repeated but after an App's token that ended early: the outbox decides
when to try again.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec
from githubkit.exception import RequestError, RequestFailed, RequestTimeout
from msgspec import Raw, Struct

from bot.github.answers import UNDECODABLE, Problem, failure, graphql_failure
from bot.github.auth import Credentials, InstallationToken, Tokens
from bot.github.errors import Refused, TryLater
from bot.github.kit import Kit

T = TypeVar("T")
REDIRECTS = 3
PAGES = 100
LOG_BYTES = 256 * 1024

#: Fields that need rights the bot can do without: where they are refused, they read as null.
OPTIONAL = {"branchProtectionRule", "rules"}
UNREADABLE = {"FORBIDDEN", "INSUFFICIENT_SCOPES", "NOT_FOUND"}


class Envelope(Struct, frozen=True):
    """The outside of every answer of GraphQL."""

    data: Raw = Raw(b"null")
    errors: tuple[Problem, ...] | None = None


class Installation(Struct, frozen=True):
    """Where an App is installed."""

    id: int


class Calls:
    """Every way the bot asks GitHub something. May be used from any thread.

    Each method raises `TryLater` or `Refused`. Paths are those below `repos/OWNER/NAME/`.
    """

    def __init__(
        self,
        api_url: str,
        credentials: Credentials,
        timeout_seconds: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._kit = Kit(api_url, timeout_seconds)
        self.clock = clock
        self.tokens = Tokens(credentials, self._kit, self._installation_token, clock)
        base = self._kit.config.base_url
        # Enterprise servers answer REST at /api/v3/ and GraphQL beside it, not below it.
        path, moved = re.subn(r"/api/v3/$", "/api/graphql", base.path)
        self._graphql = str(base.copy_with(path=path if moved else f"{base.path}graphql"))

    def get(
        self, repository: str, path: str, shape: type[T], params: Mapping[str, str] | None = None
    ) -> T:
        """Read one thing."""
        url = _url(repository, path)
        return _decode(f"GET {url}", self._ask(repository, "GET", url, params=params), shape)

    def pages(
        self, repository: str, path: str, shape: type[T], params: Mapping[str, str] | None = None
    ) -> Iterator[T]:
        """Read a list, page after page."""
        url = _url(repository, path)
        for page in range(1, PAGES + 1):
            query = {**(params or {}), "per_page": "100", "page": str(page)}
            answer = self._ask(repository, "GET", url, params=query)
            items: tuple[T, ...] = _decode(f"GET {url}", answer, tuple[shape, ...])  # type: ignore[valid-type]
            yield from items
            if "next" not in answer.links:
                return
        raise TryLater(f"GET {url}: the list has more than {PAGES} pages, which nobody reads.")

    def send(self, repository: str, method: str, path: str, body: object, shape: type[T]) -> T:
        """Change something, and read what GitHub made of it."""
        url = _url(repository, path)
        return _decode(f"{method} {url}", self._ask(repository, method, url, body=body), shape)

    def do(self, repository: str, method: str, path: str, body: object = None) -> None:
        """Change something whose answer does not matter."""
        self._ask(repository, method, _url(repository, path), body=body)

    def log(self, repository: str, path: str) -> str:
        """The end of a text that may be very long and lie on another host."""
        url = _url(repository, path)
        answer = self._ask(repository, "GET", url, stream=True)
        kept = b""
        try:
            for piece in answer.iter_bytes():
                kept = (kept + piece)[-LOG_BYTES:]
        except httpx.RequestError as error:
            raise TryLater(f"GET {url}: the log broke off ({type(error).__name__}).") from error
        finally:
            answer.close()
        return kept.decode("utf-8", "replace")

    def graphql(
        self, repository: str, name: str, shape: type[T], variables: Mapping[str, object]
    ) -> T | None:
        """Send `queries/NAME.graphql`; None where the thing in the repository does not exist.

        Variables `owner` and `name` come from `repository`. Data that is there only in part is no
        answer: an error anywhere raises, but for fields that are optional.
        """
        asked = f"GraphQL {name} {repository} {variables.get('number', '')}".rstrip()
        owner, _, short = repository.partition("/")
        places = {"owner": owner, "name": short} if repository else {}
        body = {"query": _document(name), "variables": {**places, **variables}}
        answer = self._ask(repository, "POST", self._graphql, body=body)
        envelope = _decode(asked, answer, Envelope)
        problems = [problem for problem in envelope.errors or () if not _harmless(problem)]
        if problems and all(_missing(problem) for problem in problems):
            return None
        if problems:
            raise graphql_failure(asked, problems, answer.headers, self.clock())
        return _decode_bytes(asked, bytes(envelope.data), shape)

    def get_app(self, shape: type[T]) -> T:
        """What GitHub knows of the App we are."""
        answer = self._exchange("GET", "app", self.tokens.of_app())
        return _decode("GET app", answer, shape)

    def close(self) -> None:
        """Close every connection."""
        self._kit.close()

    def _installation_token(self, repository: str, app_token: str) -> InstallationToken:
        """A token for this one repository, so that it is of no use anywhere else."""
        url = _url(repository, "installation")
        found = _decode(f"GET {url}", self._exchange("GET", url, app_token), Installation)
        url = f"app/installations/{found.id}/access_tokens"
        body = {"repositories": [repository.partition("/")[2]]}
        answer = self._exchange("POST", url, app_token, body=body)
        return _decode(f"POST {url}", answer, InstallationToken)

    def _ask(
        self,
        repository: str,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        stream: bool = False,
    ) -> httpx.Response:
        def exchange() -> httpx.Response:
            token = self.tokens.of(repository)
            return self._exchange(method, url, token, params=params, body=body, stream=stream)

        try:
            return exchange()
        except Refused as refusal:
            if refusal.status != 401 or not self.tokens.is_app:
                raise
        # An installation's token can end early; what was refused with 401 was not done.
        self.tokens.forget(repository)
        return exchange()

    def _exchange(
        self,
        method: str,
        url: str,
        token: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        stream: bool = False,
    ) -> httpx.Response:
        """Send, and follow where a GET is sent on; the token goes to GitHub's own host only."""
        asked = f"{method} {url}"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        for _ in range(REDIRECTS + 1):
            answer = self._once(asked, method, url, headers, params, body, stream)
            if answer.is_success:
                return answer
            answer.close()
            if method != "GET" or not answer.has_redirect_location:
                raise failure(asked, answer.status_code, answer.headers, b"", self.clock())
            target = answer.url.join(answer.headers["Location"])
            if _origin(target) != _origin(answer.url):
                headers = {}
            url, params = str(target), None
        raise TryLater(f"{asked}: redirected more than {REDIRECTS} times.")

    def _once(
        self,
        asked: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        body: object,
        stream: bool,
    ) -> httpx.Response:
        try:
            answer = self._kit.request(
                method, url, params=params, json=body, headers=headers, stream=stream
            )
        except RequestFailed as error:
            said = error.response
            raise failure(
                asked, said.status_code, said.headers, said.content, self.clock()
            ) from error
        except RequestTimeout as error:
            raise TryLater(f"{asked}: GitHub did not answer in time.") from error
        except RequestError as error:
            if not isinstance(error.exc, httpx.RequestError):
                raise
            why = f"{type(error.exc).__name__}: {error.exc}"
            raise TryLater(f"{asked}: GitHub cannot be reached ({why}).") from error
        return answer.raw_response


def _url(repository: str, path: str) -> str:
    return f"repos/{quote(repository)}/{path}".rstrip("/")


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@cache
def _document(name: str) -> str:
    return files("bot.github").joinpath(f"queries/{name}.graphql").read_text(encoding="utf-8")


def _harmless(problem: Problem) -> bool:
    return problem.type in UNREADABLE and not OPTIONAL.isdisjoint(problem.path or ())


def _missing(problem: Problem) -> bool:
    """Whether the thing asked for is missing in a repository that is there and may be seen."""
    path = problem.path or ()
    return problem.type == "NOT_FOUND" and len(path) == 2 and path[0] == "repository"


def _decode(asked: str, answer: httpx.Response, shape: type[T]) -> T:
    return _decode_bytes(asked, answer.content, shape)


def _decode_bytes(asked: str, content: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=shape)
    except UNDECODABLE as error:
        raise TryLater(f"{asked}: GitHub's answer cannot be read: {error}.") from error
