"""Summaries of a session, its pull requests and its budgets for lists, pages and the API.

Control characters are removed from the texts.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from bot.store import QueuedSession, RefusedHost, Session
from bot.text import page_text
from bot.text.refused_hosts import refused_host
from lifecycle.judge.commands import apply_commands
from lifecycle.judge.reasons import advice_on, needs_person
from lifecycle.model.facts import Facts, Pull
from lifecycle.model.policy import Policy
from lifecycle.model.status import CheckState, Status
from lifecycle.read.budgets import BUDGETS, limit_of
from runtimes.host import run_name


class PullSummary(Struct, frozen=True, kw_only=True):
    """A pull request in a summary."""

    number: int
    url: str
    title: str
    state: Annotated[str, Meta(description="`draft`, `open`, `closed` or `merged`.")]
    head: str
    review: str
    merge: str
    checks: Annotated[Mapping[str, int], Meta(description="Number of checks by state.")]
    failed: Annotated[tuple[str, ...], Meta(description="Names of failed checks.")]
    open_threads: int


class AgentInfo(Struct, frozen=True, kw_only=True):
    """An agent's words, the evidence of its activity, and the usage of all runs of its session."""

    summary: str
    evidence: Annotated[str, Meta(description="What its activity was read from.")]
    question: str
    error: str
    since: Annotated[datetime | None, Meta(description="When its activity last changed.")]
    native_id: Annotated[str, Meta(description="The agent's ID of its conversation.")]
    cost_usd: Annotated[float, Meta(description="Over all runs, like the other counts.")]
    tokens: int
    unpriced: Annotated[int, Meta(description="Tokens without a price, which `cost_usd` lacks.")]
    active_seconds: float


class QueuePlace(Struct, frozen=True, kw_only=True):
    """A session's place in the queue for a slot."""

    position: Annotated[int, Meta(description="The position, from 1.")]
    starts_at: Annotated[datetime | None, Meta(description="Estimated start; null if unknown.")]
    waits: Annotated[str, Meta(description="Why it waits.")]
    priority: Annotated[int, Meta(description="By its labels: 1 high, 0 normal, -1 low.")]
    awaited: Annotated[bool, Meta(description="Whether a person asked for the run by a command.")]


class SessionSummary(Struct, frozen=True, kw_only=True):
    """One session in a list."""

    id: str
    project: str
    repository: str
    title: str
    origin: Annotated[
        str, Meta(description="What it was opened for: `issue`, `prompt`, `pull` or `chat`.")
    ]
    issue: Annotated[int, Meta(description="Its number; if 0, the session has no issue.")]
    issue_url: str
    pulls: tuple[PullSummary, ...]
    status: str
    outcome: Annotated[str, Meta(description="Its last status; empty if it has not ended.")]
    since: Annotated[datetime, Meta(description="When `status` last changed.")]
    activity: str
    because: str
    reason: str
    remedy: Annotated[str, Meta(description="What people can do; if empty, nothing is wrong.")]
    needs_person: Annotated[bool, Meta(description="Whether it waits for a person to do that.")]
    blockers: tuple[str, ...]
    requester: str
    agent: Annotated[str, Meta(description="The agent's name; if empty, not assigned yet.")]
    agent_type: str
    agent_info: AgentInfo
    branch: str
    workspace: Annotated[str, Meta(description="Path of the workspace; if empty, not created yet.")]
    handle: Annotated[str, Meta(description="Name of the run's terminal; if empty, no run yet.")]
    run: int
    place: Annotated[QueuePlace | None, Meta(description="Null if it is not queued.")]
    created: datetime
    last_activity: datetime | None
    restored_at: datetime | None
    metadata: Mapping[str, str]


class BudgetUsage(Struct, frozen=True, kw_only=True):
    """How much of a budget with a limit is used."""

    name: Annotated[str, Meta(description="The name of the budget.")]
    spent: float
    limit: float
    says: Annotated[str, Meta(description="The limit in words.")]


class RefusedConnection(Struct, frozen=True, kw_only=True):
    """A host to which the proxy refused to connect a session."""

    host: str  #: If empty, one entry for all hosts after the first 50 of a session.
    port: int
    times: int  #: The number of refused connections.
    first: datetime
    last: datetime
    says: str  #: What was refused, how often, and how to allow it, if it can be.


def summarize(session: Session, queued: QueuedSession | None = None) -> SessionSummary:
    """Return the summary of a session; `queued` is its queue entry if it waits for a slot."""
    return SessionSummary(
        id=session.id,
        project=session.project,
        repository=session.repository,
        title=page_text.line(session.issue.title) or session.id,
        origin=session.origin,
        issue=session.issue.number,
        issue_url=page_text.link(session.issue.url),
        pulls=tuple(map(summarize_pull, session.pulls)),
        status=session.status,
        outcome=session.ended.status if session.ended else "",
        since=session.since,
        activity=session.activity,
        because=page_text.line(session.because),
        reason=session.reason,
        remedy=advice_on(session.reason),
        needs_person=waits_for_person(session),
        blockers=tuple(page_text.line(blocker.sentence) for blocker in session.blockers),
        requester=session.requester,
        agent=session.agent_name,
        agent_type=session.agent_type,
        agent_info=_agent(session),
        branch=session.branch,
        workspace=session.work.path,
        handle=run_name(session.id, session.run) if session.run else "",
        run=session.run,
        place=_place(queued) if queued else None,
        created=session.created,
        last_activity=session.agent.seen or session.agent.since,
        restored_at=session.restored_at,
        metadata={key: page_text.line(value) for key, value in session.metadata.items()},
    )


def waits_for_person(session: Session) -> bool:
    """Whether a session waits for a person. An ended one does so only while its issue is open."""
    wanted = session.ended is None or session.issue.open
    return wanted and needs_person(Status(session.status), session.reason)


def _place(queued: QueuedSession) -> QueuePlace:
    return QueuePlace(
        position=queued.position,
        starts_at=queued.starts_at,
        waits=page_text.line(queued.waits),
        priority=queued.priority,
        awaited=queued.awaited,
    )


def _agent(session: Session) -> AgentInfo:
    agent, spent = session.agent, session.spent_ever
    return AgentInfo(
        summary=page_text.line(agent.summary),
        evidence=page_text.line(agent.evidence),
        question=page_text.block(agent.question),
        error=page_text.line(agent.error),
        since=agent.since,
        native_id=agent.native_id,
        cost_usd=round(spent.cost_usd, 4),
        tokens=spent.tokens,
        unpriced=spent.unpriced,
        active_seconds=round(spent.active_seconds, 1),
    )


def summarize_pull(pull: Pull) -> PullSummary:
    """Return the summary of a pull request."""
    states = [check.state for check in pull.checks]
    failed = (check.name for check in pull.checks if check.state is CheckState.FAILED)
    return PullSummary(
        number=pull.number,
        url=page_text.link(pull.url),
        title=page_text.line(pull.title),
        state="draft" if pull.draft and pull.state == "open" else pull.state,
        head=pull.head,
        review=pull.review,
        merge=pull.merge,
        checks={state: states.count(state) for state in CheckState if state in states},
        failed=tuple(page_text.line(name) for name in failed),
        open_threads=sum(not thread.resolved for thread in pull.threads),
    )


def budget_usage(facts: Facts, policy: Policy, now: datetime) -> tuple[BudgetUsage, ...]:
    """Return a session's budgets that have a limit. Limits include raises by `budget` commands."""
    applied = apply_commands(facts, policy, now).facts
    limits = ((row, limit_of(row, applied, policy, now)) for row in BUDGETS)
    return tuple(
        BudgetUsage(
            name=row.name,
            spent=round(float(row.spent(facts, policy)), 4),
            limit=float(limit),
            says=row.says.format(limit=limit),
        )
        for row, limit in limits
        if limit
    )


def refused_connections(
    refused: Iterable[RefusedHost], project: str
) -> tuple[RefusedConnection, ...]:
    """Return the hosts that the proxy refused to a session, with words about each.

    If a host can be allowed, the words say how, in the settings of `project`.
    """
    return tuple(
        RefusedConnection(
            host=page_text.line(one.host),
            port=one.port,
            times=one.times,
            first=one.first,
            last=one.last,
            says=refused_host(
                page_text.line(one.host), one.port, one.times, project, public=one.public
            ),
        )
        for one in refused
    )
