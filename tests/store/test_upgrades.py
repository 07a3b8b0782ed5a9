"""A database of an older version is upgraded; an older program refuses a newer one."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlite_utils import Database

from bot.store import Store, StoreFailure, StoreUnusable
from bot.store.schema import migrations
from tests.store.conftest import Clock, Scenario


@pytest.fixture
def older(path: Path) -> Path:
    """A database of version 1, with one session."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="version_2")
        connection.commit()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            """INSERT INTO sessions (id, project, repository, number, branch, created, requester,
                agent_type, agent_name, since, agent, work, issue) VALUES ('widgets-12', 'widgets',
                'acme/widgets', 12, 'a', 1, 'ada', 'shell', 'shell', 1, '{}', '{}',
                '{"number": 12, "title": "It breaks"}')"""
        )
    return path


def parts(path: Path) -> dict[str, str]:
    """Return the SQL of all views, and of the indexes of the table `sessions`, by name."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(
            connection.execute(
                """SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL
                    AND (type = 'view' OR type = 'index' AND tbl_name = 'sessions')"""
            )
        )


def session_in(path: Path) -> dict[str, object]:
    """The only session: its columns with their values."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        (row,) = connection.execute("SELECT * FROM sessions")
        return dict(row)


def program_of_version_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process know version 1 of the schema alone."""
    monkeypatch.setattr(migrations, "_migrations", migrations._migrations[:1])


def test_an_upgrade_keeps_all_data_and_a_copy_of_before(older: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"older schema.*start `mergewright serve` once"):
        Store.reading(older)
    with closing(Store(older)) as store:
        (session,) = store.sessions.all()
        assert (session.id, session.origin, session.budget_usd) == ("widgets-12", "issue", 0)
        assert store.usage.totals("session") == []
    copy = older.with_name("mergewright.db.version_1")
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT id FROM sessions").fetchall() == [("widgets-12",)]
    copy.unlink()
    Store(older).close()
    assert not copy.exists(), "nothing was upgraded"


def test_a_new_database_needs_no_copy(path: Path) -> None:
    path.unlink(missing_ok=True)
    Store(path).close()
    assert sorted(one.name for one in path.parent.iterdir()) == [path.name, f"{path.name}-lock"]


def test_an_older_program_names_the_copy_and_can_use_it(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store(older)) as store:
        Scenario(store, Clock()).session(13)
    program_of_version_1(monkeypatch)
    for opening in (Store, Store.reading):
        with pytest.raises(StoreUnusable, match=r"newer version.*version_2.*install that") as no:
            opening(older)
        assert f"replace the database with its copy {older}.version_1, " in str(no.value)
        assert f"remove {older.name}-wal and {older.name}-shm" in str(no.value)
    older.with_name("mergewright.db.version_1").replace(older)
    with closing(Store(older)) as store:
        assert store.sessions.live_ids() == ["widgets-12"]


def test_the_copies_of_later_upgrades_have_the_newest_version_in_their_names(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = migrations._migrations
    later = [replace(versions[-1], name=f"version_{n}", fn=lambda db: None) for n in (99, 100, 101)]

    def program(count: int) -> None:
        monkeypatch.setattr(migrations, "_migrations", [*versions, *later[:count]])

    for count in (1, 2, 3):
        program(count)
        Store(path).close()
    assert {one.suffix for one in path.parent.glob("*.version_*")} == {
        ".version_99",
        ".version_100",
    }
    program(2)
    with pytest.raises(StoreUnusable, match=r"with its copy .*\.version_100, "):
        Store(path)


def test_an_upgrade_keeps_what_refers_to_a_session(older: Path) -> None:
    with closing(sqlite3.connect(older)) as connection, connection:
        connection.execute("INSERT INTO metadata VALUES ('widgets-12', 'team', 'core')")
    with closing(Store(older)) as store:
        (session,) = store.sessions.all()
        assert session.metadata == {"team": "core"}
    with closing(sqlite3.connect(older)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_an_upgrade_keeps_what_earlier_ones_added_to_sessions(older: Path) -> None:
    with closing(sqlite3.connect(older)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="version_7")
        connection.execute("UPDATE sessions SET cause = 'question 1'")
        connection.commit()
    before, made = session_in(older), parts(older)
    Store(older).close()
    assert session_in(older) == {**before, "origin": "issue", "budget_usd": 0.0}
    assert before["cause"] == "question 1"
    assert {name: sql for name, sql in parts(older).items() if name in made} == made
    assert {"sessions_cause", "sessions_status", "live", "all_usage"} <= made.keys()


def test_an_upgraded_database_still_enforces_references(older: Path) -> None:
    with closing(Store(older)) as store, pytest.raises(StoreFailure, match="no session 'gone-1'"):
        store.metadata.set("gone-1", {"team": "core"}, "cli:ann")
