"""Every way of asking GitHub: with the right token, within its limits, answered by a Struct.

No call sleeps but for the turn of a change, and none is repeated but after an App's token that
ended early: the outbox decides when to try again.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TypeVar
from urllib.parse import quote

import httpx
from msgspec import Raw, Struct
from msgspec.structs import replace

from bot.github.auth import AccessTokens, Credentials, InstallationToken
from bot.github.documents import load_query
from bot.github.errors import NotInstalled, Refused, TryLater
from bot.github.etag_cache import CachedResponse, EtagCache
from bot.github.exchange import NOT_MODIFIED, GitHubRequest, Transport, decode, decode_bytes
from bot.github.graphql_envelope import (
    AliasedData,
    Envelope,
    GraphQLResponse,
    PricedResponse,
    is_missing,
    is_optional,
)
from bot.github.http_client import HttpClient
from bot.github.rate_limits import RateLimits
from bot.github.repository_aliases import RepositoryAliases
from bot.github.responses import REINSTALL, exhausted_limit, graphql_failure
from bot.github.shapes import Login
from bot.github.snapshots import PointBudget

T = TypeVar("T")
SCOPES = "X-OAuth-Scopes"
#: The account of the App itself: no owner is called so.
APP = "app:"
PAGES = 100
LOG_BYTES = 256 * 1024
CORE, GRAPHQL = "core", "graphql"


class AppInstallation(Struct, frozen=True):
    """Where an App is installed, and what it was granted there."""

    id: int
    account: Login | None = None
    permissions: Mapping[str, str] = {}
    events: tuple[str, ...] = ()  #: What webhooks tell of, but for what each App is told.
    suspended_at: str | None = None


class ApiClient:
    """Every way the bot asks GitHub something. May be used from any thread.

    Each method raises `TryLater` or `Refused`. Paths are those below `repos/OWNER/NAME/`.
    """

    def __init__(
        self,
        api_url: str,
        credentials: Credentials,
        timeout_seconds: float,
        clock: Callable[[], datetime],
        write_interval_seconds: float = 0.0,
        redact: Callable[[object], object] = lambda body: body,
    ) -> None:
        self._http = HttpClient(api_url, timeout_seconds)
        self._exchange = Transport(self._http, clock, redact)
        self.clock = clock
        self._limits = RateLimits(clock, write_interval_seconds)
        self.aliases = RepositoryAliases()
        self.etag_cache = EtagCache()
        #: What a classic token was given, once something was asked; None: GitHub tells it of no
        #: other kind.
        self.scopes: frozenset[str] | None = None
        self.tokens = AccessTokens(credentials, self._http, self._installation_token, clock)
        base = self._http.config.base_url
        # Enterprise servers answer REST at /api/v3/ and GraphQL beside it, not below it.
        path, moved = re.subn(r"/api/v3/$", "/api/graphql", base.path)
        self._graphql = str(base.copy_with(path=path if moved else f"{base.path}graphql"))

    def get(
        self, repository: str, path: str, shape: type[T], params: Mapping[str, str] | None = None
    ) -> T:
        """Read one thing, whole."""
        call = GitHubRequest(method="GET", url=self._url(repository, path), params=params)
        return decode(call, self._ask(repository, call), shape)

    def get_place(self, repository: str, id: int, shape: type[T]) -> T:
        """What a repository is today, whatever it is called: by its number."""
        call = GitHubRequest(method="GET", url=f"repositories/{id}")
        return decode_bytes(call, self._read(repository, call).content, shape)

    def pages(
        self, repository: str, path: str, shape: type[T], params: Mapping[str, str] | None = None
    ) -> Iterator[T]:
        """Read a list, page after page."""
        for page in range(1, PAGES + 1):
            query = {**(params or {}), "per_page": "100", "page": str(page)}
            call = GitHubRequest(method="GET", url=self._url(repository, path), params=query)
            answer = self._read(repository, call)
            yield from decode_bytes(call, answer.content, list[shape])  # type: ignore[valid-type]
            if not answer.more:
                return
        raise TryLater(f"{call}: the list has more than {PAGES} pages, which nobody reads.")

    def send(self, repository: str, method: str, path: str, body: object, shape: type[T]) -> T:
        """Change something, and read what GitHub made of it."""
        call = GitHubRequest(method=method, url=self._url(repository, path), body=body)
        return decode(call, self._ask(repository, call), shape)

    def do(self, repository: str, method: str, path: str, body: object = None) -> None:
        """Change something whose answer does not matter."""
        self._ask(
            repository, GitHubRequest(method=method, url=self._url(repository, path), body=body)
        )

    def log(self, repository: str, path: str) -> str:
        """The end of a text that may be very long and lie on another host."""
        call = GitHubRequest(method="GET", url=self._url(repository, path), stream=True)
        answer = self._ask(repository, call)
        kept = b""
        try:
            for piece in answer.iter_bytes():
                kept = (kept + piece)[-LOG_BYTES:]
        except httpx.RequestError as error:
            raise TryLater(f"{call}: the log broke off ({type(error).__name__}).") from error
        finally:
            answer.close()
        return kept.decode("utf-8", "replace")

    def graphql(
        self,
        repository: str,
        name: str,
        shape: type[T],
        variables: Mapping[str, object],
        query: str = "",
    ) -> T | None:
        """Send `queries/NAME.graphql`; None where the thing in the repository does not exist.

        Variables `owner` and `name` come from `repository`. Data that is there only in part is no
        answer: an error anywhere raises, but for fields that are optional. `query` is sent where
        it was made for this call.
        """
        asked = f"GraphQL {name} {repository} {variables.get('number', '')}".rstrip()
        with self._limits.guard(self._account(repository), GRAPHQL):
            said = self._query(repository, asked, query or load_query(name), variables)
            problems = [problem for problem in said.problems if not is_optional(problem)]
            if problems and all(is_missing(problem) for problem in problems):
                return None
            if problems:
                raise graphql_failure(asked, problems, said.headers, self.clock())
        return decode_bytes(asked, bytes(said.data), shape)

    def query_aliases(self, repository: str, name: str, query: str) -> dict[str, Raw]:
        """Ask for many things of a repository at once: the answer for each alias.

        An alias that GitHub has trouble with is left out. `name` is what messages call the query.
        """
        asked = f"GraphQL {name} {repository}"
        with self._limits.guard(self._account(repository), GRAPHQL):
            said = self._query(repository, asked, query, {})
            # A path leads from the root: the repository, the alias, and on.
            paths = [problem.path or () for problem in said.problems]
            whole = [one for one, path in zip(said.problems, paths, strict=True) if len(path) < 2]
            if whole:
                raise graphql_failure(asked, whole, said.headers, self.clock())
        answers = decode_bytes(asked, bytes(said.data), AliasedData).repository
        bad = {path[1] for path in paths}
        return {alias: answer for alias, answer in answers.items() if alias not in bad}

    def budget(self, repository: str) -> PointBudget | None:
        """What is left of the points for GraphQL there; None: nobody has said."""
        return self._limits.budget(self._account(repository))

    def get_app(self, shape: type[T]) -> T:
        """What GitHub knows of the App we are."""
        call = GitHubRequest(method="GET", url="app")
        return decode(call, self._as_app(call, self.tokens.app_jwt()), shape)

    def app_pages(self, path: str, shape: type[T], params: Mapping[str, str]) -> Iterator[T]:
        """Read a list of the App's own; each page names where the next begins."""
        query = {**params, "per_page": "100"}
        for _ in range(PAGES):
            call = GitHubRequest(method="GET", url=path, params=query)
            answer = self._as_app(call, self.tokens.app_jwt())
            yield from decode(call, answer, list[shape])  # type: ignore[valid-type]
            following = answer.links.get("next")
            if following is None:
                return
            query = {**query, "cursor": httpx.URL(following["url"]).params.get("cursor", "")}
        raise TryLater(f"{path}: the list has more than {PAGES} pages, which nobody reads.")

    def do_as_app(self, method: str, path: str) -> None:
        """Do something that concerns the App itself."""
        self._limits.wait_turn(APP, CORE)
        self._as_app(GitHubRequest(method=method, url=path), self.tokens.app_jwt())

    def installation(self, repository: str) -> AppInstallation:
        """The App's installation. Raises `NotInstalled` also where it is suspended."""
        return self._installation(repository, self.tokens.app_jwt())

    def convert(self, code: str, shape: type[T]) -> T:
        """The keys of an App that was just made from a manifest; a code is good once."""
        url = f"app-manifests/{quote(code, safe='')}/conversions"
        call = GitHubRequest(method="POST", url=url, name="The keys of the new App")
        return decode(call, self._exchange.send(call, ""), shape)

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def _url(self, repository: str, path: str) -> str:
        return f"repos/{quote(self.aliases.now(repository))}/{path}".rstrip("/")

    def _installation_token(self, repository: str, app_token: str) -> InstallationToken:
        """A token for this one repository, so that it is of no use anywhere else."""
        found = self._installation(repository, app_token)
        place = self.aliases.of(repository)
        # By its number, where it is known: it may be called otherwise since it was last looked at.
        name = {"repositories": [repository.partition("/")[2]]}
        body = {"repository_ids": [place.id]} if place else name
        make = GitHubRequest(
            method="POST", url=f"app/installations/{found.id}/access_tokens", body=body
        )
        return decode(make, self._as_app(make, app_token), InstallationToken)

    def _installation(self, repository: str, app_token: str) -> AppInstallation:
        """Where the App is installed for this repository, if it is to be used there."""
        find = GitHubRequest(method="GET", url=self._url(repository, "installation"))
        again = self.clock() + REINSTALL
        try:
            found = decode(find, self._as_app(find, app_token), AppInstallation)
        except Refused as refusal:
            if refusal.status != 404:
                raise
            raise NotInstalled(
                f"{repository}: the GitHub App is not installed there: install it.", again
            ) from refusal
        # A repository that was moved is found at its new owner, whom nobody allowed.
        if found.account and not self.tokens.allows_owner(found.account.login):
            raise Refused(
                f"{repository}: {found.account.login} is not in github.allowed-owners,"
                " so the App's installation there is ignored.",
                403,
            )
        if found.suspended_at:
            raise NotInstalled(
                f"{repository}: the GitHub App's installation is suspended: unsuspend it.", again
            )
        return found

    def _query(
        self, repository: str, asked: str, query: str, variables: Mapping[str, object]
    ) -> GraphQLResponse:
        owner, _, short = self.aliases.now(repository).partition("/")
        place = {"owner": owner, "name": short} if repository else {}
        body = {"query": query, "variables": {**place, **variables}}
        call = GitHubRequest(method="POST", url=self._graphql, body=body, name=asked)
        answer = self._send(repository, call, GRAPHQL, changes=query.startswith("mutation"))
        priced = decode(call, answer, PricedResponse).data
        if priced is not None and priced.rate_limit is not None:
            self._limits.record_points(self._account(repository), priced.rate_limit)
        envelope = decode(call, answer, Envelope)
        return GraphQLResponse(envelope.data, envelope.errors or (), answer.headers)

    def _read(self, repository: str, call: GitHubRequest) -> CachedResponse:
        """Read, or hear that it is as it is remembered."""
        asked = str(httpx.URL(call.url, params=call.params))
        known = self.etag_cache.cached(asked)
        said = self._ask(repository, replace(call, etag=known.etag) if known else call)
        if known is not None and said.status_code == NOT_MODIFIED:
            answer = known
        else:
            etag = said.headers.get("ETag", "")
            answer = CachedResponse(content=said.content, more="next" in said.links, etag=etag)
        self.etag_cache.note(asked, answer)
        return answer

    def _ask(self, repository: str, call: GitHubRequest) -> httpx.Response:
        """Ask REST, within its limits."""
        with self._limits.guard(self._account(repository), CORE):
            answer = self._send(repository, call, CORE, changes=call.method != "GET")
        if SCOPES in answer.headers:
            self.scopes = frozenset(re.findall(r"[\w:]+", answer.headers[SCOPES]))
        return answer

    def _as_app(self, call: GitHubRequest, token: str) -> httpx.Response:
        """Ask as the App itself, which has limits of its own."""
        with self._limits.guard(APP, CORE):
            answer = self._exchange.send(call, token)
        self._observe_limits(APP, CORE, call, answer)
        return answer

    def _account(self, repository: str) -> str:
        """Whose limits count: an installation's, which is its owner's, or the token's."""
        return repository.partition("/")[0].casefold() if self.tokens.is_app else ""

    def _send(
        self, repository: str, call: GitHubRequest, resource: str, *, changes: bool
    ) -> httpx.Response:
        """Send with the repository's token, in its turn."""
        account, token = self._account(repository), self.tokens.of(repository)
        if changes:
            self._limits.wait_turn(account, resource)
        answer = self._answered(repository, call, token)
        self._observe_limits(account, resource, call, answer)
        return answer

    def _observe_limits(
        self, account: str, resource: str, call: GitHubRequest, answer: httpx.Response
    ) -> None:
        """See whether it was the last that may be asked for now."""
        if limit := exhausted_limit(
            f"{call} was the last.", answer.headers, self.clock(), resource
        ):
            self._limits.hold(account, limit)

    def _answered(self, repository: str, call: GitHubRequest, token: str) -> httpx.Response:
        """Send with the repository's token; an App's may have ended early, and is then replaced."""
        try:
            return self._exchange.send(call, token)
        except Refused as refusal:
            # What was answered with 401 was not done, so that even a change may be sent again.
            if refusal.status != 401 or not self.tokens.is_app:
                raise
        self.tokens.forget(repository)
        return self._exchange.send(call, self.tokens.of(repository))
