"""Workers: no concurrent runs, no lost wake, no end by a failure."""

import threading
import time
from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from bot.app import workers
from bot.app.workers import Job, Ticker, Worker
from bot.system import clock
from tests.world.waiting import PATIENCE, eventually


def test_a_wake_during_the_work_repeats_it() -> None:
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def work() -> None:
        runs.append(threading.active_count())
        begun.set()
        assert go_on.wait(PATIENCE)

    worker = Worker("test", work)
    worker.start()
    worker.wake()
    assert begun.wait(PATIENCE)
    for _ in range(3):
        worker.wake()
    assert len(runs) == 1
    go_on.set()
    eventually(lambda: len(runs) == 2, "it ran once more")
    assert worker.close(5)
    assert len(runs) == 2


def test_a_wake_before_the_start_waits_for_it() -> None:
    ran = threading.Event()
    worker = Worker("test", ran.set)
    worker.wake()
    assert not ran.is_set()
    worker.start()
    assert ran.wait(PATIENCE)
    assert worker.close(5)


def test_a_worker_survives_a_failure() -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        raise ValueError("broken")

    worker = Worker("test", work)
    worker.start()
    worker.wake()
    eventually(lambda: len(runs) == 1, "it ran")
    worker.wake()
    eventually(lambda: len(runs) == 2, "it ran again")
    assert worker.close(5)


def test_a_job_that_fails_is_repeated_until_the_ticker_stops() -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        raise ValueError("broken")

    ticker = Ticker(Job("test", 0.01, work))
    ticker.start()
    eventually(lambda: len(runs) > 2, "it was repeated")
    ran = ticker.running
    ticker.stop()
    assert ran is not ticker.running
    before = len(runs)
    time.sleep(0.05)
    assert len(runs) == before


@pytest.mark.parametrize(
    "jump", [timedelta(hours=-1), timedelta(days=200 * 365)], ids=["back", "ahead"]
)
@pytest.mark.parametrize("standby", [False, True])
def test_jobs_go_on_when_the_machines_clock_jumps(
    jump: timedelta, standby: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it jumps before they start, as in a bot that waits for the lease."""
    offset, often, rarely = timedelta(), list[int](), list[int]()

    class Machine(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Machine":
            return cls.fromtimestamp((datetime.now(UTC) + offset).timestamp(), tz)

    monkeypatch.setattr("apscheduler.schedulers.base.datetime", Machine)
    monkeypatch.setattr("apscheduler.triggers.interval.datetime", Machine)
    for module in (clock, workers):
        monkeypatch.setattr(module, "utc_now", lambda: Machine.now(UTC))
    ticker = Ticker(
        Job("often", 0.01, lambda: often.append(1)), Job("rarely", 3000.0, lambda: rarely.append(1))
    )
    if not standby:
        ticker.start()
        eventually(lambda: often, "it runs")
    offset = jump
    if standby:
        ticker.start()
    eventually(lambda: rarely, "it runs at once")
    before = len(often)
    eventually(lambda: len(often) > before + 2, "it is repeated")
    ticker.stop()
    assert len(rarely) == 1


def test_a_hanging_worker_does_not_block_the_shutdown() -> None:
    go_on, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    worker = Worker("test", work)
    worker.start()
    worker.wake()
    assert begun.wait(PATIENCE)
    assert not worker.close(0)
    go_on.set()
    assert worker.close(5)


@pytest.mark.parametrize("refused", ["APScheduler", "test"])
def test_a_beginning_that_failed_halfway_can_be_repeated(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the system refuses a thread: the bot then begins once more."""
    ticked, ran, starts = threading.Event(), threading.Event(), threading.Thread.start
    worker, ticker = Worker("test", ran.set), Ticker(Job("tick", 0.01, ticked.set))

    def start(thread: threading.Thread) -> None:
        if thread.name == refused:
            raise RuntimeError("can't start new thread")
        starts(thread)

    def begin() -> None:
        ticker.start()
        worker.wake()
        worker.start()

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError):
            begin()
    begin()
    assert ticked.wait(PATIENCE)
    assert ran.wait(PATIENCE)
    ticker.stop()
    assert worker.close(5)
