"""Builds the web application: the webhook, the health routes, the pages and the API."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.static_files import create_static_files_router
from litestar.types import ASGIApp, Message, Scope

from bot.github.sign_in import GitHubSignIn
from bot.github.write_access import WriteAccess
from bot.intake.inbox import Inbox
from bot.intake.terminal_input import TerminalInput
from bot.show.terminal import Terminal
from bot.store import Store
from bot.system.http_server import log_failure
from bot.web.access import Access, send_cookie
from bot.web.api.problems import Problem, as_problem
from bot.web.api.router import api_routes
from bot.web.event_feed import EventFeed
from bot.web.health import Health, health_routes
from bot.web.live import Watchers
from bot.web.metrics import metrics_route
from bot.web.page_token import PageToken
from bot.web.pages import as_page, page_routes
from bot.web.sign_in_pages import sign_in_routes
from bot.web.sign_ins import SignIns
from bot.web.views import Views
from bot.web.visitor import public
from bot.web.webhook import PATH, WebhookLimits, webhook
from config.settings import Settings
from lifecycle.judge.capacity import Caps
from lifecycle.model.policy import Policy

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


def build(
    inbox: Inbox,
    store: Store,
    *,
    webhook_secrets: Sequence[str],
    page_token: str,
    health: Callable[[], Health],
    settings: Settings,
    policy_of: Callable[[str], Policy],
    caps: Callable[[], Caps],
    terminal: Terminal,
    keyboard: TerminalInput,
    people: WriteAccess | None = None,
    sign_in: GitHubSignIn | None = None,
    limits: WebhookLimits = WebhookLimits(),  # noqa: B008 - frozen
) -> Litestar:
    """Return the application.

    Deliveries signed with any of `webhook_secrets` are accepted. `health` is called for each
    delivery; if it says that this bot is on standby, the delivery is refused. `policy_of` returns a
    project's policy, and `caps` the limits on running sessions. `keyboard` takes what people type
    into terminals. `people` reads from GitHub what visitors may do, and `sign_in` reads who they
    are. Unless the settings let people sign in with GitHub, an empty `page_token` disables the
    pages and the API.
    """
    views = Views(store, settings, policy_of, caps, terminal, inbox, health)
    https = settings.public_url.startswith("https:")
    token = PageToken(page_token)
    sign_ins = SignIns(store, token, settings.sign_in, https=https)
    access, watchers = Access(settings, store, token, sign_ins, people), Watchers()
    feed = EventFeed(watchers, views.events, store.history.newest_seq)
    store.on_change.append(watchers.changed)

    async def bind() -> None:
        watchers.open()

    app = _Application(
        route_handlers=[
            health_routes(store, health),
            metrics_route(store, access, health, caps),
            page_routes(views, access, watchers, health, keyboard),
            sign_in_routes(access, settings, sign_in),
            api_routes(views, access, watchers, feed, keyboard),
            create_static_files_router(
                "/static", [Path(__file__).parent / "static"], opt=dict(public())
            ),
        ],
        on_startup=[bind],
        before_send=[_protect, send_cookie],
        after_exception=[log_failure],
        exception_handlers={HTTPException: _refused},
        state=State({"streams": watchers, "sign_ins": sign_ins}),
        openapi_config=None,
        logging_config=None,
    )
    app.webhook = webhook(inbox, webhook_secrets, health, limits)
    return app


class _Application(Litestar):
    """The web application. Deliveries bypass Litestar, which would take a sixth of their time."""

    webhook: ASGIApp

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request, or the events of the server's start and end."""
        if scope["type"] == "http" and scope["path"] in (PATH, f"{PATH}/"):
            await self.webhook(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _refused(
    request: Request[object, object, State], problem: HTTPException
) -> Response[str] | Response[Problem]:
    """Return the response to an error that neither the pages' nor the API's routes handle.

    Browsers get HTML, other programs JSON. Below `/api/` and `/webhooks/`, all get JSON.
    """
    wants_page = "text/html" in request.headers.get("accept", "")
    if wants_page and not request.url.path.startswith(("/api/", "/webhooks/")):
        return as_page(request, problem)
    return as_problem(request, problem)


async def _protect(message: Message, _: Scope) -> None:
    """Add missing security headers, so that browsers load and run only what this server sends."""
    if message["type"] == "http.response.start":
        given = {name for name, _ in message["headers"]}
        missing = (header for header in _HEADERS if header[0] not in given)
        message["headers"] = [*message["headers"], *missing]
