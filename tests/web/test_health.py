"""Whether the bot is healthy: the page, the API and the command line of another machine."""

import re
from datetime import timedelta

import pytest

from bot.store import Delivery
from bot.system import metrics
from bot.system.isolation import NotIsolated
from bot.web.health import Health
from lifecycle.model.actions import Comment
from lifecycle.model.key import parse
from lifecycle.model.status import Reason
from tests.web.conftest import Site


def words(site: Site, path: str = "/health") -> str:
    return " ".join(re.sub("<[^>]+>", " ", site.seen(path).text).split())


def test_whether_the_bot_is_healthy_is_one_click_from_the_board(site: Site) -> None:
    assert '<a href="/health">Health</a>' in site.seen("/").text
    page = words(site)
    assert "Health healthy This instance is active" in page
    report = site.seen("/api/v1/health").json()
    assert (report["healthy"], report["problems"]) == (True, [])


@pytest.mark.parametrize(
    ("health", "problem"),
    [
        (Health(scheduler=False), "The periodic jobs are not running"),
        (
            Health(scheduler=True, standby_reason="another one leads"),
            "This instance does not act: another one leads.",
        ),
        (
            Health(scheduler=True, sweep_age=180.0, sweep_late=True),
            "The bot has not checked its agents for 3 minutes",
        ),
    ],
    ids=["scheduler", "standby", "sweep"],
)
def test_a_problem_is_said_at_the_top_and_over_the_api(
    site: Site, health: Health, problem: str
) -> None:
    site.health = health
    page = words(site)
    assert "Health not healthy" in page
    assert problem in page
    report = site.seen("/api/v1/health").json()
    assert report["healthy"] is False
    assert len(report["problems"]) == 1
    assert report["process"]["ready"] is False


def test_incidents_are_shown_while_they_are_open_and_afterwards(site: Site) -> None:
    now = site.store.clock()
    site.store.incidents.report("full", "the <disk> is full", now - timedelta(hours=2))
    open_, _, past = words(site).partition("Past incidents")
    assert "not healthy The &lt;disk&gt; is full." in open_
    assert "disk" not in past
    site.store.incidents.clear("full", now)
    open_, _, past = words(site).partition("Past incidents")
    assert "Health healthy" in open_
    assert "The &lt;disk&gt; is full. Ended" in past
    (one,) = site.seen("/api/v1/health").json()["past"]
    assert one["key"] == "full"


def test_backlogs_have_their_size_and_their_age(site: Site) -> None:
    now = site.store.clock()
    session = site.session(1, actions=(Comment(key=parse("ready_to_merge"), number=1, topic="x"),))
    (due,) = site.store.outbox.due(site.store.clock())
    site.store.outbox.mark_failed(due.seq, Reason.ACTION_FAILED, "no", site.store.clock())
    old = Delivery(id="d-9", event="issues", at=now - timedelta(minutes=3), body=b"{}")
    site.store.deliveries.add([old]).result()
    assert session
    page = words(site)
    assert "1 webhook delivery waits to be processed, the oldest for 3 minutes; see" in page
    assert "The bot has given up on 1 action of open sessions; press" in page
    assert "Retry failed actions" in page
    assert re.search(r"Deliveries to process 1 \d{4}-", page)
    assert re.search(r"Failed actions of open sessions 1 \d{4}-", page)
    state = site.seen("/api/v1/health").json()["state"]
    assert (state["inbox"]["rows"], state["outbox"]["failed"]["rows"]) == (1, 1)


def test_workers_and_rate_limits_of_this_process_are_shown(site: Site) -> None:
    with metrics.worker_run("sweep"):
        pass
    with pytest.raises(ZeroDivisionError), metrics.worker_run("outbox"):
        raise ZeroDivisionError
    headers = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "120"}
    metrics.show_rate_limit("acme", "core", headers)
    metrics.show_rate_limit("acme", "graphql", headers)
    page = words(site)
    assert re.search(r"sweep \d{4}-\S+ \S+ UTC 1 0 \d+ ms", page)
    assert re.search(r"outbox failing never 1 1 \d+ ms", page)
    assert "The last run of the worker outbox failed" in page
    assert "acme core: 120 of 5,000 left" in page
    assert "rate limit core for acme: 120 of 5,000 requests are left" in page
    assert "rate limit graphql for acme: 120 of 5,000 points are left" in page
    process = site.seen("/api/v1/health").json()["process"]
    assert [(one["name"], one["failing"]) for one in process["workers"]] == [
        ("outbox", True),
        ("sweep", False),
    ]
    with metrics.worker_run("outbox"):
        pass
    assert "Health healthy" in words(site)


def test_versions_and_isolation_are_shown(site: Site) -> None:
    page = words(site)
    assert re.search(r"Mergewright \d", page)
    assert "Database SQLite 3." in page
    report = site.seen("/api/v1/health").json()
    assert [one["agent_types"] for one in report["isolations"]] == [["shell"]]
    assert report["runtime"] == "tmux"


def test_agents_without_a_usable_isolation_are_named_with_a_remedy(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise NotIsolated("docker does not answer")

    monkeypatch.setattr("bot.show.health.isolation_of", refuse)
    says = "No usable isolation shell: not started; mergewright doctor names the remedy"
    assert says in words(site)
