"""Requests and responses as plain values, and the route tables."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Forge, Repository
from bot.demo.github.world import App, Token

Json = dict[str, Any]
_DOCS = "https://docs.github.com/rest"
_Item = TypeVar("_Item")


class Problem(Exception):
    """An error response, or the redirect for a renamed repository, in GitHub's words."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Sequence[Any] = (),
        docs: str = _DOCS,
        location: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.errors, self.docs = status, message, errors, docs
        self.headers = {"Location": location} if location else {}

    @property
    def body(self) -> Json:
        errors = {"errors": list(self.errors)} if self.errors else {}
        fields = {"documentation_url": self.docs, "status": str(self.status)}
        return {"message": self.message, **errors, **fields}


def not_found() -> Problem:
    return Problem(404, "Not Found")


def invalid(resource: str, field: str, code: str = "invalid", message: str = "") -> Problem:
    """Return the error that a field of a request's body is invalid."""
    error = {"resource": resource, "field": field, "code": code}
    if message:
        error["message"] = message
    return Problem(422, "Validation Failed", [error])


@dataclass(kw_only=True)
class Answer:
    """A response. A `body` of bytes is sent unchanged, None as nothing, anything else as JSON."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def raw(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(kw_only=True)
class Request:
    """One request. Authentication sets `token` or `as_app`."""

    world: Forge
    method: str
    path: str
    query_string: str = ""
    headers: dict[str, str] = field(default_factory=dict)  #: Lower-case names.
    body: bytes = b""
    token: Token | None = None
    as_app: App | None = None  #: The App, if it authenticated with a JWT.
    params: dict[str, str] = field(default_factory=dict)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.query_string))

    @property
    def login(self) -> str:
        """The requesting account's login; empty if it is unknown."""
        return self.token.user.login if self.token else ""

    @property
    def account(self) -> str:
        """The account whose rate limit applies. An App has its own; unknown accounts share one."""
        return f"app {self.as_app.slug}" if self.as_app else self.login

    @property
    def json(self) -> Json:
        """The body, which must be a JSON object or empty."""
        try:
            body = json.loads(self.body or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Problem(400, "Problems parsing JSON")
        return body

    def text(self, name: str, resource: str) -> str:
        """Return the member `name` of the body. Raises `Problem` unless it is a non-empty string.

        `resource` is the type of object that the error names.
        """
        value = self.json.get(name)
        if not isinstance(value, str) or not value:
            raise invalid(resource, name, "missing_field")
        return value

    # -- what the path names, with permission checks

    @property
    def repo(self) -> Repository:
        return self.repo_for("read")

    def repo_for(self, level: str) -> Repository:
        """Return the repository in the path.

        Raises `Problem` if there is none or it was renamed, if the account lacks the permission
        `level`, and if the repository is archived and the request would change it.
        """
        name = f"{self.params['owner']}/{self.params['repo']}".lower()
        repo = self.world.repositories.get(name)
        if repo is None and name in self.world.moved:
            rest = self.path.split("/repos/", 1)[1].split("/", 2)[2:]
            there = "/".join((f"repositories/{self.world.moved[name].id}", *rest))
            location = f"{self.world.url}api/v3/{there}"
            status = 301 if self.method == "GET" else 307
            raise Problem(status, "Moved Permanently", location=location)
        if repo is None or not repo.allows(self.login, "read"):
            raise not_found()
        if repo.archived and self.method != "GET":
            raise Problem(403, "Repository was archived so is read-only.")
        if level != "read" and self.token and not self.token.writes:
            raise not_found()
        if not repo.allows(self.login, level):
            if self.token is None:
                raise Problem(401, "Requires authentication")
            if self.token.app:
                raise Problem(403, "Resource not accessible by integration")
            raise Problem(403, "Must have admin rights to Repository.")
        return repo

    def issue_of(self, repo: Repository) -> Issue:
        issue = repo.issues_and_pulls.get(int(self.params["number"]))
        if issue is None:
            raise not_found()
        return issue

    def pull_of(self, repo: Repository) -> Pull:
        issue = self.issue_of(repo)
        if not isinstance(issue, Pull):
            raise not_found()
        return issue

    # -- pages

    def page(
        self, items: Iterable[_Item], shape: Callable[[_Item], Any], under: str = ""
    ) -> Answer:
        """Return the page of `items` that the query requests. `shape` turns each item into JSON.

        With `under`, the body is an object that has `total_count`, and the list under this name.
        Without it, the body is the list itself.
        """
        everything = list(items)
        size = min(self._positive("per_page", 30), 100)
        number = self._positive("page", 1)
        shaped = [shape(item) for item in everything[(number - 1) * size : number * size]]
        body = {"total_count": len(everything), under: shaped} if under else shaped
        last = max(1, -(-len(everything) // size))
        turns = {"prev": number - 1, "next": number + 1, "last": last, "first": 1}
        if number >= last:
            del turns["next"], turns["last"]
        if number == 1:
            del turns["prev"], turns["first"]
        links = [f'<{self._page_url(to)}>; rel="{name}"' for name, to in turns.items()]
        return Answer(body=body, headers={"Link": ", ".join(links)} if links else {})

    def _positive(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isdecimal() and int(text) else default

    def _page_url(self, number: int) -> str:
        query = urlencode({**self.query, "page": number})
        return f"{self.world.url}{self.path.lstrip('/')}?{query}"


Handler = Callable[[Request], Answer]
#: A row of a route table: method, path with {names}, handler. `{name:path}` takes slashes too.
Route = tuple[str, str, Handler]


class Router:
    """Finds the handler of a request in tables of routes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = [(method, pattern_of(path), handler) for method, path, handler in routes]

    def find(self, request: Request, path: str) -> Handler:
        """Return the handler, and set `request.params` from the path. Raises `Problem`."""
        for method, pattern, handler in self._routes:
            match = pattern.fullmatch(path)
            if match and method == request.method:
                request.params = match.groupdict()
                return handler
        raise not_found()


def pattern_of(path: str) -> re.Pattern[str]:
    """Return a regular expression for a route's path, with a group for each `{name}` in it."""
    kinds = {"number": r"\d+", "id": r"\d+"}

    def part(match: re.Match[str]) -> str:
        name, kind = match["name"], match["kind"]
        return f"(?P<{name}>{'.+' if kind else kinds.get(name, '[^/]+')})"

    return re.compile(re.sub(r"\{(?P<name>\w+)(?P<kind>:path)?\}", part, path))
