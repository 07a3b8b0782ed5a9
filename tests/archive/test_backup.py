"""Backups of a store that is written to, and what may be restored."""

import io
import socket
import sqlite3
import tarfile
import threading
from collections.abc import Callable
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import pytest

from bot.archive.backup import NotRestored, back_up, restore
from bot.store import Store, StoreUnusable
from bot.system.locations import Paths
from tests.harness.site import Site


@pytest.fixture
def paths(site: Site) -> Paths:
    """The data folder of the site's store."""
    return Paths(site.scenario.store.path.parent)


@pytest.fixture
def file(site: Site, paths: Paths, tmp_path: Path) -> Path:
    """A backup with one session and two files of an agent.

    The data folder also has files that no backup includes, such as a socket and a run token.
    """
    copies = paths.archive / "widgets-12" / "home"
    copies.mkdir(parents=True)
    for name in ("transcript.jsonl", "transcript.jsonl.1.gz", "half.new"):
        (copies / name).write_text(name)
    for name in ("runtime/runs", "proxy", "run-tokens", "sessions/widgets-12_r1/sandbox"):
        (paths.data / name).mkdir(parents=True)
    (paths.data / "run-tokens" / "widgets-12_r1").write_text("secret")
    (paths.data / "sessions/widgets-12_r1/sandbox/seccomp").touch()
    (paths.data / "runtime/runs/widgets-12_r1").symlink_to(paths.data / "sessions/widgets-12_r1")
    with closing(socket.socket(socket.AF_UNIX)) as served, chdir(paths.data / "proxy"):
        served.bind("proxy.sock")
    assert site.scenario.store.lease.acquire("another:machine:1:1", site.scenario.clock(), 9999)
    back_up(site.scenario.store, paths, tmp_path / "backup")
    return tmp_path / "backup"


def test_a_file_that_is_shortened_meanwhile_does_not_end_a_backup(
    site: Site, file: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot truncates its copy of a transcript when an agent replaces the transcript itself.

    This may happen during a backup, because the backup is made by another process than the bot.
    """
    measured, copy = tarfile.TarFile.gettarinfo, paths.archive / "widgets-12/home/transcript.jsonl"

    def shortened(tar: tarfile.TarFile, *given: Any, **named: Any) -> tarfile.TarInfo:
        entry = measured(tar, *given, **named)
        if entry.name.endswith("transcript.jsonl"):
            copy.write_text("")
        return entry

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", shortened)
    back_up(site.scenario.store, paths, file)
    with tarfile.open(file) as tar:
        entry = tar.extractfile("archive/widgets-12/home/transcript.jsonl")
        assert entry is not None
        assert entry.read() == b"transcript.jsonl"


def test_a_file_with_two_names_is_in_a_backup_twice(
    site: Site, file: Path, paths: Paths, tmp_path: Path
) -> None:
    """As after a program that replaces equal files by hard links."""
    home = paths.archive / "widgets-12/home"
    (home / "another.jsonl").hardlink_to(home / "transcript.jsonl")
    back_up(site.scenario.store, paths, file)
    new = Paths(tmp_path / "new" / "data")
    restore(file, new)
    copies = new.archive / "widgets-12/home"
    assert (copies / "another.jsonl").read_text() == "transcript.jsonl"
    assert (copies / "transcript.jsonl").read_text() == "transcript.jsonl"
    assert (copies / "transcript.jsonl.1.gz").exists(), "it comes last"


def test_database_and_archive_are_restored_and_no_bot_leads(
    site: Site, file: Path, tmp_path: Path
) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    new = Paths(tmp_path / "new" / "data")
    restore(file, new)
    names = sorted(path.relative_to(new.data).as_posix() for path in new.data.rglob("*"))
    home = "archive/widgets-12/home"
    assert [name for name in names if not name.endswith("home")] == [
        *("archive", "archive/widgets-12"),
        *(f"{home}/transcript.jsonl", f"{home}/transcript.jsonl.1.gz", "mergewright.db"),
    ]
    assert new.database.stat().st_mode & 0o777 == 0o600
    with closing(Store(new.database)) as store:
        assert store.sessions.get(site.id) == site.session
        assert store.lease.holder() is None
    assert site.scenario.store.lease.holder() is not None, "that of the running bot is as it was"


def test_a_backup_of_a_store_that_is_written_to_is_one_state_of_it(
    site: Site, paths: Paths, tmp_path: Path
) -> None:
    store, done, written = site.scenario.store, threading.Event(), 0

    def write() -> None:
        nonlocal written
        while not done.is_set():  # Both or neither are in one transaction.
            store.metadata.set(site.id, {"one": str(written), "two": str(written)}, "ada")
            written += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            back_up(store, paths, tmp_path / "backup")
            new = Paths(tmp_path / f"new-{number}")
            restore(tmp_path / "backup", new)
            with closing(Store.reading(new.database)) as restored:
                values = restored.metadata.of(site.id)
                assert values.get("one") == values.get("two")
    finally:
        done.set()
        writer.join()
    assert written > 5


def test_an_existing_database_is_not_replaced(file: Path, paths: Paths) -> None:
    before = paths.database.read_bytes()
    with pytest.raises(NotRestored, match=r"mergewright\.db exists: stop the bot and move this"):
        restore(file, paths)
    assert paths.database.read_bytes() == before


def garbage(file: Path) -> None:
    file.write_bytes(b"no archive" * 1000)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:20_000])


def another_archive(file: Path) -> None:
    with tarfile.open(file, "w") as tar:
        tar.addfile(tarfile.TarInfo("holiday.jpg"), io.BytesIO())


@pytest.mark.parametrize("damage", [garbage, cut_off, another_archive])
def test_what_is_no_backup_is_refused_and_leaves_no_database(
    file: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(file)
    with pytest.raises(NotRestored, match="is not a Mergewright backup"):
        restore(file, Paths(tmp_path / "new"))
    assert not Paths(tmp_path / "new").database.exists()


def test_nothing_is_written_outside_of_the_data_folder(file: Path, tmp_path: Path) -> None:
    with tarfile.open(file, "a") as tar:
        for name in ("archive/../../outside", "/tmp/outside", "elsewhere"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("archive/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    new = Paths(tmp_path / "deep" / "new")
    restore(file, new)
    assert sorted(path.name for path in new.data.iterdir()) == ["archive", "mergewright.db"]
    assert not (new.archive / "link").is_symlink()
    assert [path.name for path in new.data.parent.iterdir()] == ["new"]


def test_a_backup_of_a_newer_version_is_refused(site: Site, paths: Paths, tmp_path: Path) -> None:
    site.scenario.store.db.write(
        lambda connection: connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
            " VALUES ('mergewright', 'of_the_future', '')"
        )
    )
    back_up(site.scenario.store, paths, tmp_path / "backup")
    with pytest.raises(StoreUnusable, match=r"newer version.*of_the_future.*install that"):
        restore(tmp_path / "backup", Paths(tmp_path / "new"))
    assert not Paths(tmp_path / "new").database.exists()


def test_a_damaged_database_in_a_backup_is_refused(file: Path, tmp_path: Path) -> None:
    with tarfile.open(file, "w") as tar:
        with closing(sqlite3.connect(tmp_path / "other.db")) as other:
            other.execute("CREATE TABLE recipes (name TEXT)")
        tar.add(tmp_path / "other.db", "mergewright.db")
    with pytest.raises(StoreUnusable, match="another program"):
        restore(file, Paths(tmp_path / "new"))
