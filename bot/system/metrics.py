"""The counters of this process. `/metrics` shows them beside the state in the store.

They use prometheus-client directly. Litestar has a plugin for it, which times the requests of the
web server; these metrics measure the work that the bot does after it has responded.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from time import time

from msgspec import Struct
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.process_collector import ProcessCollector

from lifecycle.model.times import from_seconds

# Omits one more series per counter and histogram, with its creation time, which nothing reads.
disable_created_metrics()  # type: ignore[no-untyped-call]

#: All counters of this module. A reload of the configuration does not reset them.
COUNTERS = CollectorRegistry()
ProcessCollector(registry=COUNTERS)

WEBHOOKS = Counter(
    "mergewright_webhooks",
    "Webhook requests by the HTTP status of the response.",
    ["status"],
    registry=COUNTERS,
)
ACTIONS = Counter(
    "mergewright_actions",
    "Attempts to carry out an action, by its kind and how they ended.",
    ["kind", "result"],
    registry=COUNTERS,
)
NOTIFICATIONS = Counter(
    "mergewright_notifications",
    "Attempts to send a message, by its notifier and whether it was sent or failed.",
    ["notifier", "result"],
    registry=COUNTERS,
)
GITHUB_REQUESTS = Counter(
    "mergewright_github_requests",
    "Requests to GitHub by the HTTP status of the response; `none` if there was none.",
    ["status"],
    registry=COUNTERS,
)
_REMAINING = Gauge(
    "mergewright_github_rate_limit_remaining",
    "What is left of a rate limit of GitHub, as its last response says.",
    ["account", "resource"],
    registry=COUNTERS,
)
_LIMIT = Gauge(
    "mergewright_github_rate_limit",
    "A rate limit of GitHub, as its last response says.",
    ["account", "resource"],
    registry=COUNTERS,
)
_RUNS = Histogram(
    "mergewright_worker_run_seconds",
    "Duration of the runs of a worker.",
    ["worker"],
    buckets=(0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0),
    registry=COUNTERS,
)
_FAILURES = Counter(
    "mergewright_worker_failures",
    "Runs of a worker that failed.",
    ["worker"],
    registry=COUNTERS,
)
_SUCCESS = Gauge(
    "mergewright_worker_success_timestamp_seconds",
    "When the last run of a worker that did not fail ended.",
    ["worker"],
    registry=COUNTERS,
)


#: When the last failed run of each worker ended, in seconds since 1970.
_failed_at: dict[str, float] = {}


class WorkerState(Struct, frozen=True, kw_only=True):
    """The number, mean duration and failures of a worker's runs since this process began."""

    name: str
    runs: int
    failures: int
    seconds: float  #: The mean duration of a run.
    succeeded_at: datetime | None  #: When the last successful run ended; if None, there was none.
    failing: bool  #: Whether the last run failed.


class RateLimit(Struct, frozen=True, kw_only=True):
    """A rate limit of GitHub, as of GitHub's last response."""

    account: str
    resource: str  #: GitHub's name of the limit, e.g. `core` or `graphql`.
    remaining: int  #: Requests or points that remain until the limit is reset.
    limit: int


def workers() -> list[WorkerState]:
    """Return the workers that have run, in the order of their names."""
    runs, succeeded = _samples(_RUNS, "_count"), _samples(_SUCCESS)
    seconds, failures = _samples(_RUNS, "_sum"), _samples(_FAILURES, "_total")
    return [
        WorkerState(
            name=name,
            runs=int(count),
            failures=int(failures.get((name,), 0)),
            seconds=seconds[name,] / count if count else 0.0,
            succeeded_at=from_seconds(succeeded[name,]) if (name,) in succeeded else None,
            failing=_failed_at.get(name, 0.0) > succeeded.get((name,), 0.0),
        )
        for (name,), count in sorted(runs.items())
    ]


def rate_limits() -> list[RateLimit]:
    """Return the rate limits named in responses so far, sorted by account and resource."""
    limits = _samples(_LIMIT)
    return [
        RateLimit(account=key[0], resource=key[1], remaining=int(left), limit=int(limits[key]))
        for key, left in sorted(_samples(_REMAINING).items())
        if key in limits
    ]


def _samples(metric: MetricWrapperBase, suffix: str = "") -> dict[tuple[str, ...], float]:
    """Return the values of a metric by its labels."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in metric.collect()
        for sample in family.samples
        if sample.name == f"{family.name}{suffix}"
    }


def show_rate_limit(account: str, resource: str, headers: Mapping[str, str]) -> None:
    """Set the metrics of a rate limit from the `x-ratelimit-` headers of a response, if any.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    for gauge, name in ((_REMAINING, "remaining"), (_LIMIT, "limit")):
        if (value := headers.get(f"x-ratelimit-{name}", "")).isdigit():
            gauge.labels(account, resource).set(int(value))


@contextmanager
def worker_run(worker: str) -> Iterator[None]:
    """Count and time a run of a worker. An exception counts as a failure and is raised again."""
    failures = _FAILURES.labels(worker)  # Exists from the first run, so the first failure shows.
    try:
        with _RUNS.labels(worker).time():
            yield
    except Exception:
        failures.inc()
        _failed_at[worker] = time()
        raise
    _SUCCESS.labels(worker).set(time())
