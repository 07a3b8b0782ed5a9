"""Databases that an agent wrote: links, pipes, code in the schema, and sizes."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.agents.shared import databases
from runtimes.agents.shared.databases import copy_database, open_copy, open_database


def written(place: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(place)) as database:
        database.execute("create table texts as select 'hello' as text")
        for statement in statements:
            database.execute(statement)
        database.commit()
    return place


def texts(place: Path) -> list[tuple[str]]:
    with open_database(place) as database:
        return database.execute("select text from texts").fetchall()


@pytest.mark.parametrize("name", ["kept.db", "kept.db-wal", "kept.db-journal"])
@pytest.mark.parametrize("what", ["a link", "a hard link", "a pipe", "a folder"])
def test_what_is_no_file_of_its_own_is_not_opened(tmp_path: Path, name: str, what: str) -> None:
    place = written(tmp_path / "kept.db")
    assert texts(place) == [("hello",)]
    odd, other = tmp_path / name, written(tmp_path / "of_somebody_else.db")
    odd.unlink(missing_ok=True)
    match what:
        case "a link":
            odd.symlink_to(other)
        case "a hard link":
            odd.hardlink_to(other)
        case "a pipe":
            os.mkfifo(odd)
        case _:
            odd.mkdir()
    with pytest.raises(sqlite3.OperationalError, match=rf"kept\.db: .*({name}|link|directory)"):
        texts(place)


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "of_somebody_else"
    other.mkdir()
    written(other / "kept.db")
    (tmp_path / "linked").symlink_to(other)
    with pytest.raises(sqlite3.OperationalError, match="a symbolic link leads there"):
        texts(tmp_path / "linked" / "kept.db")


def test_a_database_is_read_with_its_log_and_not_written_to(tmp_path: Path) -> None:
    place = tmp_path / "kept.db"
    with closing(sqlite3.connect(place)) as owner:
        owner.execute("pragma journal_mode = wal")
        owner.execute("create table texts as select 'in the log' as text")
        owner.commit()
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert texts(place) == [("in the log",)]
        with open_database(place) as database:
            database.execute("delete from texts")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_database_that_is_being_changed_is_not_read(tmp_path: Path) -> None:
    place = written(tmp_path / "kept.db")
    # It may name another file, which SQLite would then delete.
    (tmp_path / "kept.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    with pytest.raises(sqlite3.OperationalError, match="is being changed"):
        texts(place)


def test_a_locked_database_is_read(tmp_path: Path) -> None:
    place = written(tmp_path / "kept.db")
    with closing(sqlite3.connect(place, isolation_level=None)) as owner:
        owner.execute("begin exclusive")
        assert texts(place) == [("hello",)]


def endless(name: str) -> str:
    """SQL that creates a view whose evaluation never ends."""
    return f"""create view {name} as with recursive n(x) as
        (select 1 union all select x + 1 from n) select x as text from n"""


def test_a_view_in_the_place_of_a_table_is_not_run(tmp_path: Path) -> None:
    place = written(tmp_path / "kept.db", "drop table texts", endless("texts"))
    with pytest.raises(sqlite3.OperationalError, match="no such table: texts"):
        texts(place)


DISGUISES = {
    "a view as a table": (endless("texts"), "type = 'table'"),
    "a trigger as an index": (
        "create trigger fires before update on texts begin"
        " insert into texts values (zeroblob(1000000)); end",
        "type = 'index'",
    ),
    "a virtual table": ("create virtual table texts using fts5(text)", "rootpage = 2"),
}


@pytest.mark.parametrize("what", DISGUISES)
def test_code_in_the_schema_that_is_disguised_is_not_run(tmp_path: Path, what: str) -> None:
    statement, disguise = DISGUISES[what]
    table = [] if what.startswith("a trigger") else ["drop table texts"]
    with closing(sqlite3.connect(written(tmp_path / "kept.db", *table, statement))) as owner:
        owner.execute("pragma writable_schema = on")
        owner.execute(
            f"update sqlite_schema set {disguise} where sql like ?", (statement[:12] + "%",)
        )
        owner.commit()
    with pytest.raises(sqlite3.DatabaseError, match=r"malformed|no such table"):
        texts(tmp_path / "kept.db")


def test_triggers_do_not_fire_in_a_copy_and_are_in_it_afterwards(tmp_path: Path) -> None:
    fills = """create trigger fires before update on texts begin
        insert into texts select randomblob(1000000) from texts; end"""
    copy_database(written(tmp_path / "kept.db", fills), tmp_path / "copy.db")
    with open_copy(tmp_path / "copy.db", seconds=60) as database:
        database.execute("update texts set text = 'masked'")
        assert database.execute("select text from texts").fetchall() == [("masked",)]
    with closing(sqlite3.connect(tmp_path / "copy.db")) as owner:
        assert owner.execute("select name from sqlite_schema where type = 'trigger'").fetchall()
        assert owner.execute("pragma integrity_check").fetchall() == [("ok",)]


LONG = {
    "a query": "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n",
    "a computed column": "select long from computed",
}


@pytest.mark.parametrize("what", LONG)
def test_a_long_query_is_aborted(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_SECONDS", 0.1)
    pattern = "%a" * 30 + "b"
    computed = f"create table computed (text, long as (text like '{pattern}'))"
    fill = "insert into computed values (printf('%.*c', 1000000, 'a'))"
    place = written(tmp_path / "kept.db", computed, fill)
    with (
        open_database(place) as database,
        pytest.raises(sqlite3.OperationalError, match=r"interrupted|too complex"),
    ):
        database.execute(LONG[what]).fetchall()


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_huge_database_is_not_read(tmp_path: Path, end: str) -> None:
    place = written(tmp_path / "kept.db")
    Path(f"{place}{end}").touch()
    os.truncate(f"{place}{end}", 1 << 40)
    with pytest.raises(sqlite3.OperationalError, match="it is too large to be read"):
        texts(place)


#: Reads while another thread truncates the shared memory and the database.
_READ_WHILE_TRUNCATED = """
import os, sqlite3, sys, threading
from pathlib import Path
from runtimes.agents.shared.databases import open_database

place, over = Path(sys.argv[1]), threading.Event()

def truncate():
    while not over.is_set():
        for name, size in ((f"{place}-shm", 0), (f"{place}-shm", 32768), (f"{place}-wal", 100)):
            os.truncate(name, size)

thread = threading.Thread(target=truncate)
thread.start()
for _ in range(200):
    try:
        with open_database(place) as database:
            database.execute("select count(*) from texts").fetchall()
    except sqlite3.Error:
        pass
over.set()
thread.join()
"""


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Path]:
    """A database with a write-ahead log, which its program has open."""
    place = tmp_path / "kept.db"
    with closing(sqlite3.connect(place)) as owner:
        owner.execute("pragma journal_mode = wal")
        owner.execute("create table texts as select 'hello' as text")
        owner.commit()
        yield place


def test_files_that_shrink_do_not_end_the_process(owned: Path) -> None:
    command = [sys.executable, "-c", _READ_WHILE_TRUNCATED, str(owned)]
    assert subprocess.run(command, timeout=120, check=False).returncode == 0
