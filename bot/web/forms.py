"""The routes of the pages' forms. Each submits one action and redirects to a page."""

import secrets
from collections.abc import Sequence

from litestar import Request, Router, post
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect
from msgspec import Struct

from bot.intake.local_commands import add_command, build_command
from bot.intake.spawning import SpawnRequest, request_session
from bot.show.session_head import SessionHead
from bot.show.session_summary import SessionSummary, summarize
from bot.text.next_action import BUTTONS
from bot.web.access import Access
from bot.web.api.operations import AllViews
from bot.web.views import http_errors
from bot.web.visitor import Visitor, anywhere, everywhere, in_session
from lifecycle.model.names import MAKES_PULL, PAGE
from lifecycle.model.roles import Role
from lifecycle.model.status import TERMINAL, Activity, Status
from lifecycle.read.restores import RESTORABLE
from runtimes.agents.shared.dialogs import choices_in

_Request = Request[Visitor, object, State]
MAX_FORM_BYTES = 100_000


class Button(Struct, frozen=True):
    """A button that submits a command."""

    kind: str

    @property
    def says(self) -> str:
        """The label of the button."""
        return BUTTONS[self.kind].label

    @property
    def confirm(self) -> str:
        """The warning that a person has to confirm first; empty if there is none."""
        return BUTTONS[self.kind].confirm


class _Ask(Struct, frozen=True):
    kind: str
    csrf: str = ""  #: The token against forged forms; see `Access.csrf_token`.
    key: str = ""  #: The idempotency key: a double click submits once.
    text: str = ""
    head: str = ""
    asked: str = ""  #: The agent's question, if `text` is one of its choices; else empty.


class _Spawn(Struct, frozen=True):
    project: str
    prompt: str  #: For a chat, its first message, or empty.
    chat: bool = False
    agent: str = ""  #: If empty, the project's.
    csrf: str = ""
    key: str = ""


class _Freeze(Struct, frozen=True):
    scope: str = ""
    csrf: str = ""


class _Retry(Struct, frozen=True):
    csrf: str = ""


_ALIVE = frozenset(Status) - TERMINAL
_BUTTONS = (
    (MAKES_PULL, _ALIVE),
    ("resume", frozenset({Status.PAUSED})),
    ("pause", _ALIVE - {Status.PAUSED}),
    ("restart", _ALIVE - {Status.QUEUED, Status.SPAWNING}),
    ("start", RESTORABLE),
    ("retry", _ALIVE),
    ("stop", _ALIVE),
    ("freeze", _ALIVE),
    ("unfreeze", frozenset(Status)),
)


def buttons(head: SessionHead) -> list[Button]:
    """Return the command buttons for a session's status.

    The command of the next action is left out, because it has a button of its own.
    """
    frozen = head.frozen is not None and head.frozen.scope == "session"
    wanted = {
        "retry": head.failed,
        "freeze": not frozen,
        "unfreeze": frozen and not head.by_label,
        MAKES_PULL: head.chat,
    }
    return [
        Button(kind)
        for kind, statuses in _BUTTONS
        if head.row.status in statuses and wanted.get(kind, True) and kind != head.next.command
    ]


def message_buttons(row: SessionSummary) -> list[Button]:
    """Return the buttons of the message form, `answer` first if the agent asks a question.

    The list is empty for a session that has ended.
    """
    if row.status not in _ALIVE:
        return []
    asks = row.activity == Activity.WAITING_INPUT
    return [*([Button("answer")] if asks else ()), Button("tell")]


def choices(row: SessionSummary) -> Sequence[str]:
    """Return the answers that the agent's question offers; empty if there are none."""
    asks = row.status in _ALIVE and row.activity == Activity.WAITING_INPUT
    return choices_in(row.agent_info.question) if asks else ()


def form_key() -> str:
    """Return a random idempotency key for a form."""
    return secrets.token_urlsafe(9)


def form_routes(access: Access) -> Router:
    """Return the routes of the forms."""

    @post("/sessions/{id:str}/ask", opt=in_session(Role.TRIAGE), sync_to_thread=True)
    def asks(
        request: _Request, views: AllViews, id: FromPath[str], data: URLEncodedBody[_Ask]
    ) -> Redirect:
        access.check_form(request, data.csrf)
        session = views.session(id)
        views.reach.check_command(session.repository, data.kind)
        # Browsers change line breaks in form values.
        if data.asked and data.asked.split() != summarize(session).agent_info.question.split():
            raise ClientException(
                "The agent's question has changed.",
                extra={"remedy": "Go back, reload the page and answer the current question."},
            )
        key = f"page:{id}:{data.key or form_key()}"
        with http_errors():
            asked = build_command(
                session,
                data.kind,
                data.text,
                actor=request.user.login or PAGE,
                key=key,
                at=views.store.clock(),
                head=data.head,
            )
            add_command(views.store, session, asked)
        return Redirect(f"/sessions/{id}", status_code=303)

    @post("/sessions", opt=anywhere(Role.WRITE), sync_to_thread=True)
    def spawns(request: _Request, views: AllViews, data: URLEncodedBody[_Spawn]) -> Redirect:
        access.check_form(request, data.csrf)
        repository = views.project(data.project).repository
        views.reach.check_command(repository, "start")
        views.check_agent(data.agent)
        wanted = SpawnRequest(
            project=data.project,
            repository=repository,
            prompt=data.prompt,
            agent=data.agent,
            chat=data.chat,
        )
        actor = request.user.login or PAGE
        key = f"page:{data.project}:{data.key or form_key()}"
        with http_errors():
            request_session(views.store, wanted, actor=actor, key=key, at=views.store.clock())
        return Redirect("/", status_code=303)

    @post("/freeze", opt=anywhere(Role.ADMIN), sync_to_thread=True)
    def freeze(request: _Request, views: AllViews, data: URLEncodedBody[_Freeze]) -> Redirect:
        access.check_form(request, data.csrf)
        views.freezes.add(data.scope, request.user.login or PAGE)
        return Redirect("/", status_code=303)

    @post("/unfreeze", opt=anywhere(Role.ADMIN), sync_to_thread=True)
    def unfreeze(request: _Request, views: AllViews, data: URLEncodedBody[_Freeze]) -> Redirect:
        access.check_form(request, data.csrf)
        views.freezes.remove(data.scope, request.user.login or PAGE)
        return Redirect("/", status_code=303)

    @post("/deliveries/{id:str}/retry", opt=everywhere(Role.ADMIN), sync_to_thread=True)
    def retry(
        request: _Request, views: AllViews, id: FromPath[str], data: URLEncodedBody[_Retry]
    ) -> Redirect:
        access.check_form(request, data.csrf)
        views.deliveries.retry(id, request.user.login or PAGE)
        return Redirect(f"/deliveries/{id}", status_code=303)

    return Router(
        "/",
        route_handlers=[asks, spawns, freeze, unfreeze, retry],
        guards=[access.guard],
        request_max_body_size=MAX_FORM_BYTES,
    )
