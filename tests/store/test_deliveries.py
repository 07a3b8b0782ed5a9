"""Deliveries are on disk before they are acknowledged, once each."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path

import pytest

from bot.store import DatedKind, DeliveryOutcome, RefreshRequest, Store
from tests.store.conftest import Scenario


def test_a_delivery_is_acknowledged_only_after_its_commit(
    scenario: Scenario, store: Store, path: Path
) -> None:
    future: Future[list[DeliveryOutcome]] = Future()
    before: list[bool] = []

    def trace(statement: str) -> None:
        if statement == "COMMIT":
            before.append(future.done())

    store.db.write(lambda connection: connection.set_trace_callback(trace))
    future = store.deliveries.add([scenario.delivery("a")])
    assert future.result() == [DeliveryOutcome.NEW]
    assert before[-1] is False
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT id FROM deliveries").fetchall() == [("a",)]
    other.close()


def test_a_commit_is_on_the_disk_before_it_returns(store: Store) -> None:
    def settings(connection: sqlite3.Connection) -> tuple[str, int]:
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return journal, connection.execute("PRAGMA synchronous").fetchone()[0]

    assert store.db.write(settings) == ("wal", 2)


def test_a_delivery_of_usual_size_fits_one_page(scenario: Scenario, store: Store) -> None:
    def pages() -> int:
        return int(store.db.write(lambda db: db.execute("PRAGMA page_count").fetchone()[0]))

    before = pages()
    body = b"x" * 12_000
    store.deliveries.add([scenario.delivery(str(n), body) for n in range(50)]).result()
    assert 50 <= pages() - before < 60


def test_a_batch_of_deliveries_is_stored_as_a_whole_or_not_at_all(
    scenario: Scenario, store: Store
) -> None:
    broken = scenario.delivery("c", body="text is no body")  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError):
        store.deliveries.add([scenario.delivery("a"), scenario.delivery("b"), broken]).result()
    assert store.deliveries.waiting() == []


def test_each_delivery_of_a_batch_has_its_own_outcome(scenario: Scenario, store: Store) -> None:
    store.deliveries.add([scenario.delivery("d70")]).result()
    accepted = store.deliveries.add([scenario.delivery(f"d{n}") for n in range(150)]).result()
    known = [place for place, each in enumerate(accepted) if each is DeliveryOutcome.DUPLICATE]
    assert (len(accepted), known) == (150, [70])
    assert len(store.deliveries.waiting(limit=500)) == 150


def test_a_second_delivery_with_the_same_id_is_a_duplicate(
    scenario: Scenario, store: Store
) -> None:
    twice = [scenario.delivery("a"), scenario.delivery("a")]
    assert store.deliveries.add(twice).result() == [DeliveryOutcome.NEW, DeliveryOutcome.DUPLICATE]
    store.deliveries.mark_done("a", [], [])
    assert store.deliveries.add(twice[:1]).result() == [DeliveryOutcome.DUPLICATE]
    assert store.deliveries.waiting() == []


def test_a_redelivery_of_a_failed_delivery_is_processed_again(
    scenario: Scenario, store: Store
) -> None:
    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_failed("a", "GitHub did not answer")
    assert store.deliveries.waiting() == []
    assert store.deliveries.add([scenario.delivery("a")]).result() == [DeliveryOutcome.RETRIED]
    assert [row.id for row in store.deliveries.waiting()] == ["a"]


def test_waiting_deliveries_are_returned_oldest_first_with_their_bodies(
    scenario: Scenario, store: Store
) -> None:
    late = scenario.delivery("late", body=b"\x00late")
    scenario.clock.passes(-60)
    early = scenario.delivery("early", body=b"early")
    store.deliveries.add([late, early]).result()
    assert store.deliveries.waiting() == [early, late]
    assert store.deliveries.waiting(limit=1) == [early]


def test_marking_a_delivery_done_writes_its_refreshes_and_commands_in_one_transaction(
    scenario: Scenario, store: Store, statements: list[str]
) -> None:
    store.deliveries.add([scenario.delivery("a")]).result()
    statements.clear()
    refresh = RefreshRequest(repository="acme/widgets", subject="issue:12")
    command = scenario.command()
    store.deliveries.mark_done("a", [refresh], [command])
    assert statements.count("COMMIT") == 1
    assert store.deliveries.waiting() == []
    assert [t.subject for t in store.refreshes.due(scenario.now, ("issue:",))] == ["issue:12"]
    assert store.commands.new() == [command]


def test_marking_a_delivery_done_twice_writes_nothing(scenario: Scenario, store: Store) -> None:
    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [])
    store.deliveries.mark_done(
        "a", [RefreshRequest(repository="acme/widgets", subject="issue:12")], []
    )
    assert store.refreshes.due(scenario.now, ("issue:",)) == []


def test_processed_deliveries_are_deleted_after_their_retention(
    scenario: Scenario, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.expiry.STEP", 2)
    store.deliveries.add([scenario.delivery(f"old-{n}") for n in range(5)]).result()
    for n in range(4):
        store.deliveries.mark_done(f"old-{n}", [], [])
    store.deliveries.mark_failed("old-4", "no")
    store.deliveries.add([scenario.delivery("waits")]).result()
    scenario.clock.passes(3600)
    store.deliveries.add([scenario.delivery("new")]).result()
    store.deliveries.mark_done("new", [], [])
    before = scenario.now - timedelta(seconds=1800)
    assert store.expiry.dated(DatedKind.DELIVERIES, before).rows == 5
    store.expiry.delete_dated(DatedKind.DELIVERIES, before)
    assert store.expiry.dated(DatedKind.DELIVERIES, before).rows == 0
    assert [row.id for row in store.deliveries.waiting()] == ["waits"]
    assert store.deliveries.add([scenario.delivery("new")]).result() == [DeliveryOutcome.DUPLICATE]
    with store.db.read() as connection:
        outcomes = connection.execute("SELECT delivery FROM delivery_outcomes").fetchall()
    assert [row["delivery"] for row in outcomes] == ["new"]


def test_times_are_stored_exactly(scenario: Scenario, store: Store) -> None:
    times = [scenario.now.replace(microsecond=part) for part in (0, 1, 123_457, 999_999)]
    for at in times:
        scenario.clock.now = at
        store.deliveries.add([scenario.delivery(str(at))]).result()
    assert [row.at for row in store.deliveries.waiting()] == times


def test_two_processes_store_one_delivery_once(
    scenario: Scenario, store: Store, open_store: Callable[[], Store]
) -> None:
    other = open_store()
    both = [
        store.deliveries.add([scenario.delivery("a")]),
        other.deliveries.add([scenario.delivery("a")]),
    ]
    assert sorted(future.result()[0] for future in both) == [
        DeliveryOutcome.DUPLICATE,
        DeliveryOutcome.NEW,
    ]
