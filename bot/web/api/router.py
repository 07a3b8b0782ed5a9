"""The routes of the API, and the OpenAPI document that Litestar makes from them."""

from collections import defaultdict
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec
from litestar import Litestar, Response, Router, get, route
from litestar.di import Provide
from litestar.enums import HttpMethod
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, License, SecurityScheme, Tag

from bot.intake.terminal_input import TerminalInput
from bot.web.access import Access, LiveReach
from bot.web.api.command_schema import command_schemas, session_schema
from bot.web.api.commands import (
    CommandRequest,
    SessionRequest,
    freeze,
    get_command,
    give_command,
    press_keys,
    retry_delivery,
    set_metadata,
    start_session,
    unfreeze,
)
from bot.web.api.events import follow_events, follow_log
from bot.web.api.operations import ApiRequest
from bot.web.api.overview import (
    get_account,
    get_agent,
    get_delivery,
    get_health,
    get_prices,
    get_project,
    list_agent_types,
    list_agent_weeks,
    list_agents,
    list_deliveries,
    list_freezes,
    list_incidents,
    list_projects,
    list_queue,
    list_usage,
    try_delivery,
)
from bot.web.api.problems import MOST_BYTES, as_problem
from bot.web.api.sessions import (
    explain_session,
    get_board,
    get_session,
    list_history,
    list_messages,
    list_sessions,
    list_steps,
    read_log,
)
from bot.web.event_feed import EventFeed
from bot.web.live import Watchers
from bot.web.terminal_keys import KEY_PATTERN, KeysRequest
from bot.web.views import Views
from bot.web.visitor import anywhere
from lifecycle.model.roles import Role

PATH: Final = "/api/v1"

#: All routes. Routes that only read also accept the cookie of a signed-in browser.
ROUTES: Final = (
    *(list_sessions, get_board, get_session, list_history, list_messages, read_log, follow_log),
    *(explain_session, list_steps, start_session, give_command, press_keys, get_command),
    *(set_metadata, follow_events),
    *(list_agents, get_agent, list_agent_types, list_agent_weeks, list_projects, get_project),
    *(list_usage, get_prices, list_queue),
    *(get_account, get_health, list_incidents, list_freezes, freeze, unfreeze),
    *(list_deliveries, get_delivery, try_delivery, retry_delivery),
)

_TAGS = {
    "sessions": "List, read and steer sessions.",
    "events": "Streams of what happens.",
    "agents": "Agents and their records.",
    "costs": "Model usage and cost.",
    "bot": "Projects, the queue, freezes, incidents and deliveries.",
}


def api_routes(
    views: Views,
    access: Access,
    watchers: Watchers,
    feed: EventFeed,
    keyboard: TerminalInput,
) -> Router:
    """Return the router of the API."""

    def seen(request: ApiRequest) -> Views:
        return views.seen_by(access.reach(request.user))

    def live(request: ApiRequest) -> LiveReach:
        return LiveReach(access, request)

    return Router(
        PATH,
        route_handlers=[*_options(), *ROUTES, _describe],
        guards=[access.guard_api],
        dependencies={
            "views": Provide(seen, sync_to_thread=False),
            "live": Provide(live, sync_to_thread=False),
            "watchers": Provide(lambda: watchers, sync_to_thread=False),
            "keyboard": Provide(lambda: keyboard, sync_to_thread=False),
            "feed": Provide(lambda: feed, sync_to_thread=False),
        },
        exception_handlers={HTTPException: as_problem, Exception: as_problem},
        request_max_body_size=MOST_BYTES,
    )


def _options() -> list[HTTPRouteHandler]:
    """Return handlers of OPTIONS that name all methods of a path.

    Litestar's own handlers, which these replace, would name only those of a path's first handler.
    """
    methods: dict[str, set[str]] = defaultdict(lambda: {"OPTIONS"})
    for handler in (*ROUTES, _describe):
        for path in handler.paths:
            methods[path] |= handler.http_methods

    def answers(path: str) -> HTTPRouteHandler:
        allowed = ", ".join(sorted(methods[path]))

        @route(
            path,
            http_method=HttpMethod.OPTIONS,
            opt=anywhere(Role.READ),
            status_code=204,
            sync_to_thread=False,
        )
        def allow() -> Response[None]:
            return Response(None, headers={"allow": allowed})

        return allow

    return list(map(answers, methods))


@get("/openapi.json", opt=anywhere(Role.READ), sync_to_thread=True)
def _describe() -> Response[bytes]:
    return Response(document(), media_type="application/json")


@cache
def document() -> bytes:
    """Return the OpenAPI document as JSON.

    A separate application makes the document: in the server's application, Litestar would add
    routes that answer with HTML.
    """
    config = OpenAPIConfig(
        title="Mergewright",
        version=version("mergewright"),
        description="Lists, follows and steers the sessions of a Mergewright server.",
        license=License(name="MIT", identifier="MIT"),
        tags=[Tag(name=name, description=says) for name, says in _TAGS.items()],
        components=Components(
            security_schemes={"bearer": SecurityScheme(type="http", scheme="bearer")}
        ),
    )
    routes = Router(
        PATH,
        route_handlers=ROUTES,
        dependencies={
            name: Provide(lambda: None, sync_to_thread=False)
            for name in ("views", "live", "watchers", "feed", "keyboard")
        },
    )
    app = Litestar([routes], openapi_config=config, logging_config=None)
    found = app.openapi_schema.to_schema()
    schemas = found["components"]["schemas"]
    schemas |= command_schemas(CommandRequest.__name__)
    schemas[SessionRequest.__name__] = session_schema(schemas[SessionRequest.__name__])
    # Litestar leaves out what limits the items of a list.
    schemas[KeysRequest.__name__]["properties"]["keys"]["items"]["pattern"] = KEY_PATTERN
    for path in found["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _without_null(parameter["schema"])
    return msgspec.json.encode(found)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter's schema, without null if the parameter is a text but not an enum.

    URLs cannot contain null.
    """
    kinds = [one for one in schema.get("oneOf", ()) if one != {"type": "null"}]
    if len(kinds) != 1 or kinds[0].get("type") != "string" or "enum" in kinds[0]:
        return schema
    return {**{name: value for name, value in schema.items() if name != "oneOf"}, **kinds[0]}
