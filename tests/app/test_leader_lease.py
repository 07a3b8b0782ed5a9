"""A lease is taken over once it was not renewed for its whole duration, whatever the clocks say."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import pytest

from bot.app.leader_lease import LeaderLease
from bot.store import Store
from tests.world.databases import empty_database
from tests.world.waiting import eventually

ELSEWHERE = "another-host:boot:1:1"
SECONDS = 0.6
HOURS = [timedelta(hours=-1), timedelta(), timedelta(hours=1)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(empty_database(tmp_path / "mergewright.db"))
    yield opened
    opened.close()


@pytest.fixture
def lease(store: Store, tmp_path: Path) -> Iterator[LeaderLease]:
    made = LeaderLease(
        *(store.lease, store.outbox, tmp_path, SECONDS, lambda: datetime.now(UTC)),
        on_lead=lambda: None,
        stopping=threading.Event(),
    )
    yield made
    made.stopping.set()
    made.join()


@pytest.mark.parametrize("ahead", HOURS)
def test_a_leader_that_is_gone_is_replaced_after_the_duration_of_its_lease(
    store: Store, lease: LeaderLease, ahead: timedelta
) -> None:
    store.lease.acquire(ELSEWHERE, datetime.now(UTC) + ahead, SECONDS)
    begun = monotonic()
    lease.start()
    eventually(lease.may_act, "it leads")
    assert monotonic() - begun >= SECONDS


@pytest.mark.parametrize("ahead", HOURS)
def test_a_leader_that_renews_its_lease_is_not_replaced(
    store: Store, lease: LeaderLease, ahead: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test moves the waiting bot's clock only after that bot, however slow, saw a renewal."""
    passed, looks = 0.0, list[float]()

    def clock() -> float:
        looks.append(passed)
        return passed

    monkeypatch.setattr("bot.app.leader_lease.monotonic", clock)
    renewed = store.lease.acquire(ELSEWHERE, datetime.now(UTC) + ahead, SECONDS)
    lease.start()
    for _ in range(6):
        assert store.lease.acquire(ELSEWHERE, datetime.now(UTC) + ahead, SECONDS) == renewed
        seen = len(looks) + 4  # Each look asks at most twice, and one may be under way.
        eventually(lambda seen=seen: len(looks) >= seen, "it looks again")  # type: ignore[misc]
        passed += 0.9 * SECONDS
    assert not lease.may_act()
