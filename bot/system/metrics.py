"""Counters of this process. `/metrics` shows them beside the state in the store.

It uses prometheus-client directly. Litestar's plugin, which wraps it, times the requests of the web
server; what has to be watched is what the bot does after it has answered them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import time

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.process_collector import ProcessCollector

# A series more for each counter and histogram, with the time it began, which nothing reads.
disable_created_metrics()  # type: ignore[no-untyped-call]

#: All counters of this module. They go on when the configuration is loaded again.
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


def show_rate_limit(account: str, resource: str, headers: Mapping[str, str]) -> None:
    """Show what a response says of a rate limit.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    for gauge, name in ((_REMAINING, "remaining"), (_LIMIT, "limit")):
        if (value := headers.get(f"x-ratelimit-{name}", "")).isdigit():
            gauge.labels(account, resource).set(int(value))


@contextmanager
def worker_run(worker: str) -> Iterator[None]:
    """Count and time a run of a worker."""
    failures = _FAILURES.labels(worker)  # From the first run on, so that increases are seen.
    try:
        with _RUNS.labels(worker).time():
            yield
    except Exception:
        failures.inc()
        raise
    _SUCCESS.labels(worker).set(time())
