"""A database of an older version is upgraded; an older program refuses a newer one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from bot.store import Store, StoreUnusable
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


def program_of_version_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process know version 1 of the schema alone."""
    monkeypatch.setattr(migrations, "_migrations", migrations._migrations[:1])


def test_an_upgrade_keeps_all_data_and_a_copy_of_before(older: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"older schema.*start `mergewright serve` once"):
        Store.reading(older)
    with closing(Store(older)) as store:
        assert [session.id for session in store.sessions.all()] == ["widgets-12"]
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
        assert f"put {older}.version_1 in its place" in str(no.value)
    older.with_name("mergewright.db.version_1").replace(older)
    with closing(Store(older)) as store:
        assert [session.id for session in store.sessions.all()] == ["widgets-12"]
