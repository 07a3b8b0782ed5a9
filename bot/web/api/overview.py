"""Handlers that read agents, projects, costs, the queue, health, freezes and deliveries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

from litestar.openapi.spec import Example
from litestar.params import FromQuery, PathParameter, QueryParameter
from msgspec import Meta, Struct

from bot.intake.dry_run import DryRun
from bot.show.agents import AgentWeek
from bot.show.costs import PriceNotes
from bot.show.deliveries import DeliveryDetail, DeliveryEntry
from bot.show.health import HealthReport
from bot.show.projects import ProjectDetail, ProjectEntry
from bot.store import (
    AgentRecord,
    DeliveryQuery,
    Freeze,
    Incident,
    QueuedSession,
    UsageFilter,
    UsageTotal,
)
from bot.web.api.operations import AllViews, Cursor, DeliveryPath, Limit, read
from bot.web.reach import PERMISSIONS
from bot.web.visitor import anywhere, everywhere
from lifecycle.model.roles import Role

_UsageGroup = Annotated[
    Literal["session", "run", "agent", "issue", "repository", "person", "day"],
    QueryParameter(description="What usage is grouped by: there is one total for each."),
]


_Project = Annotated[
    str, PathParameter(description="The name of a project.", examples=[Example(value="widgets")])
]
_Person = Annotated[str, QueryParameter(description="The login of the requester.")]
_DAY: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_First = Annotated[
    str | None, QueryParameter(name="from", pattern=_DAY, description="The first day (UTC).")
]
_Last = Annotated[
    str | None, QueryParameter(name="to", pattern=_DAY, description="The last day (UTC).")
]
_Agent = Annotated[
    str, PathParameter(description="The name of an agent.", examples=[Example(value="ada")])
]


_DeliveryState = Annotated[
    Literal["waiting", "done", "failed", "ignored"] | None,
    QueryParameter(name="state", description="`done` includes `ignored`, which had no effect."),
]
#: The store's names of delivery states that the API names differently.
_STATES: Final[Mapping[str, str]] = {"waiting": "new"}


class DeliveryPage(Struct, frozen=True, kw_only=True):
    """A page of deliveries."""

    items: list[DeliveryEntry]
    cursor: Annotated[str | None, Meta(description="For the next page; if null, this is the last.")]


class Account(Struct, frozen=True, kw_only=True):
    """For whom a token acts, and what it allows."""

    login: Annotated[str, Meta(description="The login on GitHub; empty for the page token.")]
    most: Annotated[str, Meta(description="The permission that the token allows at most.")]
    expires: Annotated[datetime | None, Meta(description="When a personal token expires.")]
    permissions: Annotated[
        Mapping[str, str],
        Meta(description="What it may do in each project: read, triage, write or admin."),
    ]


@read("/account", "bot", anywhere(Role.READ))
def get_account(views: AllViews) -> Account:
    """Show for whom a token acts, until when, and its permission in each project."""
    visitor = views.reach.visitor
    return Account(
        login=visitor.login,
        most=PERMISSIONS[visitor.most],
        expires=visitor.expires,
        permissions={name: PERMISSIONS[role] for name, role in views.reach.roles().items()},
    )


@read("/agents", "agents", anywhere(Role.READ))
def list_agents(views: AllViews) -> list[AgentRecord]:
    """List the agents with their sessions, outcomes and cost."""
    return views.agents()


@read("/agents/{name:str}", "agents", anywhere(Role.READ))
def get_agent(views: AllViews, name: _Agent) -> AgentRecord:
    """Show one agent with its sessions, outcomes and cost."""
    return views.agent(name).record


@read("/agents/{name:str}/types", "agents", anywhere(Role.READ))
def list_agent_types(views: AllViews, name: _Agent) -> list[str]:
    """List the agent types that an agent may run.

    The list is empty if the agent is no longer configured.
    """
    return list(views.agent(name).types)


@read("/agents/{name:str}/weeks", "agents", anywhere(Role.READ))
def list_agent_weeks(views: AllViews, name: _Agent) -> list[AgentWeek]:
    """List how the sessions of an agent ended, week by week, oldest week first."""
    return list(views.agent(name).weeks)


@read("/projects", "bot", anywhere(Role.READ))
def list_projects(views: AllViews) -> list[ProjectEntry]:
    """List the projects with their repositories."""
    return list(views.project_entries())


@read("/projects/{project:str}", "bot", anywhere(Role.READ))
def get_project(views: AllViews, project: _Project) -> ProjectDetail:
    """Show a project: its labels, agents and sessions, and where its policy is set."""
    return views.project_detail(project)


@read("/usage", "costs", anywhere(Role.READ))
def list_usage(
    views: AllViews,
    by: _UsageGroup = "session",
    session: FromQuery[str] = "",
    project: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    person: _Person = "",
    first: _First = None,
    last: _Last = None,
) -> list[UsageTotal]:
    """Sum up model usage and cost.

    Filters are combined. Deleted sessions are included; projects that you may not see are not.
    """
    among = UsageFilter(
        repository=views.project(project).repository if project else "",
        agent=agent,
        person=person,
        first=first or "",
        last=last or "",
        repositories=views.reach.repositories(),
    )
    return views.store.usage.totals(by, session, among)


@read("/prices", "costs", anywhere(Role.READ))
def get_prices(views: AllViews, session: FromQuery[str] = "") -> PriceNotes:
    """Show which models have no price, and how old the configured prices are."""
    return views.prices(session)


@read("/health", "bot", everywhere(Role.READ))
def get_health(views: AllViews) -> HealthReport:
    """Show whether the bot is healthy: backlogs, incidents, workers, rate limits, isolation."""
    return views.health()


@read("/queue", "bot", anywhere(Role.READ))
def list_queue(views: AllViews) -> list[QueuedSession]:
    """List queued sessions, why they wait and when they may start."""
    return views.queue()


@read("/incidents", "bot", everywhere(Role.READ))
def list_incidents(views: AllViews, limit: Limit = 100) -> list[Incident]:
    """List the last incidents of the whole bot, open and closed, newest first."""
    return views.store.incidents.recent(limit)


@read("/freezes", "bot", anywhere(Role.READ))
def list_freezes(views: AllViews) -> list[Freeze]:
    """List the freezes in effect."""
    return views.freezes.all()


@read("/deliveries", "bot", anywhere(Role.READ))
def list_deliveries(
    views: AllViews,
    among: _DeliveryState = None,
    event: FromQuery[str] = "",
    project: FromQuery[str] = "",
    cursor: Cursor = None,
    limit: Limit = 50,
) -> DeliveryPage:
    """List webhook deliveries with their effects, newest first."""
    query = DeliveryQuery(
        state=_STATES.get(among or "", among or ""),
        event=event,
        cursor=cursor or "",
        limit=limit,
    )
    if project:
        views.project(project)
    items, after = views.deliveries.page(query, project)
    return DeliveryPage(items=items, cursor=after or None)


@read("/deliveries/{id:str}", "bot", anywhere(Role.READ))
def get_delivery(views: AllViews, id: DeliveryPath) -> DeliveryDetail:
    """Show a webhook delivery, and what happened after it in the sessions that it concerns."""
    return views.deliveries.detail(id)


@read("/deliveries/{id:str}/dry-run", "bot", everywhere(Role.READ))
def try_delivery(views: AllViews, id: DeliveryPath) -> DryRun:
    """Show what a webhook delivery would cause now, or why it would have no effect.

    Nothing is changed.
    """
    return views.deliveries.dry_run(id)
