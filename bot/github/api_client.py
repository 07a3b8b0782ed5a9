"""Sends authenticated requests to GitHub's REST and GraphQL APIs within the rate limits.

A write sleeps until its turn, or raises `TryLater` if too many are ahead; reads do not wait. Failed
requests are retried by the callers, with one exception: if GitHub refuses an App's token (401), or
a JWT because the bot's clock is wrong, the request is sent once more, with a new token or JWT.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from threading import Lock
from typing import TypeVar
from urllib.parse import quote

import httpx
from msgspec import Raw
from msgspec.structs import replace

from bot.github.auth import AccessTokens, Credentials, InstallationToken, permissions_of_git
from bot.github.errors import (
    REINSTALL,
    NotInstalled,
    Refused,
    TryLater,
    graphql_failure,
)
from bot.github.graphql import Envelope, PricedResponse, load_query
from bot.github.rate_limits import RateLimits
from bot.github.rest import AppInstallation, RepositoryAliases
from bot.github.shapes import AppSlug, InRepository, Viewer
from bot.github.snapshots import PointBudget
from bot.github.transport import (
    NOT_MODIFIED,
    CachedResponse,
    EtagCache,
    GitHubRequest,
    Transport,
    decode,
)
from bot.system.clock import Clock

T = TypeVar("T")
_SCOPES = "X-OAuth-Scopes"
#: The name under which the App's own rate limits are kept. No account's login contains a colon.
_APP = "app:"
#: A list with more pages raises `TryLater`.
MAX_PAGES = 100
#: A refused JWT is replaced if the refusal shows that the bot was wrong about GitHub's time by more
#: than this.
_CLOCKS_DIFFER = timedelta(seconds=30)
#: The permissions of a token that only lists the repositories of an installation.
_LISTING: Mapping[str, object] = {"permissions": {"metadata": "read"}}
_LOG_BYTES = 256 * 1024
_CORE, _GRAPHQL = "core", "graphql"


class ApiClient:
    """Sends requests for the bot. Thread-safe.

    `repository` is a configured name; `path` is relative to `repos/OWNER/NAME/`, or to the API for
    requests as the App; `shape` is the type of the decoded response, or of each item of a list.

    Raises (every method that sends a request):
        TryLater: GitHub cannot answer now, a rate limit is exhausted, or a write is not sent now.
        Refused: GitHub refuses the request.
    """

    def __init__(
        self,
        api_url: str,
        credentials: Credentials,
        timeout_seconds: float,
        clock: Clock,
        write_interval_seconds: float,
        redact: Callable[[object], object],
    ) -> None:
        self.transport = Transport(api_url, timeout_seconds, clock, redact)
        self.clock = clock
        self._limits = RateLimits(clock, write_interval_seconds)
        self.aliases = RepositoryAliases()
        self.etag_cache = EtagCache()
        #: The scopes of a classic token, known after the first REST request; otherwise None.
        self.scopes: frozenset[str] | None = None
        self.tokens = AccessTokens(
            credentials, self._installation_token, self.transport.server_time
        )
        #: Whether writes may be sent; called after a write has waited for its turn.
        self.may_write: Callable[[], bool] = lambda: True
        #: Installation ids by `OWNER/*`, which cannot be a repository's name.
        self.installations: dict[str, int] = {}
        self._me = ""
        self._me_lock = Lock()
        base = self.transport.config.base_url
        # Enterprise servers serve REST at /api/v3/ and GraphQL at /api/graphql.
        path, moved = re.subn(r"/api/v3/$", "/api/graphql", base.path)
        self._graphql_url = str(base.copy_with(path=path if moved else f"{base.path}graphql"))

    def get(
        self, repository: str, path: str, shape: type[T], params: Mapping[str, str] | None = None
    ) -> T:
        """Read one object, or one page of a list, with GET."""
        request = GitHubRequest("GET", self._url(repository, path), params=params)
        return decode(request, self._ask(repository, request).content, shape)

    def get_by_id(self, repository: str, id: int, shape: type[T]) -> T:
        """Read a repository by its id, even if renamed; `repository` selects the token."""
        request = GitHubRequest("GET", f"repositories/{id}")
        return decode(request, self._read(repository, request).content, shape)

    def pages(
        self, repository: str, path: str, shape: type[T], params: Mapping[str, str] = {}
    ) -> Iterator[T]:
        """Yield the items of a list, read page by page, 100 at a time."""
        for request, content in self.contents(repository, self._url(repository, path), params):
            yield from decode(request, content, list[shape])  # type: ignore[valid-type]

    def contents(
        self, repository: str, url: str, params: Mapping[str, str] = {}
    ) -> Iterator[tuple[GitHubRequest, bytes]]:
        """Yield the undecoded pages of the list at `url`, relative to the API, with their requests.

        https://docs.github.com/rest/guides/using-pagination-in-the-rest-api
        """
        for page in range(1, MAX_PAGES + 1):
            query = {**params, "per_page": "100", "page": str(page)}
            request = GitHubRequest("GET", url, params=query)
            response = self._read(repository, request)
            yield request, response.content
            if not response.more:
                return
        raise TryLater(f"{request}: the list has more than {MAX_PAGES} pages.")

    def send(self, repository: str, method: str, path: str, body: object, shape: type[T]) -> T:
        """Send a write request and decode the response."""
        request = GitHubRequest(method, self._url(repository, path), body=body)
        return decode(request, self._ask(repository, request).content, shape)

    def do(self, repository: str, method: str, path: str, body: object = None) -> None:
        """Send a request and ignore the content of the response."""
        self._ask(repository, GitHubRequest(method, self._url(repository, path), body=body))

    def log(self, repository: str, path: str) -> str:
        """Return the last 256 KiB of a log. GitHub may redirect the request to another host."""
        request = GitHubRequest("GET", self._url(repository, path), stream=True)
        response = self._ask(repository, request)
        kept = b""
        try:
            for chunk in response.iter_bytes():
                kept = (kept + chunk)[-_LOG_BYTES:]
        except httpx.RequestError as error:
            raise TryLater(f"{request}: the log broke off ({type(error).__name__}).") from error
        finally:
            response.close()
        return kept.decode("utf-8", "replace")

    def query(
        self,
        repository: str,
        name: str,
        shape: type[T],
        variables: Mapping[str, object] = {},
        text: str = "",
    ) -> T | None:
        """Call `graphql`; return the `repository` in its result, or None if the result is None."""
        whole = InRepository[shape]  # type: ignore[valid-type]
        found = self.graphql(repository, name, whole, variables, text)
        return found.repository if found else None

    def mutate(self, repository: str, name: str, variables: Mapping[str, object]) -> None:
        """Send a mutation with `graphql` and ignore the data in the response."""
        self.graphql(repository, name, Raw, variables)

    def graphql(
        self,
        repository: str,
        name: str,
        shape: type[T],
        variables: Mapping[str, object] = {},
        text: str = "",
    ) -> T | None:
        """Send `queries/NAME.graphql`, or the query `text`; None if the object does not exist.

        The query's `$owner` and `$name` are set from `repository`. An unknown repository or another
        error raises an exception; only an unreadable optional field is null instead.
        """
        label = f"GraphQL {name} {repository} {variables.get('number', '')}".rstrip()
        with self._limits.guard(self._account(repository), _GRAPHQL):
            envelope, headers = self._query(repository, label, text or load_query(name), variables)
            problems = [one for one in envelope.errors or () if not one.is_optional]
            if problems and all(problem.is_missing for problem in problems):
                return None
            if problems:
                raise graphql_failure(label, problems, headers, self.clock())
        return decode(label, envelope.data, shape)

    def graphql_batch(self, repository: str, name: str, text: str) -> dict[str, Raw]:
        """Read many objects of a repository with one query; return the data by alias.

        Aliases with errors are left out. `name` is the query's name in messages.
        """
        label = f"GraphQL {name} {repository}"
        with self._limits.guard(self._account(repository), _GRAPHQL):
            envelope, headers = self._query(repository, label, text, {})
            # The path of an error begins with `repository` and the alias.
            general = [one for one in envelope.errors or () if len(one.path or ()) < 2]
            if general:
                raise graphql_failure(label, general, headers, self.clock())
        failed = {problem.path[1] for problem in envelope.errors or () if problem.path}
        data = decode(label, envelope.data, InRepository[dict[str, Raw]]).repository
        return {alias: value for alias, value in data.items() if alias not in failed}

    def budget(self, repository: str) -> PointBudget | None:
        """Return the GraphQL points left in the current hour; None if unknown."""
        return self._limits.budget(self._account(repository))

    def me(self) -> str:
        """Return the bot's own login: that of the token's owner, or the App's `SLUG[bot]`.

        https://docs.github.com/rest/apps/apps#get-the-authenticated-app
        """
        with self._me_lock:
            if not self._me:
                self._me = self._app_login() if self.tokens.is_app else self._token_login()
            return self._me

    def app_pages(self, path: str, shape: type[T], params: Mapping[str, str]) -> Iterator[T]:
        """Yield the items of a list, page by page, authenticated as the App itself."""
        query = {**params, "per_page": "100"}
        for _ in range(MAX_PAGES):
            request = GitHubRequest("GET", path, params=query)
            response = self._as_app(request)
            yield from decode(request, response.content, list[shape])  # type: ignore[valid-type]
            following = response.links.get("next")
            if following is None:
                return
            query = dict(httpx.URL(following["url"]).params)
        raise TryLater(f"{path}: the list has more than {MAX_PAGES} pages.")

    def get_as_app(self, path: str, shape: type[T]) -> T:
        """Read one object, authenticated as the App itself."""
        request = GitHubRequest("GET", path)
        return decode(request, self._as_app(request).content, shape)

    def do_as_app(self, method: str, path: str) -> None:
        """Send a write request, authenticated as the App itself, and ignore the response."""
        self._limits.wait_turn(_APP, _CORE)
        self._as_app(GitHubRequest(method, path))

    def installation(self, repository: str) -> AppInstallation:
        """Return the installation of the App that includes a repository.

        Raises:
            NotInstalled: there is no installation, or it is suspended.
            Refused: GitHub refuses, or the account is not in `github.allowed-owners`.
        """
        request = GitHubRequest("GET", self._url(repository, "installation"))
        again = self.clock() + REINSTALL
        try:
            found = decode(request, self._as_app(request).content, AppInstallation)
        except Refused as refusal:
            if refusal.status != 404:
                raise
            raise NotInstalled(
                f"{repository}: the GitHub App is not installed there: install it.", again
            ) from refusal
        # A transferred repository is found at its new owner, who may not be an allowed one.
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

    def convert_manifest(self, code: str, shape: type[T]) -> T:
        """Exchange a manifest's one-time code for the new App's keys.

        https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest
        """
        url = f"app-manifests/{quote(code, safe='')}/conversions"
        request = GitHubRequest("POST", url, name="The keys of the new App")
        return decode(request, self.transport.send(request, "").content, shape)

    def _app_login(self) -> str:
        request = GitHubRequest("GET", "app")
        return f"{decode(request, self._as_app(request).content, AppSlug).slug}[bot]"

    def _token_login(self) -> str:
        found = self.graphql("", "viewer", Viewer)
        if found is None:
            raise TryLater("GitHub does not say whose token this is.")
        return found.viewer.login

    def _url(self, repository: str, path: str) -> str:
        return f"repos/{quote(self.aliases.name(repository))}/{path}".rstrip("/")

    def _installation_token(self, repository: str, for_git: bool) -> InstallationToken:
        """Return a token for one repository. A token for `OWNER/*` can only list repositories.

        `for_git`: the token has only the permissions that git needs.

        https://docs.github.com/rest/apps/apps#create-an-installation-access-token-for-an-app
        """
        number, body = self.installations.get(repository), _LISTING
        if number is None:
            found, identity = self.installation(repository), self.aliases.get(repository)
            number = found.id
            # By its id where it is known, because its name may have changed since it was read.
            by_name = {"repositories": [repository.partition("/")[2]]}
            body = {"repository_ids": [identity.id]} if identity else by_name
            if for_git:
                body = {**body, "permissions": permissions_of_git(found.permissions)}
        request = GitHubRequest("POST", f"app/installations/{number}/access_tokens", body=body)
        return decode(request, self._as_app(request).content, InstallationToken)

    def _query(
        self, repository: str, label: str, text: str, variables: Mapping[str, object]
    ) -> tuple[Envelope, Mapping[str, str]]:
        """Send a query; return the envelope and the headers of the response."""
        owner, _, name = self.aliases.name(repository).partition("/")
        place = {"owner": owner, "name": name} if repository else {}
        body = {"query": text, "variables": {**place, **variables}}
        request = GitHubRequest("POST", self._graphql_url, body=body, name=label)
        response = self._send(repository, request, _GRAPHQL, writes=text.startswith("mutation"))
        envelope = decode(request, response.content, Envelope)
        price = decode(request, response.content, PricedResponse).data
        if price and price.rate_limit:
            self._limits.record_points(self._account(repository), price.rate_limit)
        return envelope, response.headers

    def _read(self, repository: str, request: GitHubRequest) -> CachedResponse:
        """Send a GET request that may be answered from the cache.

        Returns the response, or the cached one if GitHub answers 304 (not modified).
        """
        url = str(httpx.URL(request.url, params=request.params))
        cached = self.etag_cache.cached(url)
        response = self._ask(repository, replace(request, etag=cached.etag) if cached else request)
        if cached is not None and response.status_code == NOT_MODIFIED:
            known = cached
        else:
            etag = response.headers.get("ETag", "")
            known = CachedResponse(response.content, "next" in response.links, etag)
        self.etag_cache.note(url, known)
        return known

    def _ask(self, repository: str, request: GitHubRequest) -> httpx.Response:
        """Send a REST request within its rate limit."""
        with self._limits.guard(self._account(repository), _CORE):
            response = self._send(repository, request, _CORE, writes=request.method != "GET")
        if _SCOPES in response.headers:
            self.scopes = frozenset(re.findall(r"[\w:]+", response.headers[_SCOPES]))
        return response

    def _as_app(self, request: GitHubRequest) -> httpx.Response:
        """Send a request authenticated as the App itself, which has its own rate limits."""
        with self._limits.guard(_APP, _CORE):
            asked = self.transport.server_time() - self.clock()
            try:
                response = self.transport.send(request, self.tokens.app_jwt())
            except Refused as refusal:
                # Refused by a time that differs from GitHub's, which is known now.
                differs = abs(self.transport.server_time() - self.clock() - asked) > _CLOCKS_DIFFER
                if refusal.status != 401 or not differs:
                    raise
                response = self.transport.send(request, self.tokens.app_jwt())
        self._limits.note(_APP, _CORE, request, response.headers)
        return response

    def _account(self, repository: str) -> str:
        """Return whose rate limits apply: the installation's owner, or "" for the token."""
        return repository.partition("/")[0].casefold() if self.tokens.is_app else ""

    def _send(
        self, repository: str, request: GitHubRequest, resource: str, *, writes: bool
    ) -> httpx.Response:
        """Send a request with the repository's token. A write waits for its turn.

        An App's token may be revoked early: after a 401 the request is sent once more with a new
        one.
        """
        account, token = self._account(repository), self.tokens.of(repository)
        if writes:
            self._limits.wait_turn(account, resource)
            if not self.may_write():
                raise TryLater(f"{request}: not sent: this bot is stopping or on standby.")
        try:
            response = self.transport.send(request, token)
        except Refused as refusal:
            # A request refused with 401 had no effect, so even a write may be sent again.
            if refusal.status != 401 or not self.tokens.is_app:
                raise
            self.tokens.forget(repository)
            response = self.transport.send(request, self.tokens.of(repository))
        self._limits.note(account, resource, request, response.headers)
        return response
