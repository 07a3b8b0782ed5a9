"""`/metrics`: the state of the bot for Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from bot.store import Backlog, Store
from bot.system.metrics import COUNTERS
from bot.web.access import Access
from bot.web.health import Health
from lifecycle.judge.capacity import Caps

_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")


def metrics_route(
    store: Store, access: Access, health: Callable[[], Health], caps: Callable[[], Caps]
) -> HTTPRouteHandler:
    """Return the route, which needs the page's token."""
    state = CollectorRegistry()
    state.register(_State(store, health, caps))

    @get("/metrics", guards=[access.guard], sync_to_thread=True)
    def metrics() -> Response[bytes]:
        text = generate_latest(state) + generate_latest(COUNTERS)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return metrics


class _State(Collector):
    """Reads the state of the bot at each scrape."""

    def __init__(self, store: Store, health: Callable[[], Health], caps: Callable[[], Caps]):
        self._store = store
        self._health = health
        self._caps = caps

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it reads nothing."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the state."""
        health, caps, now = self._health(), self._caps(), self._store.clock()
        counts, inbox = self._store.statistics, self._store.statistics.inbox()
        yield InfoMetricFamily(
            "mergewright_build", "The program.", {"version": version("mergewright")}
        )
        acts = health.scheduler and not health.standby_reason
        yield _gauge("acts", "Whether this instance leads and acts.", int(acts))
        yield _gauge("incidents", "Open incidents.", len(self._store.incidents.current()))
        yield _gauge("freezes", "Freezes in effect.", len(self._store.freezes.all()))
        yield _gauge("database_bytes", "Size of the database.", self._store.path.stat().st_size)
        yield _gauge("slots", "Sessions whose programs may run at the same time.", caps.sessions)
        yield _table("sessions", "Sessions.", ("project", "status"), counts.sessions())
        yield _gauge("inbox_deliveries", "Deliveries that wait to be processed.", inbox.rows)
        yield _gauge("inbox_age_seconds", "Age of the oldest of them.", _age(inbox, now))
        failed = self._store.deliveries.failed_count()
        yield _gauge("failed_deliveries", "Deliveries that could not be decoded.", failed)
        reads = counts.refreshes()
        yield _gauge("refreshes", "Issues and pull requests to read again.", reads.rows)
        yield _gauge("refresh_age_seconds", "Age of the oldest of them.", _age(reads, now))
        outbox = counts.outbox()
        rows = {(state,): one.rows for state, one in outbox.items()}
        yield _table("outbox_actions", "Actions that are not done.", ("state",), rows)
        ages = {(state,): _age(one, now) for state, one in outbox.items()}
        yield _table("outbox_age_seconds", "Age of the oldest of them.", ("state",), ages)
        yield from self._usage()

    def _usage(self) -> Iterable[Metric]:
        """The usage. Its sums are gauges: a price that is known late lowers and raises them."""
        who, usage = ("repository", "agent"), self._store.statistics.usage()
        tokens = {
            (one.repository, one.agent, kind): getattr(one, kind)
            for one in usage
            for kind in _TOKENS
        }
        yield _table("tokens", "Tokens used, of all time.", (*who, "kind"), tokens)
        cost = {(one.repository, one.agent): one.cost_usd for one in usage}
        yield _table("cost_usd", "Cost in US dollars, of all time.", who, cost)
        active = {(one.repository, one.agent): one.active_seconds for one in usage}
        yield _table("active_seconds", "Time agents have worked, of all time.", who, active)


def _age(backlog: Backlog, now: datetime) -> float:
    return (now - backlog.since).total_seconds() if backlog.since else 0.0


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"mergewright_{name}", says, value)


def _table(name: str, says: str, labels: Sequence[str], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"mergewright_{name}", says, labels=labels)
    for of, value in values.items():
        family.add_metric(of, value)
    return family
