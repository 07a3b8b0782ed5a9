"""The page's buttons: each sends a form, which becomes a command or a freeze, and leads back."""

import secrets
from collections.abc import Sequence

from litestar import Request, Router, post
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect
from msgspec import Struct

from bot.intake.commands import InvalidArgument
from bot.intake.local_commands import PAGE, AskedOtherwise, ask, command_of
from bot.show.session_summary import SessionSummary, summarize
from bot.system.clock import utc_now
from bot.web.access import Access
from bot.web.detail import SessionDetail
from bot.web.views import Views
from lifecycle.model.status import TERMINAL, Activity, Status
from lifecycle.read.restores import RESTORABLE
from runtimes.agents.shared.dialogs import choices_in

_Request = Request[object, object, State]
_MOST_BYTES = 100_000


class Button(Struct, frozen=True, kw_only=True):
    """Something that can be asked for by a click."""

    kind: str
    says: str


class _Ask(Struct, frozen=True):
    kind: str
    word: str = ""  #: What shows that this page made the form; see `Access.form_word`.
    key: str = ""  #: Of this form, so that a double click asks once.
    text: str = ""
    head: str = ""
    asked: str = ""  #: The question that a choice was offered for.


class _Freeze(Struct, frozen=True):
    scope: str = ""
    word: str = ""


_ALIVE = frozenset(Status) - TERMINAL
_BUTTONS = (
    (Button(kind="resume", says="Resume"), frozenset({Status.PAUSED})),
    (Button(kind="pause", says="Pause"), _ALIVE - {Status.PAUSED}),
    (Button(kind="restart", says="Restart"), _ALIVE - {Status.QUEUED, Status.SPAWNING}),
    (Button(kind="restore", says="Restore"), RESTORABLE),
    (Button(kind="retry", says="Retry what was given up"), _ALIVE),
    (Button(kind="stop", says="Stop"), _ALIVE),
    (Button(kind="freeze", says="Freeze"), _ALIVE),
    (Button(kind="unfreeze", says="Unfreeze"), frozenset(Status)),
)


def buttons(detail: SessionDetail) -> list[Button]:
    """What a click may ask of a session as it stands."""
    given_up = any(letter.state == "given up" for letter in detail.outbox)
    frozen = detail.frozen is not None and detail.frozen.scope == "session"
    wanted = {"retry": given_up, "freeze": not frozen, "unfreeze": frozen}
    return [
        button
        for button, statuses in _BUTTONS
        if detail.session.status in statuses and wanted.get(button.kind, True)
    ]


def sayings(row: SessionSummary) -> list[Button]:
    """What can be said to its agent; answering comes first while it asks."""
    if row.status not in _ALIVE:
        return []
    answer = [Button(kind="answer", says="Answer")]
    asks = row.activity == Activity.WAITING_INPUT
    return [*(answer if asks else ()), Button(kind="tell", says="Tell the agent")]


def choices(row: SessionSummary) -> Sequence[str]:
    """The answers that its agent offers, each given by a click."""
    asks = row.status in _ALIVE and row.activity == Activity.WAITING_INPUT
    return choices_in(row.agent_info.question) if asks else ()


def form_key() -> str:
    """A key for a form that is being made."""
    return secrets.token_urlsafe(9)


def form_routes(views: Views, access: Access) -> list[Router]:
    """Make the routes the buttons lead to."""
    store = views.store

    @post("/sessions/{id:str}/ask", sync_to_thread=True)
    def asks(request: _Request, id: FromPath[str], data: URLEncodedBody[_Ask]) -> Redirect:
        access.check_form(request, data.word)
        session = views.session(id)
        # A form's line breaks are others than those it was given.
        if data.asked and data.asked.split() != summarize(session).agent_info.question.split():
            raise ClientException(
                "The agent asks something else by now.",
                extra={"remedy": "Go back, load the page again, and answer what it asks now."},
            )
        try:
            asked = command_of(
                session,
                data.kind,
                data.text,
                actor=PAGE,
                key=f"page:{id}:{data.key or form_key()}",
                at=utc_now(),
                head=data.head,
            )
            ask(store, session, asked)
        except (InvalidArgument, AskedOtherwise) as problem:
            raise ClientException(f"{problem}.") from problem
        return Redirect(f"/sessions/{id}", status_code=303)

    @post("/freeze", sync_to_thread=True)
    def freeze(request: _Request, data: URLEncodedBody[_Freeze]) -> Redirect:
        access.check_form(request, data.word)
        views.check_scope(data.scope)
        store.freezes.add(data.scope, PAGE)
        return Redirect("/", status_code=303)

    @post("/unfreeze", sync_to_thread=True)
    def unfreeze(request: _Request, data: URLEncodedBody[_Freeze]) -> Redirect:
        access.check_form(request, data.word)
        views.check_scope(data.scope)
        store.freezes.remove(data.scope, PAGE)
        return Redirect("/", status_code=303)

    return [
        Router(
            "/",
            route_handlers=[asks, freeze, unfreeze],
            guards=[access.guard],
            request_max_body_size=_MOST_BYTES,
        )
    ]
