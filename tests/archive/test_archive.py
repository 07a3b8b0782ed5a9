"""Tests of the archive: copies, masking, compression, restores."""

import gzip
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.archive.archiver import Archive
from bot.system.redaction import Redaction
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.shell import Shell
from tests.harness.site import Site

SECRET = "s3cret-of-the-agent"
REDACT = Redaction([SECRET])


class Kept:
    """Archives one session's files, each time with a new `Archive`, whose cache is empty."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.log = site.paths.run(site.id, 1) / "output.log"
        self.copy = site.paths.archive / site.id / f"{site.id}_r1" / "output.log"

    def prints(self, text: str) -> None:
        with self.log.open("a") as file:
            file.write(text)

    def keeps(self) -> None:
        Archive(self.site.locations, REDACT).keep(self.site.session)

    def packs(self) -> None:
        Archive(self.site.locations, REDACT).pack(self.site.id)

    def holds(self) -> dict[str, str]:
        """The archived files of the run, by name."""
        return {path.name: path.read_text() for path in self.copy.parent.iterdir()}


@pytest.fixture
def kept(site: Site) -> Kept:
    site.starts()
    return Kept(site)


def test_only_appended_bytes_are_copied(kept: Kept) -> None:
    kept.keeps()
    assert not kept.copy.exists()
    kept.prints("one\n")
    kept.keeps()
    before = kept.copy.stat()
    kept.keeps()
    kept.prints("two\n" * 5000)
    kept.keeps()
    assert kept.copy.read_text() == "one\n" + "two\n" * 5000
    assert kept.copy.stat().st_ino == before.st_ino


def test_secrets_are_masked_in_copies(kept: Kept) -> None:
    kept.prints(f"key {SECRET}, {SECRET[:9]}")
    kept.keeps()
    stars = "*" * len(SECRET)
    assert kept.copy.read_text() == f"key {stars}, {SECRET[:9]}"
    kept.prints(SECRET[9:])
    kept.keeps()
    kept.prints(f" {'x' * 5000} ghs_{'a1B2' * 9}")
    kept.keeps()
    assert kept.holds() == {"output.log": f"key {stars}, {stars} {'x' * 5000} {'*' * 40}"}


def test_a_secret_across_two_chunks_is_masked(kept: Kept) -> None:
    before = "x" * (1024 * 1024 - 7)
    kept.prints(f"{before}{SECRET} and more")
    kept.keeps()
    assert kept.copy.read_text() == f"{before}{'*' * len(SECRET)} and more"


def test_an_unchanged_file_is_not_opened(kept: Kept) -> None:
    archive = Archive(kept.site.locations, REDACT)
    kept.prints("one\n")
    archive.keep(kept.site.session)
    kept.copy.unlink()
    archive.keep(kept.site.session)
    assert not kept.copy.exists()
    kept.prints("two\n")
    archive.keep(kept.site.session)
    assert kept.copy.read_text() == "one\ntwo\n"


def test_an_interrupted_copy_is_continued(kept: Kept) -> None:
    kept.prints("one\ntwo\n")
    kept.keeps()
    os.truncate(kept.copy, 5)
    kept.keeps()
    assert kept.holds() == {"output.log": "one\ntwo\n"}


@pytest.mark.parametrize("longer", [False, True])
def test_the_content_before_a_truncation_or_replacement_is_kept(kept: Kept, longer: bool) -> None:
    for text in ("first\n", "second\n" * (9 if longer else 1)):
        kept.prints(text)
        kept.keeps()
        kept.log.write_text("third\n" * (99 if longer else 1))
        kept.keeps()
        kept.log.unlink()
    texts = [kept.holds()[f"output.log{end}"] for end in ("", ".1", ".3")]
    assert [text.split("\n")[0] for text in texts] == ["third", "first", "second"]


def test_the_copy_of_a_deleted_file_is_kept(kept: Kept) -> None:
    kept.prints("one\n")
    kept.keeps()
    shutil.rmtree(kept.log.parent)
    kept.keeps()
    assert kept.copy.read_text() == "one\n"


def test_copies_are_compressed_at_the_end_and_decompressed_when_more_comes(kept: Kept) -> None:
    kept.prints("one\n")
    kept.keeps()
    kept.packs()
    assert [path.name for path in kept.copy.parent.iterdir()] == ["output.log.gz"]
    kept.packs()
    packed = kept.copy.with_name("output.log.gz").read_bytes()
    assert gzip.decompress(packed) == b"one\n"
    kept.prints("two\n")
    kept.keeps()
    assert kept.holds() == {"output.log": "one\ntwo\n"}


def test_nothing_is_remembered_of_a_compressed_session(kept: Kept) -> None:
    archive = Archive(kept.site.locations, REDACT)
    kept.prints("one\n")
    archive.keep(kept.site.session)
    assert archive._known
    archive.pack(kept.site.id)
    assert not archive._known


def test_an_interrupted_compression_is_repeated(kept: Kept) -> None:
    kept.prints("one\n")
    kept.keeps()
    kept.copy.with_name("another.log.new").write_text("half")
    kept.copy.with_name("output.log.gz").write_bytes(gzip.compress(b"one\n"))
    kept.packs()
    assert [path.name for path in kept.copy.parent.iterdir()] == ["output.log.gz"]
    kept.copy.write_text("one\n")
    kept.keeps()
    assert kept.holds() == {"output.log": "one\n"}


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_link_in_place_of_a_file_is_not_followed(kept: Kept, tmp_path: Path, where: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "output.log").write_text("of somebody else\n")
    if where == "file":
        kept.log.symlink_to(tmp_path / "elsewhere" / "output.log")
    else:
        shutil.rmtree(kept.log.parent)
        kept.log.parent.symlink_to(tmp_path / "elsewhere")
    kept.keeps()
    assert not kept.copy.exists()


def test_an_error_in_one_session_does_not_affect_the_others(kept: Kept) -> None:
    site = kept.site
    other = site.scenario.session(13)
    site.scenario.orders(other)
    log = site.paths.run(other, 1) / "output.log"
    log.parent.mkdir(parents=True)
    log.write_text("mine\n")
    kept.log.mkdir()
    Archive(site.locations, REDACT).keep_all(site.scenario.store.sessions.live())
    assert (site.paths.archive / other / f"{other}_r1" / "output.log").read_text() == "mine\n"


def test_missing_files_of_a_home_are_restored_and_existing_ones_kept(site: Site) -> None:
    site.starts()
    site.adapters["shell"] = Claude(AgentType(program="claude"))
    home = site.paths.home(site.id)
    talks = home / ".claude" / "projects" / "-work"
    talks.mkdir(parents=True)
    for name in ("lost", "newer"):
        (talks / f"{name}.jsonl").write_text("said\n")
    Archive(site.locations, REDACT).keep(site.session)
    (talks / "lost.jsonl").write_text("cut")
    notes = home / "for-people" / "progress.md"
    notes.write_text("- done\n")
    Archive(site.locations, REDACT).keep(site.session)
    Archive(site.locations, REDACT).pack(site.id)
    shutil.rmtree(home)
    talks.mkdir(parents=True)
    (talks / "newer.jsonl").write_text("said\nand more\n")
    Archive(site.locations, REDACT).put_back(site.id)
    assert {path.name: path.read_text() for path in talks.iterdir()} == {
        "lost.jsonl": "cut",
        "newer.jsonl": "said\nand more\n",
    }
    assert notes.read_text() == "- done\n"


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_restore_follows_no_links(site: Site, tmp_path: Path, where: str) -> None:
    site.starts()
    site.adapters["shell"] = Claude(AgentType(program="claude"))
    conversation = site.paths.home(site.id) / ".claude" / "projects" / "-work" / "talk.jsonl"
    conversation.parent.mkdir(parents=True)
    conversation.write_text("said\n")
    Archive(site.locations, REDACT).keep(site.session)
    conversation.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("of somebody else\n")
    if where == "file":
        conversation.with_name("talk.jsonl.new").symlink_to(elsewhere / "precious")
    else:
        conversation.parent.rmdir()
        conversation.parent.symlink_to(elsewhere)
    Archive(site.locations, REDACT).put_back(site.id)
    assert [(path.name, path.read_text()) for path in elsewhere.iterdir()] == [
        ("precious", "of somebody else\n")
    ]
    assert conversation.exists() == (where == "file")


def test_each_adapter_names_the_files_to_archive(tmp_path: Path) -> None:
    files = RunFiles(
        session="s", run=1, dir=tmp_path / "s_r1", workspace=tmp_path / "w", branch="b"
    )
    conversation = files.home / ".claude" / "projects" / "-w" / "talk.jsonl"
    conversation.parent.mkdir(parents=True)
    conversation.touch()
    assert list(Shell(AgentType(program="shell")).records(files)) == [files.output]
    assert list(Claude(AgentType(program="claude")).records(files)) == [conversation]


class Database:
    """An SQLite database of an agent's program, at the path where a run has its `output.log`."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.connection = sqlite3.connect(kept.log)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("CREATE TABLE said (text)")

    def says(self, text: str) -> None:
        self.connection.execute("INSERT INTO said VALUES (?)", (text,))
        self.connection.commit()

    def archived(self) -> list[str]:
        with closing(sqlite3.connect(f"{self.kept.copy.as_uri()}?mode=ro", uri=True)) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return [text for (text,) in copy.execute("SELECT text FROM said ORDER BY rowid")]


@pytest.fixture
def database(kept: Kept) -> Iterator[Database]:
    made = Database(kept)
    yield made
    made.connection.close()


def test_the_last_state_of_a_database_in_use_is_copied(kept: Kept, database: Database) -> None:
    for texts in (["one"], ["one", "two" * 5000]):
        database.says(texts[-1])
        kept.keeps()
        assert database.archived() == texts
    assert [path.name for path in kept.copy.parent.iterdir()] == ["output.log"]
    assert kept.copy.stat().st_mode & 0o777 == 0o600


def test_a_pipe_beside_a_database_does_not_block_the_archive(
    kept: Kept, database: Database
) -> None:
    database.says("one")
    database.connection.execute("PRAGMA journal_mode = DELETE")
    os.mkfifo(kept.log.with_name("output.log-journal"))
    with pytest.raises(OSError, match=r"output\.log-journal is not a regular file"):
        kept.keeps()
    kept.log.with_name("output.log-journal").unlink()
    kept.keeps()
    assert database.archived() == ["one"]


def test_a_change_in_a_write_ahead_log_is_noticed(kept: Kept, database: Database) -> None:
    archive = Archive(kept.site.locations, REDACT)
    database.says("one")
    archive.keep(kept.site.session)
    unmerged = kept.log.stat()
    database.says("two")
    assert kept.log.stat() == unmerged
    archive.keep(kept.site.session)
    assert database.archived() == ["one", "two"]
    kept.copy.unlink()
    archive.keep(kept.site.session)
    assert not kept.copy.exists(), "nothing is new"


def test_secrets_are_masked_in_databases(kept: Kept, database: Database) -> None:
    database.says(f"key {SECRET}")
    kept.keeps()
    assert database.archived() == [f"key {'*' * len(SECRET)}"]


def test_a_secret_split_over_database_pages_is_masked(kept: Kept, database: Database) -> None:
    secret = "".join(f"{number:05}" for number in range(2000))  # Longer than a page of it.
    database.connection.execute('CREATE TABLE "a ""b" (one BLOB, two INT)')
    database.connection.execute('INSERT INTO "a ""b" VALUES (?, 7)', (secret.encode(),))
    database.says(f"{secret}é")
    database.says(secret)
    database.connection.execute("PRAGMA secure_delete = OFF")
    database.connection.execute("DELETE FROM said WHERE text = ?", (secret,))
    database.connection.commit()
    Archive(kept.site.locations, Redaction([secret])).keep(kept.site.session)
    assert database.archived() == [f"{'*' * len(secret)}é"]
    copy = kept.copy.read_bytes()
    assert not [piece for piece in (secret[:999], secret[5000:5999]) if piece.encode() in copy]


def test_a_lost_database_is_restored(kept: Kept, database: Database) -> None:
    home = kept.site.paths.home(kept.site.id)
    database.says("one")
    kept.keeps()
    moved = kept.site.paths.archive / kept.site.id / home.name / "its.db"
    moved.parent.mkdir()
    kept.copy.rename(moved)
    kept.packs()
    Archive(kept.site.locations, REDACT).put_back(kept.site.id)
    with closing(sqlite3.connect(home / "its.db")) as back:
        assert back.execute("SELECT text FROM said").fetchall() == [("one",)]


def test_a_broken_database_does_not_affect_other_files(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    kept.log.write_bytes(b"SQLite format 3\0" + b"nonsense" * 100)
    (live,) = kept.site.scenario.store.sessions.live()
    Archive(kept.site.locations, REDACT).keep_all([live])
    assert "its records were not archived" in caplog.text
    assert list(kept.copy.parent.iterdir()) == []
