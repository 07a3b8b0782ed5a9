"""The pages of one session: one for each tab, all with the same top part."""

from functools import partial
from typing import Final

from litestar import MediaType, Request, Router, get
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery

from bot.intake.terminal_input import NotTypable, TerminalInput
from bot.show.cost_over_time import cost_over_time
from bot.show.session_detail import LAST_EVENT
from bot.show.session_facts import explained
from bot.web.access import Access
from bot.web.api.operations import AllViews
from bot.web.forms import buttons, choices, form_key, message_buttons
from bot.web.rendering import navigation, templates
from bot.web.views import LAST_MESSAGE, Views
from bot.web.visitor import Visitor, in_session
from lifecycle.model.roles import Role
from runtimes.agents.shared.messages import Message

_MESSAGES = 200  #: On one page of a conversation.

_Request = Request[Visitor, object, State]

#: The tabs in order, each with the last part of its path and its title.
TABS: Final = (
    ("", "Timeline"),
    ("terminal", "Terminal"),
    ("transcript", "Conversation"),
    ("changes", "Changes"),
    ("checks", "Checks"),
    ("setup", "Set-up"),
    ("cost", "Cost"),
    ("facts", "Facts"),
)
#: The tabs of a chat begin with those in which people talk to the agent.
_CHAT_TABS: Final = (*TABS[1:3], TABS[0], *TABS[3:])


def session_routes(access: Access, keyboard: TerminalInput) -> Router:
    """Return the routes of a session's tabs."""
    render = templates()
    page = partial(
        get,
        guards=[access.guard],
        opt=in_session(Role.READ),
        media_type=MediaType.HTML,
        sync_to_thread=True,
    )

    def shown(request: _Request, views: Views, id: str, tab: str, **values: object) -> str:
        """Render a tab, with the part above all tabs and the buttons for the visitor's role."""
        head = views.head(id)
        role = views.reach.role(head.row.project)
        tells, steers = role >= Role.TRIAGE, role >= Role.WRITE
        return render(
            f"tab_{tab or 'timeline'}.html",
            pages=navigation(views.reach),
            head=head,
            row=head.row,
            tabs=_CHAT_TABS if head.chat else TABS,
            tab=tab,
            steers=steers,
            may_freeze=views.freezes.may_change,
            buttons=buttons(head) if steers else (),
            message_buttons=message_buttons(head.row) if tells else (),
            choices=choices(head.row) if tells else (),
            notices=views.notices(),
            csrf=access.csrf_token(request),
            key=form_key(),
            **values,
        )

    @page("/sessions/{id:str}")
    def timeline(
        request: _Request,
        views: AllViews,
        id: FromPath[str],
        before: FromQuery[int] = LAST_EVENT,
        raw: FromQuery[bool] = False,
    ) -> str:
        before = min(before, LAST_EVENT)
        return shown(
            request,
            views,
            id,
            "",
            before=before,
            timeline=views.timeline(id, before),
            raw=views.detail(id) if raw else None,
        )

    @page("/sessions/{id:str}/terminal")
    def terminal(request: _Request, views: AllViews, id: FromPath[str]) -> str:
        session, refusal = views.session(id), ""
        types = views.reach.role(session.project) >= Role.ADMIN
        try:
            keyboard.check(session)
        except NotTypable as problem:
            refusal = f"{problem}. {problem.remedy}"
        return shown(
            *(request, views, id, "terminal"),
            detail=views.detail(id),
            screen=views.screen(id),
            types=types,
            refusal=refusal,
        )

    @page("/sessions/{id:str}/screen")
    def screen(views: AllViews, id: FromPath[str]) -> str:
        return render("screen.html", screen=views.screen(id))

    @page("/sessions/{id:str}/transcript")
    def transcript(
        request: _Request,
        views: AllViews,
        id: FromPath[str],
        run: FromQuery[int] = 0,
        first: FromQuery[int] = -1,
    ) -> str:
        row = views.row(id)
        begins, messages = max(first, 0), list[Message]()
        if first >= 0:
            messages = views.transcript(id, run, min(first, LAST_MESSAGE), _MESSAGES)
        elif run or row.run:
            begins, messages = views.last_messages(id, run, _MESSAGES)
        return shown(
            request,
            views,
            id,
            "transcript",
            run=run or row.run,
            first=begins,
            messages=messages,
            earlier=max(0, begins - _MESSAGES) if begins else None,
            later=begins + _MESSAGES if first >= 0 and len(messages) == _MESSAGES else None,
        )

    @page("/sessions/{id:str}/changes")
    def changes(request: _Request, views: AllViews, id: FromPath[str]) -> str:
        found = views.changes(id)
        why = found if isinstance(found, str) else ""
        work = views.session(id).work
        return shown(request, views, id, "changes", diff=None if why else found, why=why, work=work)

    @page("/sessions/{id:str}/checks")
    def checks(request: _Request, views: AllViews, id: FromPath[str]) -> str:
        return shown(request, views, id, "checks", pulls=views.check_reports(id))

    @page("/sessions/{id:str}/setup")
    def setup(request: _Request, views: AllViews, id: FromPath[str]) -> str:
        return shown(request, views, id, "setup", steps=views.steps(id))

    @page("/sessions/{id:str}/cost")
    def cost(request: _Request, views: AllViews, id: FromPath[str]) -> str:
        detail = views.detail(id)
        warn = views.policy_of(detail.session.project).budget_warning
        steps, spent = views.store.usage.steps(id), detail.session.agent_info.cost_usd
        over_time = cost_over_time(steps, detail.budgets, spent)
        return shown(request, views, id, "cost", detail=detail, warn=warn, over_time=over_time)

    @page("/sessions/{id:str}/facts")
    def facts(request: _Request, views: AllViews, id: FromPath[str]) -> str:
        due = views.session(id).due
        found = explained(views.explain(id))
        return shown(request, views, id, "facts", detail=views.detail(id), explained=found, due=due)

    tabs = [timeline, terminal, transcript, changes, checks, setup, cost, facts]
    return Router("/", route_handlers=[screen, *tabs])
