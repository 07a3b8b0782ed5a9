"""A damaged, missing or replaced database is recognised, and two processes never write at once."""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from bot.store import (
    Store,
    StoreBusy,
    StoreDamaged,
    StoreFailure,
    StoreUnusable,
    check_whole,
)
from bot.store.opening import PAGE_BYTES, RedactingConnection
from tests.store.conftest import Scenario

#: Each file has many pages of each table's tree.
SESSIONS = 30


def zero_first_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(PAGE_BYTES))


def zero_all_but_the_first_page(path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(PAGE_BYTES)
        file.write(bytes(size - PAGE_BYTES))


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // PAGE_BYTES // 2 * PAGE_BYTES)


def overwrite(path: Path) -> None:
    path.write_text("no database\n" * 2000)


DAMAGES = (zero_first_page, zero_all_but_the_first_page, cut_in_half, overwrite)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_with_the_remedy_and_left_as_it_is(
    scenario: Scenario, store: Store, path: Path, damage: Callable[[Path], None]
) -> None:
    for number in range(1, SESSIONS):
        scenario.session(number)
    store.close()
    damage(path)
    content = path.read_bytes()
    for opening in (Store, check_whole):
        with pytest.raises(StoreDamaged, match=r"mergewright\.db.*restore it from a backup"):
            opening(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("use", ["read", "write"])
def test_the_first_use_of_a_file_damaged_meanwhile_reports_it_once(
    scenario: Scenario, store: Store, path: Path, suffix: str, use: str
) -> None:
    scenario.session(1)
    store.db.write(lambda connection: connection.execute("PRAGMA cache_size = 0"))
    store.db.write(lambda connection: connection.execute("PRAGMA mmap_size = 0"))
    if not suffix:
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    met: list[str] = []
    store.on_damage.append(lambda: met.append(store.damage))
    file = path.with_name(path.name + suffix)
    if suffix:
        os.truncate(file, 100)
    else:
        zero_all_but_the_first_page(file)
    uses: dict[str, Callable[[], object]] = {
        "read": store.sessions.all,
        "write": lambda: scenario.session(2),
    }
    for _ in range(3):
        unmap(store)
        with pytest.raises(StoreFailure):
            uses[use]()
    assert len(met) == 1
    assert "restore it from a backup" in met[0]
    assert store.writable() is False


def test_a_file_that_was_emptied_is_damaged_although_sqlite_reads_it(
    scenario: Scenario, store: Store, path: Path
) -> None:
    scenario.session(1)
    unmap(store)
    for file in (path.with_name(f"{path.name}-wal"), path):
        os.truncate(file, 0)
    with pytest.raises(StoreDamaged, match="restore it from a backup"):
        store.sessions.all()
    assert "restore it from a backup" in store.damage


def unmap(store: Store) -> None:
    """Close idle connections, so that the next readers open the file as it is now."""
    while store.db._idle:
        store.db._idle.pop().close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_moved_away_is_not_written_any_more(
    scenario: Scenario, store: Store, path: Path, replaced: bool
) -> None:
    path.rename(path.with_name("elsewhere"))
    if replaced:
        path.touch()
    with pytest.raises(StoreDamaged, match="moved away or replaced"):
        store.deliveries.add([scenario.delivery("a")]).result()
    assert store.damage


def make_nothing(path: Path) -> None:
    """Create nothing: no file is at the path."""


def make_empty(path: Path) -> None:
    path.touch()


def make_without_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize("make", [make_nothing, make_empty, make_without_tables])
def test_no_database_is_created_where_that_is_refused(
    path: Path, make: Callable[[Path], None]
) -> None:
    make(path)
    wal = path.with_name("mergewright.db-wal")
    if make is not make_without_tables:
        wal.write_bytes(b"commits")
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(StoreUnusable, match="but there are sessions"):
        Store(path, refuse_new="but there are sessions")
    if make is not make_without_tables:
        assert (path.read_bytes() if path.exists() else None) == before
    assert wal.exists() is (make is not make_without_tables)
    wal.unlink(missing_ok=True)
    Store(path).close()
    Store(path, refuse_new="but there are sessions").close()


def test_every_commit_and_its_checkpoint_exclude_other_processes(
    scenario: Scenario, store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[bool] = []
    execute = RedactingConnection.execute

    def watched(self: RedactingConnection, sql: str, *rest: object) -> sqlite3.Cursor:
        if sql in ("COMMIT", "PRAGMA journal_mode = WAL") and threading.current_thread().name in (
            "store-writer",
            "MainThread",
        ):
            with path.with_name("mergewright.db-lock").open() as file, suppress(BlockingIOError):
                alone.append(True)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone[-1] = False
        return execute(self, sql, *rest)

    with closing(Store.beside(path, str)) as guest:
        monkeypatch.setattr(RedactingConnection, "execute", watched)
        scenario.session(1)
        guest.metadata.set("widgets-1", {"key": "value"}, "ada")
    with closing(Store(path)):
        pass
    assert len(alone) >= 3
    assert all(alone)


def test_a_process_that_holds_the_lock_for_too_long_is_named(
    scenario: Scenario, store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.db.writer is not None
    monkeypatch.setattr(store.db.writer._lock, "_seconds", 0.02)
    with path.with_name("mergewright.db-lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StoreBusy, match="another process has locked it"):
            scenario.session(1)
    scenario.session(1)
