"""Opening the database file, and refusing unusable ones with a remedy."""

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from bot.store import Store, StoreClosed, StoreUnusable
from lifecycle.model.facts import Command
from tests.store.conftest import Scenario

NOBODY = 65534


def beside(path: Path) -> Store:
    return Store.beside(path, str)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder this process may read and not write, also where the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    Store(folder / "there.db").close()
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    yield folder
    os.seteuid(user)
    folder.chmod(0o700)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def unknown_migration(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('mergewright', 'of_the_future', '2040-01-01')"
        )
    connection.close()


def test_a_new_file_is_readable_by_its_owner_only(path: Path) -> None:
    with closing(Store(path)):
        for file in path.parent.iterdir():
            assert file.stat().st_mode & 0o777 == 0o600, file


def test_data_survives_reopening(
    scenario: Scenario, store: Store, open_store: Callable[[], Store]
) -> None:
    scenario.session(12)
    store.close()
    assert open_store().sessions.get("widgets-12") is not None


def test_the_file_can_be_created_by_several_at_once(path: Path) -> None:
    ready = threading.Barrier(4)

    def open_it() -> None:
        ready.wait()
        Store(path).close()

    with ThreadPoolExecutor(4) as pool:
        for opened in [pool.submit(open_it) for _ in range(4)]:
            opened.result()
    with closing(Store(path)) as store:
        assert store.sessions.all() == []


@pytest.mark.parametrize("opening", [Store, Store.reading, beside], ids=["serve", "read", "ask"])
class TestRefused:
    def test_a_file_that_is_no_database_is_refused(
        self, path: Path, opening: Callable[[Path], Store]
    ) -> None:
        path.write_text("Dear diary, " * 1000)
        with pytest.raises(StoreUnusable, match=r"mergewright\.db.*not a database.*move the file"):
            opening(path)
        assert path.read_text().startswith("Dear diary")

    def test_a_database_of_another_program_is_refused(
        self, path: Path, opening: Callable[[Path], Store]
    ) -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.close()
        with pytest.raises(StoreUnusable, match="another program: set `server"):
            opening(path)

    def test_a_database_of_a_newer_version_is_refused(
        self, path: Path, opening: Callable[[Path], Store]
    ) -> None:
        Store(path).close()
        unknown_migration(path)
        with pytest.raises(StoreUnusable, match=r"newer version .*of_the_future.*: install"):
            opening(path)

    def test_a_database_in_a_missing_folder_is_refused(
        self, path: Path, opening: Callable[[Path], Store]
    ) -> None:
        with pytest.raises(StoreUnusable, match="folder"):
            opening(path / "deeper" / "mergewright.db")

    def test_a_folder_instead_of_a_file_is_refused(
        self, path: Path, opening: Callable[[Path], Store]
    ) -> None:
        path.mkdir()
        with pytest.raises(StoreUnusable, match=r"mergewright\.db"):
            opening(path)


def test_a_new_file_in_an_unwritable_folder_is_refused(closed_folder: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"new\.db.*give this user write access"):
        Store(closed_folder / "new.db")


def test_an_existing_file_in_an_unwritable_folder_is_refused(closed_folder: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"there\.db.*write access"):
        Store(closed_folder / "there.db")


def test_a_reader_sees_the_commits_of_a_running_bot(
    scenario: Scenario, store: Store, path: Path
) -> None:
    reading = Store.reading(path)
    scenario.session(12)
    assert reading.sessions.get("widgets-12") is not None
    with pytest.raises(StoreClosed, match="for reading only"):
        reading.commands.refuse("comment:1", "no")
    assert reading.writable() is False
    reading.close()


def test_a_person_can_write_beside_a_running_leader(
    scenario: Scenario, store: Store, path: Path
) -> None:
    epoch = store.lease.acquire("the bot", scenario.now, 60)
    assert epoch is not None
    store.lease.fence("the bot", epoch)
    session = scenario.session(12)
    command = Command(key="cli:1", kind="stop", actor="cli:ada", at=scenario.now)
    with closing(beside(path)) as guest:
        assert guest.commands.add_granted(session, command)
        assert not guest.commands.add_granted(session, command)
    assert store.facts.get(session).commands == (command,)
    assert store.sessions.due(scenario.now) == [session]


def test_reading_without_a_running_bot_works(path: Path) -> None:
    Store(path).close()
    reading = Store.reading(path)
    assert reading.sessions.all() == []
    reading.close()


def test_a_reader_after_a_crash_sees_everything_committed(
    scenario: Scenario, store: Store, path: Path, tmp_path: Path
) -> None:
    scenario.session(12)
    left = tmp_path / "left"
    left.mkdir()
    for name in ("mergewright.db", "mergewright.db-wal"):
        shutil.copy(path.with_name(name), left / name)
    reading = Store.reading(left / "mergewright.db")
    assert reading.sessions.get("widgets-12") is not None
    reading.close()


def test_reading_an_empty_file_asks_to_start_the_bot(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreUnusable, match="start `mergewright serve` once"):
        Store.reading(path)


def test_a_column_rejects_a_value_of_another_type(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT"):
        store.db.write(
            lambda connection: connection.execute(
                "INSERT INTO deliveries (id, event, at, body) VALUES ('a', 'b', 'noon', x'')"
            )
        )
