"""The pages about more than one session: agents, projects, costs, deliveries and health."""

from datetime import date, timedelta
from functools import partial
from typing import Annotated, Final

from litestar import MediaType, Request, Response, Router, get
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import FromPath, FromQuery, QueryParameter

from bot.intake.events import EVENTS
from bot.show.costs import DEFAULT_DAYS, MOST_DAYS, CostFilter, as_csv, days_until, ranges
from bot.store import DeliveryQuery, SessionQuery
from bot.web.access import Access
from bot.web.api.operations import AllViews, Cursor
from bot.web.rendering import navigation, templates
from bot.web.views import Views
from bot.web.visitor import Visitor, anywhere, everywhere
from config.repository import PATH
from lifecycle.model.roles import Role

_Request = Request[Visitor, object, State]
#: A field of a filter.
_Word = Annotated[str, QueryParameter(max_length=400)]
_SESSIONS, _DELIVERIES = 25, 40  #: The most on one page.
_DAY: Final = "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"
_First = Annotated[str, QueryParameter(name="from", pattern=_DAY)]
_Last = Annotated[str, QueryParameter(name="to", pattern=_DAY)]


def overview_routes(access: Access) -> Router:
    """Return the routes of the pages about more than one session."""
    render = templates()
    page = partial(get, guards=[access.guard], media_type=MediaType.HTML, sync_to_thread=True)

    def shown(views: Views, name: str, **values: object) -> str:
        return render(name, pages=navigation(views.reach), **values)

    @page("/agents", opt=anywhere(Role.READ))
    def agents(views: AllViews) -> str:
        return shown(views, "agents.html", agents=views.agents())

    @page("/agents/{name:str}", opt=anywhere(Role.READ))
    def agent(views: AllViews, name: FromPath[str], after: Cursor = None) -> str:
        query = SessionQuery(agent=name, cursor=after or "", limit=_SESSIONS)
        detail = views.agent(name)
        sessions, cursor = views.page(query)
        return shown(
            views, "agent.html", detail=detail, sessions=sessions, cursor=cursor, after=after or ""
        )

    @page("/projects", opt=anywhere(Role.READ))
    def projects(views: AllViews) -> str:
        return shown(views, "projects.html", projects=views.project_entries(), polls=views.polls)

    @page("/projects/{name:str}", opt=anywhere(Role.READ))
    def project(views: AllViews, name: FromPath[str]) -> str:
        found = views.project_detail(name)
        return shown(views, "project.html", project=found, path=PATH, polls=views.polls)

    @page("/costs", opt=anywhere(Role.READ))
    def costs(
        views: AllViews,
        first: _First = "",
        last: _Last = "",
        project: _Word = "",
        agent: _Word = "",
        person: _Word = "",
    ) -> str:
        chosen = cost_filter(views, first, last, project, agent, person)
        return shown(
            views,
            "costs.html",
            costs=views.costs(chosen),
            ranges=ranges(views.store.clock()),
            choices=views.choices(),
            agents=views.agent_names,
        )

    @get("/costs.csv", guards=[access.guard], opt=anywhere(Role.READ), sync_to_thread=True)
    def costs_as_csv(
        views: AllViews,
        first: _First = "",
        last: _Last = "",
        project: _Word = "",
        agent: _Word = "",
        person: _Word = "",
    ) -> Response[str]:
        chosen = cost_filter(views, first, last, project, agent, person)
        name = f"costs-{chosen.first}-{chosen.last}.csv"
        return Response(
            as_csv(views.usage_rows(chosen)),
            media_type="text/csv",
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )

    @page("/deliveries", opt=anywhere(Role.READ))
    def deliveries(
        views: AllViews,
        among: Annotated[str, QueryParameter(name="state", max_length=20)] = "",
        event: _Word = "",
        project: _Word = "",
        after: Cursor = None,
    ) -> str:
        sees_all = bool(views.reach.everywhere())
        query = DeliveryQuery(state=among, event=event, cursor=after or "", limit=_DELIVERIES)
        found, cursor = views.deliveries.page(query, project)
        return shown(
            views,
            "deliveries.html",
            deliveries=found,
            cursor=cursor,
            query=query,
            project=project,
            projects=views.projects(),
            events=sorted(EVENTS),
            failed=views.store.deliveries.failed_count() if sees_all else None,
            polls=views.polls,
        )

    @page("/deliveries/{id:str}", opt=anywhere(Role.READ))
    def delivery(
        request: _Request, views: AllViews, id: FromPath[str], dry: FromQuery[bool] = False
    ) -> str:
        return shown(
            views,
            "delivery.html",
            detail=views.deliveries.detail(id),
            dry=views.deliveries.dry_run(id) if dry else None,
            sees_all=bool(views.reach.everywhere()),
            may_retry=views.reach.everywhere() >= Role.ADMIN,
            csrf=access.csrf_token(request),
        )

    @page("/health", opt=everywhere(Role.READ))
    def health(views: AllViews) -> str:
        return shown(views, "health.html", health=views.health())

    return Router(
        "/",
        route_handlers=[
            *(agents, agent, projects, project, costs, costs_as_csv, deliveries, delivery),
            health,
        ],
    )


def cost_filter(
    views: Views, first: str, last: str, project: str, agent: str, person: str
) -> CostFilter:
    """Return the filter of a request, or raise 400 for days that cannot be shown.

    The default is the last `DEFAULT_DAYS` days. The names are not checked.
    """
    today = views.store.clock().date()
    try:
        until = date.fromisoformat(last) if last else today
        since = date.fromisoformat(first) if first else days_until(until, DEFAULT_DAYS).first
    except (ValueError, OverflowError) as problem:
        raise ClientException(f"There is no such day: {problem}.") from problem
    if not timedelta() <= until - since < timedelta(days=MOST_DAYS):
        raise ClientException(
            f"From {since} to {until} is not a range that can be shown.",
            extra={"remedy": f"Choose at most {MOST_DAYS} days, the earlier day first."},
        )
    return CostFilter(first=since, last=until, project=project, agent=agent, person=person)
