"""`/metrics`, and the dashboard whose queries use it."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import config
from bot.store import Delivery
from bot.system.metrics import (
    ACTIONS,
    GITHUB_REQUESTS,
    NOTIFICATIONS,
    show_rate_limit,
    worker_run,
)
from lifecycle.model.facts import Usage
from lifecycle.model.status import Status
from tests.web.conftest import Site

DASHBOARD = Path(config.__file__).parent / "deploy" / "grafana.json"


def scraped(site: Site) -> dict[str, dict[tuple[str, ...], float]]:
    """All samples by name and labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(site.seen("/metrics").text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_metrics_need_the_token(site: Site) -> None:
    assert site.http.get("/metrics").status_code == 401
    answer = site.seen("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")


def test_sessions_are_counted_by_project_and_status(site: Site) -> None:
    for number, status in ((1, Status.WORKING), (2, Status.WORKING), (3, Status.STUCK)):
        site.session(number, status=status)
    counts = scraped(site)["mergewright_sessions"]
    assert counts == {("widgets", "working"): 2, ("widgets", "stuck"): 1}


def test_backlogs_have_their_size_and_age(site: Site) -> None:
    assert scraped(site)["mergewright_inbox_age_seconds"] == {(): 0}
    now = site.store.clock()
    waiting = Delivery(id="d-9", event="issues", at=now.replace(year=now.year - 1), body=b"{}")
    site.store.deliveries.add([waiting]).result()
    samples = scraped(site)
    assert samples["mergewright_inbox_deliveries"] == {(): 1}
    assert samples["mergewright_inbox_age_seconds"][()] > 364 * 86_400
    assert samples["mergewright_outbox_actions"] == {("due",): 0, ("sent",): 0, ("failed",): 0}


def test_usage_is_summed_by_repository_and_agent(site: Site) -> None:
    name = site.session(1)
    used = Usage(input=7, output=5, cost_usd=1.25)
    site.store.usage.record_response(name, 1, "a-model", used, lambda used: used)
    samples = scraped(site)
    tokens = samples["mergewright_tokens"]
    used_kinds = {kind: count for (_, kind, _), count in tokens.items() if count}
    assert used_kinds == {"input": 7, "output": 5}
    assert {repository for _, _, repository in tokens} == {"acme/widgets"}


def test_webhooks_are_counted_by_their_response(site: Site) -> None:
    before = scraped(site).get("mergewright_webhooks_total", {})
    site.deliver(x_github_delivery="m-1")
    site.deliver(x_github_delivery="m-1")
    site.deliver(secret="wrong")
    after = scraped(site)["mergewright_webhooks_total"]
    grown = {status: count - before.get(status, 0) for status, count in after.items()}
    assert {status: count for status, count in grown.items() if count} == {
        ("202",): 1,
        ("200",): 1,
        ("401",): 1,
    }


def test_every_query_of_the_dashboard_names_metrics_that_exist(site: Site) -> None:
    site.session(1)
    used = Usage(input=7, cost_usd=1.25)
    site.store.usage.record_response("widgets-1", 1, "a-model", used, lambda used: used)
    site.deliver(x_github_delivery="m-2")
    show_rate_limit("acme", "core", {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4999"})
    GITHUB_REQUESTS.labels("200").inc()
    ACTIONS.labels("comment", "Completed").inc()
    NOTIFICATIONS.labels("team", "sent").inc()
    with worker_run("sweep"):
        pass
    existing, used_names = scraped(site).keys(), set[str]()
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        for target in panel["targets"]:
            named = set(re.findall(r"\b(?:mergewright|process)_\w+", target["expr"]))
            assert named, panel["title"]
            assert named <= existing, panel["title"]
            used_names |= named
    unused = {name for name in existing if name.startswith("mergewright_")} - used_names
    assert {name for name in unused if not re.search("_(sum|count|info)$", name)} == {
        "mergewright_active_seconds",
        "mergewright_freezes",
        "mergewright_refreshes",
        "mergewright_inbox_deliveries",
        "mergewright_slots",
    }
