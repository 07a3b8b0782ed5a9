"""What waits is committed together; what fails, fails alone; and the store goes on."""

import resource
import sqlite3
import threading
from concurrent.futures import Future
from pathlib import Path
from time import monotonic

import pytest

from bot.store import Store, StoreBusy, StoreClosed, StoreFailure, StoreFull, StoreUnusable
from tests.store.conftest import Room

LARGE = b"x" * 1_000_000


class Gate:
    """Holds the writer back until it is opened, so that work piles up behind it."""

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


def test_what_waits_is_committed_together(room: Room, store: Store, statements: list[str]) -> None:
    gate = Gate(store)
    futures = [store.deliveries.add([room.delivery(str(n))]) for n in range(10)]
    gate.opens()
    for future in futures:
        future.result()
    assert statements.count("COMMIT") == 2, "one for the gate, one for the rest"


def test_work_that_fails_takes_back_its_own_writes_alone(room: Room, store: Store) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM deliveries")
        raise LookupError("as it happens")

    gate = Gate(store)
    before = store.deliveries.add([room.delivery("before")])
    failure: Future[None] = Future()

    def run() -> None:
        try:
            store.db.write(fails)
        except LookupError as error:
            failure.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    after = store.deliveries.add([room.delivery("after")])
    gate.opens()
    thread.join()
    before.result(), after.result()
    with pytest.raises(LookupError, match="as it happens"):
        failure.result()
    assert {row.id for row in store.deliveries.waiting()} == {"before", "after"}


def test_a_future_nobody_waits_for_any_more_harms_nobody(room: Room, store: Store) -> None:
    gate = Gate(store)
    given_up, wanted = (
        store.deliveries.add([room.delivery("a")]),
        store.deliveries.add([room.delivery("b")]),
    )
    assert given_up.cancel()
    gate.opens()
    wanted.result()
    assert [row.id for row in store.deliveries.waiting()] == ["b"]


def test_a_full_database_refuses_what_does_not_fit_and_goes_on(room: Room, store: Store) -> None:
    limit_pages(store, 60)
    gate = Gate(store)
    small, large = (
        store.deliveries.add([room.delivery("small")]),
        store.deliveries.add([room.delivery("large", body=LARGE)]),
    )
    gate.opens()
    with pytest.raises(StoreFull, match=r"mergewright\.db.*free some space"):
        large.result()
    small.result()
    assert [row.id for row in store.deliveries.waiting()] == ["small"]
    limit_pages(store, 1_000_000)
    store.deliveries.add([room.delivery("large", body=LARGE)]).result()
    assert len(store.deliveries.waiting()) == 2


def test_a_disk_that_fails_at_the_commit_loses_nothing_and_recovers(
    room: Room, store: Store, path: Path
) -> None:
    store.deliveries.add([room.delivery("kept")]).result()
    size = path.with_name("mergewright.db-wal").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, limits[1]))
    try:
        with pytest.raises(StoreFailure, match="check the disk"):
            store.deliveries.add([room.delivery("lost", body=LARGE)]).result()
        assert [row.id for row in store.deliveries.waiting()] == ["kept"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.writable()
    store.deliveries.add([room.delivery("lost", body=LARGE)]).result()
    assert len(store.deliveries.waiting()) == 2


def test_writing_is_not_tried_where_it_has_just_succeeded(
    room: Room, store: Store, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.deliveries.add([room.delivery("a")]).result()
    statements.clear()
    assert store.writable()
    assert statements == []
    later = monotonic() + 60
    monkeypatch.setattr("bot.store.database.monotonic", lambda: later)
    assert store.writable()
    assert statements.count("COMMIT") == 1, "it was long ago"


def test_writing_is_tried_where_it_has_just_failed(room: Room, store: Store) -> None:
    store.deliveries.add([room.delivery("a")]).result()
    store.db.write(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StoreUnusable):
        store.deliveries.add([room.delivery("b")]).result()
    assert store.writable() is False


def test_a_commit_that_fails_is_taken_back_and_the_next_succeeds(room: Room, store: Store) -> None:
    def breaks_at_the_commit(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute(
            "INSERT INTO history (session, at, kind, actor, data) VALUES ('nobody', 0, '', '', '')"
        )

    with pytest.raises(sqlite3.IntegrityError):
        store.db.write(breaks_at_the_commit)
    store.deliveries.add([room.delivery("a")]).result()
    assert store.history.of("nobody") == []


def test_a_file_that_may_not_be_written_any_more_is_named(room: Room, store: Store) -> None:
    store.db.write(lambda connection: connection.execute("PRAGMA query_only = ON"))
    with pytest.raises(StoreUnusable, match=r"mergewright\.db.*write access"):
        store.deliveries.add([room.delivery("a")]).result()
    assert store.writable() is False


def test_a_database_another_process_holds_is_named_and_used_again(
    room: Room, store: Store, path: Path
) -> None:
    store.db.write(lambda connection: connection.execute("PRAGMA busy_timeout = 20"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreBusy, match="another process has locked it"):
            store.deliveries.add([room.delivery("a")]).result()
    finally:
        other.close()
    assert store.deliveries.add([room.delivery("a")]).result()


def test_work_may_not_wait_for_other_work(store: Store) -> None:
    with pytest.raises(RuntimeError, match="must not wait"):
        store.db.write(lambda connection: store.db.write(lambda inner: None))


def test_closing_finishes_what_waits_and_refuses_the_rest(
    room: Room, store: Store, path: Path
) -> None:
    gate = Gate(store)
    waiting = store.deliveries.add([room.delivery("a")])
    closing = threading.Thread(target=store.close)
    closing.start()
    gate.opens()
    closing.join()
    waiting.result()
    for use in (
        store.sessions.live,
        store.commands.new,
        lambda: store.deliveries.add([room.delivery("b")]),
    ):
        with pytest.raises(StoreClosed):
            use()
    assert store.writable() is False
    assert not path.with_name("mergewright.db-wal").exists(), "the file was closed whole"
    store.close()


def test_readers_see_only_what_is_committed_and_block_nobody(room: Room, store: Store) -> None:
    seen: list[int] = []

    def look_while_writing(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO deliveries (id, event, at, body) VALUES ('a', '', 0, x'')")
        thread = threading.Thread(target=lambda: seen.append(len(store.deliveries.waiting())))
        thread.start()
        thread.join()

    store.db.write(look_while_writing)
    assert seen == [0]
    assert len(store.deliveries.waiting()) == 1
