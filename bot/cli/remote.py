"""Calls the API of a remote server, for commands with `--server`."""

import os
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from bot.cli import logins
from bot.cli.options import PROBLEM, CliError
from bot.intake.spawning import SpawnRequest
from bot.show.board import Board
from bot.show.command_outcome import CommandOutcome
from bot.show.health import HealthReport
from bot.show.session_summary import SessionSummary
from bot.show.waiting import Goal, is_over
from bot.store import Freeze, SessionQuery
from config.load import VARIABLES, ConfigError, secret

T = TypeVar("T")

_OTHER_VERSION = (
    "does not offer this: its version of Mergewright differs from yours; update the older"
)

_MOST_ITEMS = 200
#: The longest request of `wait`, shorter than the time limits of common reverse proxies.
_WAIT_SECONDS = 25.0
_TIMEOUT_SECONDS = _WAIT_SECONDS + 10
_TOKEN = VARIABLES["page_token"]
#: The server's remedies refer authors of API requests to this file. Commands do not print such
#: remedies.
_API_REFERENCE = "docs/api.md"


class _Page(Struct):
    items: list[SessionSummary]
    cursor: str | None


class RemoteSession(Struct):
    """The part of the API's answer about a session that the commands use."""

    session: SessionSummary


class _Project(Struct):
    name: str


class _Accepted(Struct):
    key: str


class _Refusal(Struct):
    detail: str
    remedy: str = ""


class RemoteAccount(Struct):
    """For whom a token acts, and what it allows."""

    login: str  #: If empty, the token is the page token.
    most: str  #: The token's scope.
    expires: datetime | None
    permissions: dict[str, str]  #: By project.

    def public(self) -> dict[str, object]:
        """Return all fields by name."""
        return asdict(self)


class TokenRefused(CliError):
    """The server does not know the token, or the token has expired."""


class Forbidden(CliError):
    """The token, or the person for whom it acts, is not allowed to do what is requested."""


class NotFound(CliError):
    """The server does not have the requested object, or the person may not see it."""


def no_session(id: str) -> str:
    """Return the error text for a session that the server does not have."""
    return f"no session {id!r}; `mergewright ls --all` lists all sessions"


class RemoteServer:
    """A server's API. Its methods raise `CliError`."""

    def __init__(self, url: str, token: str = "") -> None:
        """Take the server's URL, and a token for it.

        If `token` is empty, uses the token that `mergewright login` stored for this server, or
        else the token in the environment, which may belong to another server.
        """
        self.url = logins.server_url(url)
        self._remedy = "use another one"
        token = token or self._known_token()
        if not token.isprintable():
            raise CliError(f"the token for {self.url} contains control characters; copy it again")
        self._url = f"{self.url}/api/v1/"
        self._client = httpx.Client(
            base_url=self._url,
            headers={b"authorization": f"Bearer {token}".encode()},
            timeout=_TIMEOUT_SECONDS,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, kind: type[T], **wanted: object) -> T:
        """Return an object of the API as `kind`.

        `wanted` are parameters of the request; those that are empty texts or None are left out.
        """
        given = {name: value for name, value in wanted.items() if value not in ("", None)}
        return self._send("GET", path, kind, params=given)

    def set_metadata(self, id: str, values: Mapping[str, str]) -> dict[str, str]:
        """Set keys of a session's metadata, and return all. An empty value removes a key."""
        try:
            return self._send(
                "PATCH", f"sessions/{quote(id)}/metadata", dict[str, str], json=dict(values)
            )
        except NotFound:
            raise CliError(no_session(id)) from None

    def retry_delivery(self, id: str) -> bool:
        """Have a failed delivery processed again. Returns False if it has not failed."""
        found = self._send("PUT", f"deliveries/{quote(id, safe='')}/retry", dict[str, bool])
        return found["retried"]

    def account(self) -> RemoteAccount:
        """Return for whom the token acts, and what it allows."""
        return self._send("GET", "account", RemoteAccount)

    def sessions(self, query: SessionQuery) -> list[SessionSummary]:
        """Return the sessions that match, newest first, at most `query.limit`.

        The query's `sort`, `cursor` and `projects` are ignored.
        """
        found, cursor = list[SessionSummary](), ""
        while len(found) < query.limit:
            wanted = {
                "project": query.project,
                "agent": query.agent,
                "person": query.person,
                "search": query.search,
                "scope": query.scope,
                "status": query.statuses,
                "limit": min(_MOST_ITEMS, query.limit - len(found)),
                "cursor": cursor,
            }
            given = {name: value for name, value in wanted.items() if value}
            page = self._send("GET", "sessions", _Page, params=given)
            found += page.items
            if not (cursor := page.cursor or ""):
                break
        return found

    def projects(self) -> list[str]:
        """Return the names of the projects that the person may see."""
        return [one.name for one in self._send("GET", "projects", list[_Project])]

    def board(self, search: str) -> Board:
        """Return the board, with the sessions that a search selects."""
        return self._send("GET", "board", Board, params={"search": search} if search else {})

    def events(self) -> Iterator[None]:
        """Yield when the stream of events is open, then at each event, until the stream ends."""
        try:
            with self._client.stream("GET", "events") as response:
                if not response.is_success:
                    response.read()
                    raise self._failure(response)
                yield None
                for line in response.iter_lines():
                    if line.startswith("data:"):
                        yield None
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None

    def wait(self, id: str, goal: Goal, until: float) -> SessionSummary:
        """Return a session once it has reached `goal` or has ended, at the latest at `until`.

        `until` is a value of `time.monotonic`.
        """
        while True:
            seconds = max(0.0, min(_WAIT_SECONDS, until - time.monotonic()))
            try:
                found = self._session(id, wait=goal, timeout=seconds).session
            except NotFound:
                raise CliError(no_session(id)) from None
            if is_over(found, goal) or time.monotonic() >= until:
                return found

    def find(self, id: str) -> RemoteSession | None:
        """Return a session, or None if there is none with this ID."""
        try:
            return self._session(id)
        except NotFound:
            return None

    def command(self, id: str, kind: str, text: str, head: str = "") -> str:
        """Give a session a command. Returns the command's key.

        `text` is the argument of the command. `head` is the commit that the person has seen, for
        `merge`; if it is empty, the server takes the current head.
        """
        path = f"sessions/{quote(id)}/commands"
        return self._post(path, {"kind": kind, "text": text, "head": head})

    def start(self, project: str, issue: int, agent: str) -> str:
        """Start an agent on an issue. Returns the command's key."""
        return self._post("sessions", {"project": project, "issue": issue, "agent": agent})

    def spawn(self, wanted: SpawnRequest) -> str:
        """Request a session. Returns the key of the command that opens it."""
        body = {name: value for name, value in asdict(wanted).items() if name != "repository"}
        return self._post("sessions", body)

    def outcome(self, key: str) -> CommandOutcome:
        """Return the outcome of a command so far."""
        return self._send("GET", f"commands/{quote(key)}", CommandOutcome)

    def freezes(self) -> list[Freeze]:
        """Return the freezes that the person may see."""
        return self._send("GET", "freezes", list[Freeze])

    def set_frozen(self, scope: str, *, frozen: bool) -> list[Freeze]:
        """Freeze or unfreeze a project (`project:NAME`) or everything (empty `scope`).

        Returns the freezes that the owner of the token may see after the change.
        """
        path = f"freezes/{quote(scope or 'all')}"
        return self._send("PUT" if frozen else "DELETE", path, list[Freeze])

    def health(self) -> HealthReport:
        """Return the server's health: whether it is healthy, and the states behind this."""
        return self._send("GET", "health", HealthReport)

    def _known_token(self) -> str:
        """Return the stored token of this server, or that of the environment."""
        if stored := logins.read().servers.get(self.url):
            self._remedy = f"run: mergewright login --server {self.url}"
            return stored.token
        try:
            token = secret(_TOKEN, os.environ)
        except ConfigError as error:
            raise CliError(str(error)) from None
        if not token:
            login = f"run `mergewright login --server {self.url}`"
            raise CliError(f"no token for {self.url}: {login}, or set {_TOKEN} or {_TOKEN}_FILE")
        self._remedy = f"set {_TOKEN} to the server's page token or to a personal token"
        return token

    def _session(self, id: str, **params: object) -> RemoteSession:
        return self._send("GET", f"sessions/{quote(id)}", RemoteSession, params=params)

    def _post(self, path: str, body: Mapping[str, object]) -> str:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        given = {name: value for name, value in body.items() if value}
        return self._send("POST", path, _Accepted, json=given, headers=headers).key

    def _send(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        try:
            response = self._client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from None
        if not response.is_success:
            raise self._failure(response)
        return self._decoded(response, kind)

    def _decoded(self, response: httpx.Response, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.ValidationError:
            raise CliError(f"{self.url} {_OTHER_VERSION}", PROBLEM) from None
        except msgspec.MsgspecError:
            status = f"{response.status_code} {response.reason_phrase}"
            raise CliError(f"{self._url}: no Mergewright API there ({status})", PROBLEM) from None

    def _unreachable(self, error: httpx.HTTPError) -> CliError:
        return CliError(f"{self.url} cannot be reached: {error or type(error).__name__}", PROBLEM)

    def _failure(self, response: httpx.Response) -> CliError:
        """Return the error to raise for an unsuccessful response, with the server's explanation."""
        problem = self._decoded(response, _Refusal)
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            return TokenRefused(f"{self._url} refuses the token; {self._remedy}", PROBLEM)
        remedy = "" if _API_REFERENCE in problem.remedy else problem.remedy
        says = f"{problem.detail} {remedy}".rstrip()
        match response.status_code:
            case HTTPStatus.NOT_FOUND:
                if problem.detail == HTTPStatus.NOT_FOUND.phrase:  # No such route.
                    return CliError(f"{self.url} {_OTHER_VERSION}", PROBLEM)
                return NotFound(says)
            case HTTPStatus.FORBIDDEN:
                return Forbidden(says, PROBLEM)
            case HTTPStatus.BAD_REQUEST:
                return CliError(says)
        return CliError(says, PROBLEM)
