"""Opening a program's database, or what an agent put in its place."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.agents.shared.files import open_database


def written(place: Path) -> Path:
    with closing(sqlite3.connect(place)) as database:
        database.execute("create table texts as select 'hello' as text")
        database.commit()
    return place


def texts(place: Path) -> list[tuple[str]]:
    with open_database(place) as database:
        return database.execute("select text from texts").fetchall()


@pytest.mark.parametrize("name", ["kept.db", "kept.db-wal", "kept.db-journal"])
@pytest.mark.parametrize("what", ["a link", "a pipe"])
def test_links_and_pipes_are_not_opened_as_databases(tmp_path: Path, name: str, what: str) -> None:
    place = written(tmp_path / "kept.db")
    assert texts(place) == [("hello",)]
    odd = tmp_path / name
    odd.unlink(missing_ok=True)
    if what == "a link":
        odd.symlink_to(written(tmp_path / "of_somebody_else.db"))
    else:
        os.mkfifo(odd)
    with pytest.raises(sqlite3.OperationalError, match=f"{name} is no regular file"):
        texts(place)


def test_a_database_is_opened_read_only(tmp_path: Path) -> None:
    place = written(tmp_path / "kept.db")
    with (
        open_database(place) as database,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        database.execute("insert into texts values ('more')")


def test_a_long_query_is_aborted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.agents.shared.files._QUERY_STEPS", 100)
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select sum(x) from n"
    place = written(tmp_path / "kept.db")
    with (
        open_database(place) as database,
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
    ):
        database.execute(endless).fetchone()
