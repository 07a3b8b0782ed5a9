"""Implements `mergewright ls` and `mergewright wait`, by the database or a server's API."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Final

from rich.console import Group

from bot.cli import context, screens
from bot.cli.options import PROBLEM, CliError
from bot.cli.progress import progress
from bot.cli.reading import reader
from bot.cli.remote import RemoteServer
from bot.show.session_summary import SessionSummary, summarize
from bot.show.waiting import Goal, is_over, is_reached
from bot.store import SessionQuery
from config.contradictions import nearest
from lifecycle.model.status import Status

_POLL_SECONDS = 0.5
_GOALS: Final[Mapping[Goal, str]] = {
    "merged": "is merged",
    "needs_input": "needs a person",
}


def sessions(config: Path | None, server: str, query: SessionQuery, *, as_json: bool) -> None:
    """Print the sessions that match. Raises `CliError`.

    `server` is the URL of a server; empty means the local database.
    """
    with reader(config, server) as source:
        found = source.sessions(query)
        projects = source.projects() if query.project and not found else ()
        notices = screens.notices(source.incidents(), source.freezes())
    if not found and query.project and query.project not in projects:
        raise CliError(f"no project {query.project!r}; {nearest(query.project, list(projects))}")
    listing = screens.listing(found, _empty(query))
    screens.report(found, Group(*notices, listing), as_json=as_json)


def checked(statuses: Sequence[str]) -> tuple[str, ...]:
    """Return the names of statuses unchanged. Raises `CliError` if one is unknown."""
    known = [str(status) for status in Status]
    for status in statuses:
        if status not in known:
            raise CliError(f"--status {status}: {nearest(status, known)}")
    return tuple(statuses)


def _empty(query: SessionQuery) -> str:
    if query.statuses or query.project or query.agent or query.person or query.search:
        return "No sessions match."
    if query.scope == "all":
        return "No sessions yet."
    return "No live sessions. Use --all to include ended ones."


def wait(
    config: Path | None, server: str, id: str, goal: Goal, timeout: float, *, as_json: bool
) -> bool:
    """Wait until a session reaches `goal` or ends, and print the session.

    Returns whether the session reached `goal`. `server` is the URL of a server; if it is empty, the
    local database is read. After `timeout` seconds, raises `CliError`; with `as_json`, prints the
    session and returns False instead. Any other failure raises `CliError`, with `as_json` or not.
    """
    until = time.monotonic() + timeout
    with progress(f"Waiting until {id} {_GOALS[goal]} ..."):
        if server:
            with closing(RemoteServer(server)) as remote:
                session = remote.wait(id, goal, until)
        else:
            session = _wait(config, id, goal, until)
    if not is_over(session, goal) and not as_json:
        raise CliError(
            f"gave up after {timeout:g} s: the status of {id} is {session.status}", PROBLEM
        )
    screen = screens.headline(session.id, session.status, session.because)
    screens.report(session, screen, as_json=as_json)
    return is_reached(session, goal)


def _wait(config: Path | None, id: str, goal: Goal, until: float) -> SessionSummary:
    with context.store(context.settings(config)) as store:
        while True:
            session = summarize(context.session(store, id))
            if is_over(session, goal) or (left := until - time.monotonic()) <= 0:
                return session
            time.sleep(min(_POLL_SECONDS, left if left < inf else _POLL_SECONDS))
