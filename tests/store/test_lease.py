"""The lease: one bot acts on a database, and late writes of a replaced one are refused."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.store import Fenced, Store, this_process
from tests.store.conftest import Scenario, decision

LEADER = """
import sys
from pathlib import Path
from bot.store import Store, this_process
from datetime import datetime
store = Store(Path(sys.argv[1]))
print(store.lease.acquire(this_process(), datetime.fromisoformat(sys.argv[2]), 3600), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(open_store: Callable[[], Store]) -> Store:
    """A second bot on the same database."""
    return open_store()


@pytest.fixture
def leader(scenario: Scenario, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that leads for an hour."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEADER, str(path), scenario.now.isoformat()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    with process:
        yield process
        process.kill()


def test_a_second_bot_waits_on_standby(scenario: Scenario, store: Store, other: Store) -> None:
    assert store.lease.acquire("one", scenario.now, 30) == 1
    assert other.lease.acquire("two", scenario.now, 30) is None
    assert other.lease.holder() == ("one", scenario.clock.passes(30))


def test_a_leader_renews_its_lease_in_its_epoch(
    scenario: Scenario, store: Store, other: Store
) -> None:
    assert store.lease.acquire("one", scenario.now, 30) == 1
    scenario.clock.passes(20)
    assert store.lease.acquire("one", scenario.now, 30) == 1
    scenario.clock.passes(20)
    assert other.lease.acquire("two", scenario.now, 30) is None


def test_a_leader_with_an_expired_lease_is_replaced(
    scenario: Scenario, store: Store, other: Store
) -> None:
    store.lease.acquire("one", scenario.now, 30)
    assert other.lease.acquire("two", scenario.clock.passes(30), 30) == 2
    assert store.lease.acquire("one", scenario.now, 30) is None


def test_a_leader_that_releases_its_lease_is_replaced_at_once(
    scenario: Scenario, store: Store, other: Store
) -> None:
    store.lease.acquire("one", scenario.now, 30)
    other.lease.release("two")
    assert store.lease.holder() is not None
    store.lease.release("one")
    assert store.lease.holder() is None
    assert other.lease.acquire("two", scenario.now, 30) == 2


def test_a_leader_that_was_killed_is_replaced_at_once(
    scenario: Scenario, store: Store, leader: "subprocess.Popen[str]"
) -> None:
    assert store.lease.acquire("two", scenario.now, 30) is None
    assert store.lease.holder() is not None
    leader.send_signal(signal.SIGKILL)
    leader.wait()
    assert store.lease.holder() is None
    assert store.lease.acquire("two", scenario.now, 30) == 2


def test_a_stopped_leader_is_replaced_only_after_its_lease_expires(
    scenario: Scenario, store: Store, leader: "subprocess.Popen[str]"
) -> None:
    leader.send_signal(signal.SIGSTOP)
    assert store.lease.acquire("two", scenario.now, 30) is None
    assert store.lease.acquire("two", scenario.clock.passes(3600), 30) == 2


def _changed(place: int, value: str) -> str:
    parts = this_process().split(":")
    parts[place] = value
    return ":".join(parts)


@pytest.mark.parametrize(
    ("owner", "gone"),
    [
        (this_process(), False),
        (_changed(1, "an-earlier-boot"), True),
        (_changed(3, "1"), True),  # the number belongs to another process by now
        ("another-host/1:" + _changed(3, "1").partition(":")[2], False),
        ("somebody", False),
    ],
    ids=["alive", "rebooted", "number used again", "elsewhere", "unknown"],
)
def test_a_leader_counts_as_gone_only_with_proof(
    scenario: Scenario, store: Store, owner: str, gone: bool
) -> None:
    assert store.lease.acquire(owner, scenario.now, 30) == 1
    assert store.lease.acquire("two", scenario.now, 30) == (2 if gone else None)


def test_a_late_write_of_a_replaced_leader_is_refused(
    scenario: Scenario, store: Store, other: Store
) -> None:
    epoch = store.lease.acquire("one", scenario.now, 30)
    assert epoch is not None
    store.lease.fence("one", epoch)
    name = scenario.session(12)
    loaded = scenario.loaded(name)
    epoch = other.lease.acquire("two", scenario.clock.passes(30), 30)
    assert epoch is not None
    other.lease.fence("two", epoch)
    with pytest.raises(Fenced, match="another bot leads"):
        store.deliveries.add([scenario.delivery("a")]).result()
    with pytest.raises(Fenced):
        scenario.records(loaded, decision())
    assert store.writable() is False
    store.lease.release("one")
    assert other.lease.holder() is not None
    assert store.deliveries.waiting() == []
    assert other.writable() is True


def test_a_replaced_leader_may_lead_again_in_a_new_epoch(
    scenario: Scenario, store: Store, other: Store
) -> None:
    store.lease.fence("one", store.lease.acquire("one", scenario.now, 30) or 0)
    other.lease.acquire("two", scenario.clock.passes(30), 30)
    other.lease.release("two")
    epoch = store.lease.acquire("one", scenario.now, 30)
    assert epoch == 3
    with pytest.raises(Fenced):
        scenario.session(12)
    store.lease.fence("one", epoch)
    scenario.session(12)
