"""The bot as a service: what it logs while nothing happens, and how it stops."""

import logging
from contextlib import closing

import httpx
import pytest

from bot.app import application
from bot.store import Store
from bot.system import log
from bot.system.locations import Paths
from bot.system.metrics import COUNTERS
from tests.world.waiting import PATIENCE, eventually
from tests.world.world import World


def runs(worker: str) -> float:
    """How often a worker has run."""
    labels = {"worker": worker}
    return COUNTERS.get_sample_value("mergewright_worker_run_seconds_count", labels) or 0.0


def passes(worker: str, times: int) -> None:
    """Wait until a worker has run so many more times."""
    last = runs(worker) + times
    eventually(lambda: runs(worker) >= last, f"{worker} runs {times} times", PATIENCE)


def test_an_idle_bot_logs_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    reviewed = world.agent_opens_a_pull_request(settle_seconds=0.2)
    reviewed.pull.ci_passes("unit")
    asking = world.issue("Another").is_labelled()
    asking.agent.starts()
    asking.agent.asks("Which colour?")
    asking.becomes("needs_input")
    reviewed.becomes("review_pending")
    world.bot_stops()
    world.bot_starts(resync_seconds=0.5)
    for library, level in log.NOISY.items():
        caplog.set_level(level, library)
    caplog.set_level(logging.INFO)  # Last, because each sets the level of what is kept, too.
    passes("resync", 2)  # Everything is read once after a start.
    passes("sweep", 3)
    caplog.clear()
    passes("sweep", 20)
    passes("resync", 3)
    assert [record.getMessage() for record in caplog.records] == []


def test_a_bot_that_stops_finishes_what_it_has_begun(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "_STOP_SECONDS", PATIENCE)
    issue = world.agent_starts()
    world.github.delay_next("POST", r"/pulls$", seconds=1.0)
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    eventually(lambda: not world.github.traffic.planned, "the request to open a pull request")
    app = world.app
    assert app is not None
    assert app.stop()
    world.app = None
    assert len(world.repo.pulls) == 1
    with closing(Store.reading(Paths(world.data).database)) as store:
        opened = [one for one in store.outbox.of(issue.id) if one.key.kind == "open_pull"]
        assert [one.state for one in opened] == ["done"]
        assert store.lease.holder() is None
    with pytest.raises(httpx.ConnectError):
        httpx.post(f"http://127.0.0.1:{world.port}/webhooks/github", content=b"{}")
