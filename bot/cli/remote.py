"""Calls the API of a remote server, for commands with `--server`."""

import os
import time
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from bot.cli.options import LOOPBACK, PROBLEM, CliError
from bot.intake.spawning import SpawnRequest
from bot.show.command_outcome import CommandOutcome
from bot.show.health import HealthReport
from bot.show.session_summary import SessionSummary
from bot.show.waiting import Goal, is_over
from bot.store import Freeze, SessionQuery
from config.load import VARIABLES, ConfigError, secret

T = TypeVar("T")

_MOST_ITEMS = 200
#: The longest request of `wait`, shorter than the time limits of common reverse proxies.
_WAIT_SECONDS = 25.0
_TIMEOUT_SECONDS = _WAIT_SECONDS + 10
_TOKEN = VARIABLES["page_token"]
#: Remedies of the server name this file, for authors of API requests. Commands write their own.
_API_REFERENCE = "docs/api.md"


class _Page(Struct):
    items: list[SessionSummary]
    cursor: str | None


class RemoteSession(Struct):
    """The parts of a session that commands use."""

    session: SessionSummary


class _Project(Struct):
    name: str


class _Accepted(Struct):
    key: str


class _Refusal(Struct):
    detail: str
    remedy: str = ""


class _NotFound(CliError):
    """The server does not have the requested object."""


def no_session(id: str) -> str:
    """Return the text of the error about a session that the server does not have."""
    return f"no session {id!r}; `mergewright ls --all` lists all sessions"


class RemoteServer:
    """A server's API. Its methods raise `CliError`."""

    def __init__(self, url: str) -> None:
        """Take the server's URL. The token is read from the environment, or a file named there."""
        try:
            token = secret(_TOKEN, os.environ)
        except ConfigError as error:
            raise CliError(str(error)) from None
        if not token:
            raise CliError(f"no token for {url}: set {_TOKEN} or {_TOKEN}_FILE")
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise CliError(f"--server {url}: {error}") from None
        if not address.host or address.scheme not in ("http", "https"):
            raise CliError(f"--server {url}: expected a URL such as https://bot.example")
        if address.scheme != "https" and address.host not in LOOPBACK:
            raise CliError(f"--server {url}: use https, so that nobody reads the token on its way")
        self._url = url.rstrip("/") + "/api/v1/"
        self._client = httpx.Client(
            base_url=self._url,
            headers={b"authorization": f"Bearer {token}".encode()},
            timeout=_TIMEOUT_SECONDS,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def sessions(self, query: SessionQuery) -> list[SessionSummary]:
        """Return the sessions that match, read page by page."""
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
        """Return the names of the projects."""
        return [one.name for one in self._send("GET", "projects", list[_Project])]

    def wait(self, id: str, goal: Goal, until: float) -> SessionSummary:
        """Return a session once it is at `goal` or has ended, or at `until` (`time.monotonic`)."""
        while True:
            seconds = max(0.0, min(_WAIT_SECONDS, until - time.monotonic()))
            try:
                found = self._session(id, wait=goal, timeout=seconds).session
            except _NotFound:
                raise CliError(no_session(id)) from None
            if is_over(found, goal) or time.monotonic() >= until:
                return found

    def find(self, id: str) -> RemoteSession | None:
        """Return a session, or None if there is none with this ID."""
        try:
            return self._session(id)
        except _NotFound:
            return None

    def command(self, id: str, kind: str, text: str, head: str = "") -> str:
        """Give a session a command. Returns the command's key."""
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
        """Return what became of a command so far."""
        return self._send("GET", f"commands/{quote(key)}", CommandOutcome)

    def freezes(self) -> list[Freeze]:
        """Return all freezes."""
        return self._send("GET", "freezes", list[Freeze])

    def set_frozen(self, scope: str, *, frozen: bool) -> list[Freeze]:
        """Freeze or unfreeze a scope (see `Freeze`). Returns all freezes."""
        path = f"freezes/{quote(scope or 'all')}"
        return self._send("PUT" if frozen else "DELETE", path, list[Freeze])

    def health(self) -> HealthReport:
        """Return whether the server is healthy."""
        return self._send("GET", "health", HealthReport)

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
            raise CliError(f"{self._url}: {error or type(error).__name__}", PROBLEM) from None
        try:
            if not response.is_success:
                raise _failure(response, self._url)
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.MsgspecError:
            status = f"{response.status_code} {response.reason_phrase}"
            raise CliError(f"{self._url}: no Mergewright API there ({status})", PROBLEM) from None


def _failure(response: httpx.Response, url: str) -> CliError:
    """Return the error of a response in the form for the command line."""
    problem = msgspec.json.decode(response.content, type=_Refusal)
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return CliError(f"{url} refuses the token of {_TOKEN}; use the server's own", PROBLEM)
    remedy = "" if _API_REFERENCE in problem.remedy else problem.remedy
    says = f"{problem.detail} {remedy}".rstrip()
    match response.status_code:
        case HTTPStatus.NOT_FOUND:
            return _NotFound(says)
        case HTTPStatus.BAD_REQUEST:
            return CliError(says)
    return CliError(says, PROBLEM)
