"""Pending writes are committed together, and each fails alone."""

import resource
import sqlite3
import threading
from concurrent.futures import Future
from pathlib import Path
from time import monotonic

import pytest

from bot.store import Store, StoreBusy, StoreClosed, StoreFailure, StoreFull, StoreUnusable
from tests.store.conftest import Scenario

LARGE = b"x" * 1_000_000


class Gate:
    """Blocks the writer until it is opened, so that jobs queue up."""

    def __init__(self, store: Store) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()
        self._thread = threading.Thread(target=store.db.write, args=(self._wait,))
        self._thread.start()
        assert self._reached.wait(10)

    def _wait(self, connection: sqlite3.Connection) -> None:
        self._reached.set()
        assert self._open.wait(10)

    def opens(self) -> None:
        self._open.set()
        self._thread.join()


def limit_pages(store: Store, pages: int) -> None:
    store.db.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}"))


def test_pending_writes_are_committed_together(
    scenario: Scenario, store: Store, statements: list[str]
) -> None:
    gate = Gate(store)
    futures = [store.deliveries.add([scenario.delivery(str(n))]) for n in range(10)]
    gate.opens()
    for future in futures:
        future.result()
    assert statements.count("COMMIT") == 2, "one for the gate, one for the rest"


def test_a_failing_job_rolls_back_only_its_own_writes(scenario: Scenario, store: Store) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM deliveries")
        raise LookupError("as it happens")

    gate = Gate(store)
    before = store.deliveries.add([scenario.delivery("before")])
    failure: Future[None] = Future()

    def run() -> None:
        try:
            store.db.write(fails)
        except LookupError as error:
            failure.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    after = store.deliveries.add([scenario.delivery("after")])
    gate.opens()
    thread.join()
    before.result(), after.result()
    with pytest.raises(LookupError, match="as it happens"):
        failure.result()
    assert {row.id for row in store.deliveries.waiting()} == {"before", "after"}


def test_a_cancelled_future_is_skipped(scenario: Scenario, store: Store) -> None:
    gate = Gate(store)
    cancelled, wanted = (
        store.deliveries.add([scenario.delivery("a")]),
        store.deliveries.add([scenario.delivery("b")]),
    )
    assert cancelled.cancel()
    gate.opens()
    wanted.result()
    assert [row.id for row in store.deliveries.waiting()] == ["b"]


def test_a_full_disk_refuses_only_the_writes_that_do_not_fit(
    scenario: Scenario, store: Store
) -> None:
    limit_pages(store, 60)
    gate = Gate(store)
    small, large = (
        store.deliveries.add([scenario.delivery("small")]),
        store.deliveries.add([scenario.delivery("large", body=LARGE)]),
    )
    gate.opens()
    with pytest.raises(StoreFull, match=r"mergewright\.db.*free some space"):
        large.result()
    small.result()
    assert [row.id for row in store.deliveries.waiting()] == ["small"]
    limit_pages(store, 1_000_000)
    store.deliveries.add([scenario.delivery("large", body=LARGE)]).result()
    assert len(store.deliveries.waiting()) == 2


def test_a_disk_failure_at_the_commit_is_repeated_job_by_job(
    scenario: Scenario, store: Store, path: Path
) -> None:
    store.deliveries.add([scenario.delivery("kept")]).result()
    size = path.with_name("mergewright.db-wal").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, limits[1]))
    try:
        with pytest.raises(StoreFailure, match="check the disk"):
            store.deliveries.add([scenario.delivery("lost", body=LARGE)]).result()
        assert [row.id for row in store.deliveries.waiting()] == ["kept"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.writable()
    store.deliveries.add([scenario.delivery("lost", body=LARGE)]).result()
    assert len(store.deliveries.waiting()) == 2


def test_writable_does_not_write_after_a_recent_commit(
    scenario: Scenario, store: Store, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.deliveries.add([scenario.delivery("a")]).result()
    statements.clear()
    assert store.writable()
    assert statements == []
    later = monotonic() + 60
    monkeypatch.setattr("bot.store.database.monotonic", lambda: later)
    assert store.writable()
    assert statements.count("COMMIT") == 1, "it was long ago"


def test_writable_writes_after_a_failed_commit(scenario: Scenario, store: Store) -> None:
    store.deliveries.add([scenario.delivery("a")]).result()
    store.db.write(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StoreUnusable):
        store.deliveries.add([scenario.delivery("b")]).result()
    assert store.writable() is False


def test_a_failed_commit_is_rolled_back_and_the_next_succeeds(
    scenario: Scenario, store: Store
) -> None:
    def breaks_at_the_commit(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute(
            "INSERT INTO history (session, at, kind, actor, data) VALUES ('nobody', 0, '', '', '')"
        )

    with pytest.raises(sqlite3.IntegrityError):
        store.db.write(breaks_at_the_commit)
    store.deliveries.add([scenario.delivery("a")]).result()
    assert store.history.of("nobody") == []


def test_a_file_that_became_read_only_is_named(scenario: Scenario, store: Store) -> None:
    store.db.write(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StoreUnusable, match=r"mergewright\.db.*write access"):
        store.deliveries.add([scenario.delivery("a")]).result()
    assert store.writable() is False


def test_a_locked_database_is_named_and_used_once_it_is_free(
    scenario: Scenario, store: Store, path: Path
) -> None:
    store.db.write(lambda connection: connection.execute("PRAGMA busy_timeout = 20"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreBusy, match="another process has locked it"):
            store.deliveries.add([scenario.delivery("a")]).result()
    finally:
        other.close()
    assert store.deliveries.add([scenario.delivery("a")]).result()


def test_a_job_cannot_wait_for_another_job(store: Store) -> None:
    with pytest.raises(RuntimeError, match="must not wait"):
        store.db.write(lambda connection: store.db.write(lambda inner: None))


def test_closing_finishes_pending_writes_and_refuses_new_ones(
    scenario: Scenario, store: Store, path: Path
) -> None:
    gate = Gate(store)
    waiting = store.deliveries.add([scenario.delivery("a")])
    closing = threading.Thread(target=store.close)
    closing.start()
    gate.opens()
    closing.join()
    waiting.result()
    for use in (
        store.sessions.live,
        store.commands.new,
        lambda: store.deliveries.add([scenario.delivery("b")]),
    ):
        with pytest.raises(StoreClosed):
            use()
    assert store.writable() is False
    assert not path.with_name("mergewright.db-wal").exists(), "the file was closed whole"
    store.close()


def test_readers_see_only_committed_data_and_block_no_writer(
    scenario: Scenario, store: Store
) -> None:
    seen: list[int] = []

    def read_while_writing(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO deliveries (id, event, at, body) VALUES ('a', '', 0, x'')")
        thread = threading.Thread(target=lambda: seen.append(len(store.deliveries.waiting())))
        thread.start()
        thread.join()

    store.db.write(read_while_writing)
    assert seen == [0]
    assert len(store.deliveries.waiting()) == 1
