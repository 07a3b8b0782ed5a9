"""The route `/metrics`: the state of the bot, for Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from bot.show.health import age_seconds, bot_state
from bot.store import Store
from bot.system.metrics import COUNTERS
from bot.web.access import Access
from bot.web.health import Health
from bot.web.visitor import everywhere
from lifecycle.judge.capacity import Caps
from lifecycle.model.roles import Role

_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")


def metrics_route(
    store: Store, access: Access, health: Callable[[], Health], caps: Callable[[], Caps]
) -> HTTPRouteHandler:
    """Return the route, which requires the right to see all projects."""
    state = CollectorRegistry()
    state.register(_State(store, health, caps))

    @get("/metrics", guards=[access.guard], opt=everywhere(Role.READ), sync_to_thread=True)
    def metrics() -> Response[bytes]:
        text = generate_latest(state) + generate_latest(COUNTERS)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})

    return metrics


class _State(Collector):
    """Reads the state of the bot from the store at each scrape."""

    def __init__(self, store: Store, health: Callable[[], Health], caps: Callable[[], Caps]):
        self._store = store
        self._health = health
        self._caps = caps

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering this collector does not read the store."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the state."""
        health, now = self._health(), self._store.clock()
        state, counts = bot_state(self._store, self._caps()), self._store.statistics
        yield InfoMetricFamily(
            "mergewright_build", "The program.", {"version": version("mergewright")}
        )
        acts = health.scheduler and not health.standby_reason
        yield _gauge("acts", "Whether this instance leads and acts.", int(acts))
        yield _gauge("incidents", "Open incidents.", len(state.incidents))
        yield _gauge("freezes", "Freezes in effect.", len(state.freezes))
        yield _gauge("database_bytes", "Size of the database.", state.database_bytes)
        yield _gauge("slots", "Sessions whose programs may run at the same time.", state.slots)
        yield _table("sessions", "Sessions.", ("project", "status"), counts.sessions())
        yield _gauge("inbox_deliveries", "Deliveries that wait to be processed.", state.inbox.rows)
        age = age_seconds(state.inbox, now)
        yield _gauge("inbox_age_seconds", "Age of the oldest waiting delivery.", age)
        failed = state.failed_deliveries
        yield _gauge("failed_deliveries", "Deliveries that could not be processed.", failed)
        reads = state.refreshes
        yield _gauge("refreshes", "Issues and pull requests to read again.", reads.rows)
        age = age_seconds(reads, now)
        yield _gauge(
            "refresh_age_seconds", "Age of the oldest request to read something again.", age
        )
        rows = {(name,): one.rows for name, one in state.outbox.items()}
        yield _table("outbox_actions", "Actions that are not done.", ("state",), rows)
        ages = {(name,): age_seconds(one, now) for name, one in state.outbox.items()}
        yield _table(
            "outbox_age_seconds", "Age of the oldest action that is not done.", ("state",), ages
        )
        yield from self._usage()

    def _usage(self) -> Iterable[Metric]:
        """Yield the usage of agents.

        The metrics are gauges, not counters, because a price found later changes past sums.
        """
        who, usage = ("repository", "agent"), self._store.statistics.usage()
        tokens = {
            (one.repository, one.agent, kind): getattr(one, kind)
            for one in usage
            for kind in _TOKENS
        }
        yield _table("tokens", "Tokens used so far.", (*who, "kind"), tokens)
        cost = {(one.repository, one.agent): one.cost_usd for one in usage}
        yield _table("cost_usd", "Cost so far in US dollars.", who, cost)
        active = {(one.repository, one.agent): one.active_seconds for one in usage}
        yield _table("active_seconds", "Seconds that agents have worked so far.", who, active)


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"mergewright_{name}", says, value)


def _table(name: str, says: str, labels: Sequence[str], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"mergewright_{name}", says, labels=labels)
    for of, value in values.items():
        family.add_metric(of, value)
    return family
