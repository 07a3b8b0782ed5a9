"""A program's database is read, and nothing that an agent has put in its place or beside it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runtimes.agents.shared.files import open_database


def written(place: Path) -> Path:
    with closing(sqlite3.connect(place)) as database:
        database.execute("create table said as select 'hello' as text")
        database.commit()
    return place


def said(place: Path) -> list[tuple[str]]:
    with open_database(place) as database:
        return database.execute("select text from said").fetchall()


@pytest.mark.parametrize("name", ["kept.db", "kept.db-wal", "kept.db-journal"])
@pytest.mark.parametrize("what", ["a link", "a pipe"])
def test_nothing_is_read_where_a_link_or_a_pipe_stands(
    tmp_path: Path, name: str, what: str
) -> None:
    place = written(tmp_path / "kept.db")
    assert said(place) == [("hello",)]
    odd = tmp_path / name
    odd.unlink(missing_ok=True)
    if what == "a link":
        odd.symlink_to(written(tmp_path / "of_somebody_else.db"))
    else:
        os.mkfifo(odd)
    with pytest.raises(sqlite3.OperationalError, match=f"{name} is no regular file"):
        said(place)


def test_a_database_can_be_read_and_not_written(tmp_path: Path) -> None:
    place = written(tmp_path / "kept.db")
    with (
        open_database(place) as database,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        database.execute("insert into said values ('more')")


def test_a_look_that_takes_long_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtimes.agents.shared.files._QUERY_STEPS", 100)
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select sum(x) from n"
    place = written(tmp_path / "kept.db")
    with (
        open_database(place) as database,
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
    ):
        database.execute(endless).fetchone()
