"""The routes `/healthz` and `/readyz`: liveness and readiness probes, which need no token."""

from collections.abc import Callable
from contextlib import suppress

from litestar import Response, Router, get
from msgspec import Struct

from bot.show.health import ProcessState
from bot.store import Store, StoreFailure
from bot.system.metrics import rate_limits, workers
from bot.web.visitor import public
from runtimes.local_host import free_mb


class Health(Struct, frozen=True, kw_only=True):
    """The state of the bot's process. It is read on every delivery, so reading must be cheap."""

    scheduler: bool  #: Whether the scheduler is running.
    #: Why this instance does not act: for example, another instance acts, or the database is
    #: damaged. Empty if this instance acts.
    standby_reason: str = ""
    #: Seconds since all agents were last observed, or since this instance began to act if that is
    #: later. None if it has never acted.
    sweep_age: float | None = None
    sweep_late: bool = False  #: Whether `sweep_age` is too high to know any agent's state.


class Readiness(Struct, frozen=True, kw_only=True):
    """The response of `/readyz`."""

    ready: bool
    store_writable: bool
    scheduler_running: bool
    standby_reason: str
    sweep_age_seconds: float | None  #: As `Health.sweep_age`.
    incidents: tuple[str, ...]  #: Keys of the open incidents.


def readiness(store: Store, health: Callable[[], Health]) -> Readiness:
    """Return whether this instance can do its work, and the states from which that follows.

    Open incidents are listed too, but do not count.
    """
    writable, incidents = store.writable(), tuple[str, ...]()
    with suppress(StoreFailure):
        incidents = tuple(incident.key for incident in store.incidents.current())
    now = health()  # Read after using the store, which may have found damage.
    able = writable and now.scheduler and not now.standby_reason and not now.sweep_late
    return Readiness(
        ready=able,
        store_writable=writable,
        scheduler_running=now.scheduler,
        standby_reason=now.standby_reason,
        sweep_age_seconds=None if now.sweep_age is None else round(now.sweep_age, 1),
        incidents=incidents,
    )


def process_state(store: Store, health: Callable[[], Health]) -> ProcessState:
    """Return the part of the bot's health that only this process knows."""
    found = readiness(store, health)
    return ProcessState(
        ready=found.ready,
        store_writable=found.store_writable,
        scheduler_running=found.scheduler_running,
        standby_reason=found.standby_reason,
        sweep_age_seconds=found.sweep_age_seconds,
        sweep_late=health().sweep_late,
        workers=tuple(workers()),
        rate_limits=tuple(rate_limits()),
        free_memory_mb=free_mb(),
    )


def health_routes(store: Store, health: Callable[[], Health]) -> Router:
    """Return the routes `/healthz` and `/readyz`."""

    @get("/healthz", sync_to_thread=False)
    def alive() -> dict[str, bool]:
        return {"alive": True}

    @get("/readyz", sync_to_thread=True)
    def ready() -> Response[Readiness]:
        answer = readiness(store, health)
        return Response(answer, status_code=200 if answer.ready else 503)

    return Router("/", route_handlers=[alive, ready], cache_control=None, opt=public())
