"""Whether the bot is healthy: backlogs, incidents, workers, rate limits, isolation, versions."""

import platform
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from typing import Annotated, Final

from msgspec import Meta, Struct

from bot.store import Backlog, Freeze, Incident, Store
from bot.system.isolation import NotIsolated, isolation_of, problems, unisolated
from bot.system.metrics import RateLimit, WorkerState
from bot.text import health as says
from bot.text import page_text
from config.settings import Settings
from lifecycle.judge.capacity import Caps

#: The number of closed incidents that are shown.
_PAST: Final = 20
#: A delivery that waits for more seconds is a problem.
_INBOX_SECONDS: Final = 60.0
#: The share of a rate limit below which people are warned.
_LOW: Final = 0.1


class BotState(Struct, frozen=True, kw_only=True):
    """The part of the bot's state that is in the database, which `/metrics` also shows."""

    incidents: Annotated[tuple[Incident, ...], Meta(description="Open ones, newest first.")]
    freezes: tuple[Freeze, ...]
    database_bytes: int
    slots: Annotated[int, Meta(description="Sessions whose programs may run at the same time.")]
    slots_used: int
    inbox: Annotated[Backlog, Meta(description="Deliveries that wait to be processed.")]
    failed_deliveries: int
    refreshes: Annotated[Backlog, Meta(description="Issues and pull requests to read again.")]
    outbox: Annotated[
        Mapping[str, Backlog],
        Meta(description="Actions that are `due`, `sent`, or `failed` in open sessions."),
    ]


class ProcessState(Struct, frozen=True, kw_only=True):
    """The part of the bot's health that only the server's process knows."""

    ready: Annotated[bool, Meta(description="As `/readyz` says.")]
    store_writable: bool
    scheduler_running: bool
    standby_reason: Annotated[str, Meta(description="If empty, this instance acts.")]
    sweep_age_seconds: Annotated[
        float | None, Meta(description="Seconds since the bot last read the state of all agents.")
    ]
    sweep_late: bool
    workers: tuple[WorkerState, ...]
    rate_limits: tuple[RateLimit, ...]
    free_memory_mb: Annotated[int | None, Meta(description="Of the host, in MB; if null, unknown.")]


class IsolationUse(Struct, frozen=True, kw_only=True):
    """An isolation and the agent types that run in it."""

    isolation: Annotated[str, Meta(description="If empty, no agent can be isolated or started.")]
    agent_types: tuple[str, ...]


class HealthReport(Struct, frozen=True, kw_only=True):
    """Whether the bot is healthy, and the states from which this follows."""

    healthy: Annotated[bool, Meta(description="Whether there are no `problems`.")]
    problems: Annotated[tuple[str, ...], Meta(description="What is wrong, with the remedies.")]
    warnings: tuple[str, ...]
    leader: Annotated[str, Meta(description="The process that acts; if empty, none does.")]
    state: BotState
    process: Annotated[
        ProcessState | None, Meta(description="Null on the command line, without a server.")
    ]
    past: Annotated[tuple[Incident, ...], Meta(description="The last closed incidents.")]
    runtime: Annotated[str, Meta(description="What runs the programs.", examples=["tmux"])]
    isolations: tuple[IsolationUse, ...]
    versions: Annotated[Mapping[str, str], Meta(examples=[{"Python": "3.11.2"}])]


def bot_state(store: Store, caps: Caps) -> BotState:
    """Read the state of the bot. The number of slots is taken from `caps`."""
    counts = store.statistics
    return BotState(
        incidents=tuple(store.incidents.current()),
        freezes=tuple(store.freezes.all()),
        database_bytes=store.path.stat().st_size,
        slots=caps.sessions,
        slots_used=counts.slots(),
        inbox=counts.inbox(),
        failed_deliveries=store.deliveries.failed_count(),
        refreshes=counts.refreshes(),
        outbox=counts.outbox(),
    )


def health_report(
    store: Store, settings: Settings, caps: Caps, process: ProcessState | None, now: datetime
) -> HealthReport:
    """Report on the bot's health. Without `process`, the problems are those in the database."""
    state, leader = bot_state(store, caps), _leader(store, now)
    unled = [] if leader or process is not None else [says.no_leader()]
    wrong = (*unled, *_problems(state, process, now))
    recent = store.incidents.recent(_PAST + len(state.incidents))
    return HealthReport(
        healthy=not wrong,
        problems=wrong,
        warnings=tuple(_warnings(settings, state, process)),
        leader=leader,
        state=state,
        process=process,
        past=tuple(one for one in recent if one.cleared_at is not None)[:_PAST],
        runtime=settings.runtime.kind,
        isolations=_isolations(settings),
        versions={
            "Mergewright": version("mergewright"),
            "Python": platform.python_version(),
            "Database": store.engine,
            "System": f"{platform.system()} {platform.release()}",
        },
    )


def age_seconds(backlog: Backlog, now: datetime) -> float:
    """Return the age of a backlog's oldest row in seconds; 0 if it is empty."""
    return (now - backlog.since).total_seconds() if backlog.since else 0.0


def _problems(state: BotState, process: ProcessState | None, now: datetime) -> Iterator[str]:
    if process is not None:
        if not process.store_writable:
            yield says.not_writable()
        if process.standby_reason:
            yield says.standby(process.standby_reason)
        elif not process.scheduler_running:
            yield says.no_scheduler()
        if process.sweep_late:
            yield says.sweep_late(process.sweep_age_seconds or 0.0)
        for worker in process.workers:
            if worker.failing:
                yield says.worker_failing(worker.name)
    for incident in state.incidents:
        yield page_text.block(incident.text)
    if (waited := age_seconds(state.inbox, now)) > _INBOX_SECONDS:
        yield says.inbox_waits(state.inbox.rows, waited)


def _warnings(settings: Settings, state: BotState, process: ProcessState | None) -> Iterator[str]:
    yield from problems(settings)
    yield from filter(None, [unisolated(settings)])
    if failed := state.outbox["failed"].rows:
        yield says.failed_actions(failed)
    for one in process.rate_limits if process else ():
        if one.remaining < _LOW * one.limit:
            yield says.low_limit(one.account, one.resource, one.remaining, one.limit)


def _leader(store: Store, now: datetime) -> str:
    """Return the process that holds the lease, as `process PID on HOST`; empty if none does."""
    holder = store.lease.holder()
    if holder is None or holder[1] <= now:
        return ""
    host, _, pid, *_ = [*holder[0].split(":"), "", ""]
    return f"process {pid} on {host.partition('/')[0]}" if pid else holder[0]


def _isolations(settings: Settings) -> tuple[IsolationUse, ...]:
    found = defaultdict[str, set[str]](set)
    for project in settings.projects or ("",):
        for kind in settings.agent_types:
            chosen = ""
            with suppress(NotIsolated):
                chosen = isolation_of(settings, project, kind)
            found[chosen].add(kind)
    return tuple(
        IsolationUse(isolation=name, agent_types=tuple(sorted(kinds)))
        for name, kinds in sorted(found.items())
    )
