"""Handlers that read what concerns more than one session: agents, projects, costs, the queue."""

from typing import Annotated, Final, Literal

from litestar.exceptions import NotFoundException
from litestar.openapi.spec import Example
from litestar.params import FromQuery, PathParameter, QueryParameter
from msgspec import Struct

from bot.store import (
    AgentRecord,
    FailedDelivery,
    Freeze,
    Incident,
    QueuedSession,
    UsageFilter,
    UsageTotal,
)
from bot.web.api.operations import MOST_ITEMS, AllViews, Limit, read

_UsageGroup = Annotated[
    Literal["session", "run", "agent", "issue", "repository", "person", "day"],
    QueryParameter(description="What usage is grouped by: there is one total for each."),
]


_Person = Annotated[str, QueryParameter(description="The login of the requester.")]
_DAY: Final = "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"
_First = Annotated[
    str, QueryParameter(name="from", pattern=_DAY, description="The first day (UTC).")
]
_Last = Annotated[str, QueryParameter(name="to", pattern=_DAY, description="The last day (UTC).")]
_Agent = Annotated[
    str, PathParameter(description="The name of an agent.", examples=[Example(value="ada")])
]


class ConfiguredProject(Struct, frozen=True, kw_only=True):
    """A project."""

    name: str
    repository: str
    agent: str


@read("/agents", "agents")
def list_agents(views: AllViews) -> list[AgentRecord]:
    """List the agents with their sessions, outcomes and cost."""
    return views.agents()


@read("/agents/{name:str}", "agents")
def get_agent(views: AllViews, name: _Agent) -> AgentRecord:
    """Show one agent with its sessions, outcomes and cost."""
    for agent in views.agents():
        if agent.agent == name:
            return agent
    raise NotFoundException(f"No agent {name[:80]!r}.")


@read("/projects", "bot")
def list_projects(views: AllViews) -> list[ConfiguredProject]:
    """List the projects with their repositories."""
    return [
        ConfiguredProject(name=name, repository=one.repository, agent=one.agent)
        for name, one in views.projects().items()
    ]


@read("/usage", "costs")
def list_usage(
    views: AllViews,
    by: _UsageGroup = "session",
    session: FromQuery[str] = "",
    project: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    person: _Person = "",
    first: _First = "",
    last: _Last = "",
) -> list[UsageTotal]:
    """Sum up model usage and cost.

    Filters are combined. What deleted sessions cost is included.
    """
    among = UsageFilter(
        repository=views.project(project).repository if project else "",
        agent=agent,
        person=person,
        first=first,
        last=last,
    )
    return views.store.usage.totals(by, session, among)


@read("/queue", "bot")
def list_queue(views: AllViews) -> list[QueuedSession]:
    """List queued sessions, why they wait and when they may start."""
    return views.queue()


@read("/incidents", "bot")
def list_incidents(views: AllViews, limit: Limit = 100) -> list[Incident]:
    """List the last incidents of the whole bot, open and closed, newest first."""
    return views.store.incidents.recent(limit)


@read("/freezes", "bot")
def list_freezes(views: AllViews) -> list[Freeze]:
    """List the freezes in effect."""
    return views.store.freezes.all()


@read("/deliveries", "bot")
def list_failed_deliveries(views: AllViews, limit: Limit = MOST_ITEMS) -> list[FailedDelivery]:
    """List the webhook deliveries that could not be decoded, newest first."""
    return views.store.deliveries.failed(limit)
