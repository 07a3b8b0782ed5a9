"""A delivery is kept before it is acknowledged, and once."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from bot.store import DeliveryOutcome, RefreshRequest, Store
from tests.store.conftest import Room


def test_a_delivery_is_acknowledged_only_after_its_commit(
    room: Room, store: Store, path: Path
) -> None:
    future: Future[list[DeliveryOutcome]] = Future()
    before: list[bool] = []

    def trace(statement: str) -> None:
        if statement == "COMMIT":
            before.append(future.done())

    store.db.write(lambda connection: connection.set_trace_callback(trace))
    future = store.deliveries.add([room.delivery("a")])
    assert future.result() == [DeliveryOutcome.NEW]
    assert before[-1] is False
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT id FROM deliveries").fetchall() == [("a",)]
    other.close()


def test_a_commit_is_on_the_disk_before_it_returns(store: Store) -> None:
    def settings(connection: sqlite3.Connection) -> tuple[str, int]:
        crash_point = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return crash_point, connection.execute("PRAGMA synchronous").fetchone()[0]

    assert store.db.write(settings) == ("wal", 2)


def test_a_delivery_of_usual_size_fits_one_page(store: Store) -> None:
    def page_bytes(connection: sqlite3.Connection) -> object:
        return connection.execute("PRAGMA page_size").fetchone()[0]

    assert store.db.write(page_bytes) == 16_384


def test_a_batch_is_kept_whole_or_not_at_all(room: Room, store: Store) -> None:
    broken = room.delivery("c", body="text is no body")  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError):
        store.deliveries.add([room.delivery("a"), room.delivery("b"), broken]).result()
    assert store.deliveries.waiting() == []


def test_many_at_once_are_each_told_whether_they_are_new(room: Room, store: Store) -> None:
    store.deliveries.add([room.delivery("d70")]).result()
    accepted = store.deliveries.add([room.delivery(f"d{n}") for n in range(150)]).result()
    known = [place for place, each in enumerate(accepted) if each is DeliveryOutcome.DUPLICATE]
    assert (len(accepted), known) == (150, [70])
    assert len(store.deliveries.waiting(limit=500)) == 150


def test_a_second_delivery_with_the_same_id_is_a_duplicate(room: Room, store: Store) -> None:
    twice = [room.delivery("a"), room.delivery("a")]
    assert store.deliveries.add(twice).result() == [DeliveryOutcome.NEW, DeliveryOutcome.DUPLICATE]
    store.deliveries.mark_done("a", [], [])
    assert store.deliveries.add(twice[:1]).result() == [DeliveryOutcome.DUPLICATE]
    assert store.deliveries.waiting() == []


def test_a_delivery_that_failed_here_is_taken_again(room: Room, store: Store) -> None:
    store.deliveries.add([room.delivery("a")]).result()
    store.deliveries.mark_failed("a", "GitHub did not answer")
    assert store.deliveries.waiting() == []
    assert store.deliveries.add([room.delivery("a")]).result() == [DeliveryOutcome.RETRIED]
    assert [row.id for row in store.deliveries.waiting()] == ["a"]


def test_waiting_deliveries_come_oldest_first_with_their_bodies(room: Room, store: Store) -> None:
    late = room.delivery("late", body=b"\x00late")
    room.clock.passes(-60)
    early = room.delivery("early", body=b"early")
    store.deliveries.add([late, early]).result()
    assert store.deliveries.waiting() == [early, late]
    assert store.deliveries.waiting(limit=1) == [early]


def test_settling_writes_what_follows_in_the_same_transaction(
    room: Room, store: Store, statements: list[str]
) -> None:
    store.deliveries.add([room.delivery("a")]).result()
    statements.clear()
    refresh = RefreshRequest(repository="acme/widgets", subject="issue:12")
    command = room.command()
    store.deliveries.mark_done("a", [refresh], [command])
    assert statements.count("COMMIT") == 1
    assert store.deliveries.waiting() == []
    assert [t.subject for t in store.refreshes.due(room.now, ("issue:",))] == ["issue:12"]
    assert store.commands.new() == [command]


def test_settling_a_settled_delivery_repeats_nothing(room: Room, store: Store) -> None:
    store.deliveries.add([room.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [])
    store.deliveries.mark_done(
        "a", [RefreshRequest(repository="acme/widgets", subject="issue:12")], []
    )
    assert store.refreshes.due(room.now, ("issue:",)) == []


def test_settled_deliveries_are_deleted_after_their_retention(
    room: Room, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.deliveries.PRUNE_STEP", 2)
    store.deliveries.add([room.delivery(f"old-{n}") for n in range(5)]).result()
    for n in range(4):
        store.deliveries.mark_done(f"old-{n}", [], [])
    store.deliveries.mark_failed("old-4", "no")
    store.deliveries.add([room.delivery("waits")]).result()
    room.clock.passes(3600)
    store.deliveries.add([room.delivery("new")]).result()
    store.deliveries.mark_done("new", [], [])
    assert store.deliveries.prune(room.now, keep_seconds=1800) == 5
    assert [row.id for row in store.deliveries.waiting()] == ["waits"]
    assert store.deliveries.add([room.delivery("new")]).result() == [DeliveryOutcome.DUPLICATE]


def test_times_come_back_as_they_went_in(room: Room, store: Store) -> None:
    times = [room.now.replace(microsecond=part) for part in (0, 1, 123_457, 999_999)]
    for at in times:
        room.clock.now = at
        store.deliveries.add([room.delivery(str(at))]).result()
    assert [row.at for row in store.deliveries.waiting()] == times


def test_two_stores_keep_one_delivery_once(
    room: Room, store: Store, open_store: Callable[[], Store]
) -> None:
    other = open_store()
    both = [store.deliveries.add([room.delivery("a")]), other.deliveries.add([room.delivery("a")])]
    assert sorted(future.result()[0] for future in both) == [
        DeliveryOutcome.DUPLICATE,
        DeliveryOutcome.NEW,
    ]
