"""Handlers that read sessions, their history and their runs."""

import asyncio
from contextlib import aclosing
from typing import Annotated

from litestar.di import NamedDependency
from litestar.params import FromQuery, QueryParameter
from msgspec import Meta, Struct

from bot.show.board import Board, BoardFilter
from bot.show.run_log import LogPage
from bot.show.session_detail import LAST_EVENT, ExplainedSession, HistoryEntry, SessionDetail
from bot.show.session_summary import SessionSummary
from bot.show.terminal import StepLog
from bot.show.waiting import Goal, is_over
from bot.store import SessionQuery, SessionScope, SessionSort
from bot.web.api.operations import (
    MOST_ITEMS,
    AllViews,
    Cursor,
    Limit,
    RunNumber,
    SessionPath,
    read,
)
from bot.web.live import Watchers
from bot.web.views import LAST_MESSAGE
from bot.web.visitor import anywhere, in_session
from lifecycle.model.roles import Role
from lifecycle.model.status import Status
from runtimes.agents.shared.messages import Message

_TAG = "sessions"
_MOST_SECONDS = 600.0
_MOST_MESSAGES = 1000
_LAST_BYTE = 2**53

_Scope = Annotated[
    SessionScope,
    QueryParameter(
        name="scope",
        description="`current`: not ended, or waiting for a person. `waiting`: only the latter.",
    ),
]
_Sort = Annotated[
    SessionSort,
    QueryParameter(
        description="By `created`, or by `since`, the time of the status. With `-`: newest first."
    ),
]
_Search = Annotated[
    str,
    QueryParameter(
        max_length=200,
        description="A part of the ID, the title or the branch, or the number of an issue or"
        " pull request.",
    ),
]
_Seconds = Annotated[
    float, QueryParameter(gt=-1, le=_MOST_SECONDS, description="How long to wait, in seconds.")
]


class SessionListPage(Struct, frozen=True, kw_only=True):
    """A page of sessions."""

    items: list[SessionSummary]
    cursor: Annotated[str | None, Meta(description="For the next page; if null, this is the last.")]


class HistoryPage(Struct, frozen=True, kw_only=True):
    """A page of a session's history."""

    items: list[HistoryEntry]
    cursor: Annotated[int | None, Meta(description="For the next page; if null, this is the last.")]


class TranscriptPage(Struct, frozen=True, kw_only=True):
    """A page of messages from the conversation of a run."""

    items: list[Message]
    cursor: Annotated[
        int, Meta(description="For the next page; always set, because the conversation may grow.")
    ]


@read("/sessions", _TAG, anywhere(Role.READ))
def list_sessions(
    views: AllViews,
    project: FromQuery[str] = "",
    agent: Annotated[str, QueryParameter(description="An agent's name, or an agent type.")] = "",
    status: FromQuery[list[Status] | None] = None,
    person: Annotated[str, QueryParameter(description="The login of the requester.")] = "",
    search: _Search = "",
    among: _Scope = "all",
    sort: _Sort = "-created",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> SessionListPage:
    """List sessions.

    Filters are combined; `status` may be repeated.
    """
    query = SessionQuery(
        project=project,
        agent=agent,
        statuses=tuple(status or ()),
        person=person,
        search=search,
        scope=among,
        sort=sort,
        cursor=cursor or "",
        limit=limit,
    )
    rows, after = views.page(query)
    return SessionListPage(items=rows, cursor=after or None)


@read("/board", _TAG, anywhere(Role.READ))
def get_board(
    views: AllViews,
    project: FromQuery[str] = "",
    agent: Annotated[str, QueryParameter(description="An agent's name, or an agent type.")] = "",
    person: Annotated[str, QueryParameter(description="The login of the requester.")] = "",
    search: _Search = "",
) -> Board:
    """Show the board: sessions grouped by status, each with what a person can do next.

    Each group lists only its first sessions. All sessions that wait for a person belong to the
    first group.
    """
    return views.board(BoardFilter(project=project, agent=agent, person=person, search=search))


@read("/sessions/{id:str}", _TAG, in_session(Role.READ))
async def get_session(
    views: AllViews,
    watchers: NamedDependency[Watchers],
    id: SessionPath,
    wait: Annotated[
        Goal | None,
        QueryParameter(description="Wait until the session is merged, or until it needs a person."),
    ] = None,
    timeout: _Seconds = 30.0,  # noqa: ASYNC109 - it is the name of a parameter
) -> SessionDetail:
    """Show everything about a session, or wait for it.

    With `wait`, the response comes when the session has reached this goal, when it has ended
    without it, or after `timeout` seconds. `session.outcome` and `session.needs_person` say which.
    """
    if wait is not None:
        try:
            async with asyncio.timeout(timeout):
                await _reached(views, watchers, id, wait)
        except TimeoutError:
            pass
    return await asyncio.to_thread(views.detail, id)


async def _reached(views: AllViews, watchers: Watchers, id: str, goal: Goal) -> None:
    async with aclosing(watchers.watch()) as changes:
        async for ids in changes:
            if ids and id not in ids:
                continue
            if is_over(await asyncio.to_thread(views.row, id), goal):
                return


@read("/sessions/{id:str}/history", _TAG, in_session(Role.READ))
def list_history(
    views: AllViews,
    id: SessionPath,
    cursor: Annotated[int, QueryParameter(gt=-1, le=LAST_EVENT)] = LAST_EVENT,
    limit: Limit = 50,
) -> HistoryPage:
    """List what happened in a session, newest first."""
    views.session(id)
    entries = views.history(id, cursor, limit + 1)
    last = entries[limit - 1].id if len(entries) > limit else None
    return HistoryPage(items=entries[:limit], cursor=last)


@read("/sessions/{id:str}/why", _TAG, in_session(Role.READ))
def explain_session(views: AllViews, id: SessionPath) -> ExplainedSession:
    """Explain a session's status: its facts, and the decision that follows from them now."""
    return views.explained(id)


@read("/sessions/{id:str}/steps", _TAG, in_session(Role.READ))
def list_steps(views: AllViews, id: SessionPath) -> list[StepLog]:
    """List the last attempt at each of `setup` and `teardown`, with the end of its output."""
    return views.steps(id)


@read("/sessions/{id:str}/transcript", _TAG, in_session(Role.READ))
def list_messages(
    views: AllViews,
    id: SessionPath,
    run: RunNumber = 0,
    cursor: Annotated[int, QueryParameter(gt=-1, le=LAST_MESSAGE)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=_MOST_MESSAGES)] = 100,
) -> TranscriptPage:
    """List the messages of a run's conversation, oldest first.

    The page has a `cursor` even if it has no messages, so that you can follow a conversation.
    """
    messages = views.transcript(id, run, cursor, limit)
    return TranscriptPage(items=messages, cursor=cursor + len(messages))


@read("/sessions/{id:str}/log", _TAG, in_session(Role.READ))
def read_log(
    views: AllViews,
    id: SessionPath,
    run: RunNumber = 0,
    cursor: Annotated[
        int | None,
        QueryParameter(
            gt=-1,
            le=_LAST_BYTE,
            description="The `cursor` of the page before; 0 for the beginning. Without it: the"
            " last lines.",
        ),
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=10 * MOST_ITEMS)] = MOST_ITEMS,
) -> LogPage:
    """Read the lines that a run's program printed, oldest first."""
    return views.log(id, run, cursor, limit)
