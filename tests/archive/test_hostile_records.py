"""Records of an agent that would fill the archive, or keep it busy."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from bot.archive import archiver
from bot.archive.archiver import Archive
from bot.system.redaction import Redaction
from tests.harness.site import Site

SECRET = "s3cret-of-the-agent"


def kept(site: Site) -> list[str]:
    """Archive the session's files; return the names in the archive of its first run."""
    Archive(site.locations, Redaction([SECRET])).keep(site.session)
    folder = site.paths.archive / site.id / f"{site.id}_r1"
    return sorted(path.name for path in folder.iterdir())


def test_terabytes_of_nothing_are_not_archived(site: Site) -> None:
    site.starts()
    log = site.paths.run(site.id, 1) / "output.log"
    log.touch()
    os.truncate(log, 1 << 40)
    site.files.summary.parent.mkdir(parents=True, exist_ok=True)
    site.files.progress.write_text("all done\n")
    with pytest.raises(OSError, match="too large to be archived"):
        kept(site)
    archived = site.paths.archive / site.id
    assert [path.read_text() for path in archived.rglob("progress.md")] == ["all done\n"]


def test_copies_of_a_file_that_is_replaced_again_and_again_are_limited(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiver, "_MOST_COPIES", 2)
    site.starts()
    log = site.paths.run(site.id, 1) / "output.log"
    for number in range(5):
        log.write_text(f"{number}\n")
        names = kept(site)
    assert names == ["output.log", "output.log.1", "output.log.2"]


def test_a_databases_triggers_do_not_fire_while_secrets_are_masked(site: Site) -> None:
    site.starts()
    log = site.paths.run(site.id, 1) / "output.log"
    with closing(sqlite3.connect(log)) as database:
        database.execute("create table said (text)")
        database.execute("insert into said values (?)", (f"it is {SECRET}",))
        database.execute(
            "create trigger fills after update on said begin"
            " insert into said select randomblob(1000000) from said; end"
        )
        database.commit()
    assert kept(site) == ["output.log"]
    copy = site.paths.archive / site.id / log.parent.name / log.name
    assert copy.stat().st_size < 100_000
    shutil.copy(copy, copy.with_name("restored.db"))
    with closing(sqlite3.connect(copy.with_name("restored.db"))) as database:
        stars = "*" * len(SECRET)
        assert database.execute("select text from said").fetchall() == [(f"it is {stars}",)]
