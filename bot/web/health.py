"""`/healthz` and `/readyz`: whether it lives, and whether it can do its work. No token needed."""

from collections.abc import Callable

from litestar import Response, Router, get
from msgspec import Struct

from bot.store import Store


class Health(Struct, frozen=True, kw_only=True):
    """What the rest of the bot says of itself. Asked on every delivery: it must cost nothing."""

    scheduler: bool  #: Whether the scheduler runs.
    standing_by: str = ""  #: Why this instance acts on nothing; empty where it acts.


class Readiness(Struct, frozen=True, kw_only=True):
    """The answer of `/readyz`."""

    ready: bool
    store_writable: bool
    scheduler_running: bool
    standing_by: str
    incidents: tuple[str, ...]  #: What is wrong with the whole, by name; the page says more.


def health_routes(store: Store, health: Callable[[], Health]) -> Router:
    """Make the two routes."""

    @get("/healthz", sync_to_thread=False)
    def alive() -> dict[str, bool]:
        return {"alive": True}

    @get("/readyz", sync_to_thread=True)
    def ready() -> Response[Readiness]:
        now = health()
        writable = store.writable()
        able = writable and now.scheduler and not now.standing_by
        answer = Readiness(
            ready=able,
            store_writable=writable,
            scheduler_running=now.scheduler,
            standing_by=now.standing_by,
            incidents=tuple(incident.key for incident in store.incidents.current()),
        )
        return Response(answer, status_code=200 if able else 503)

    return Router("/", route_handlers=[alive, ready], cache_control=None)
