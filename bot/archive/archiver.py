"""Archives agents' transcripts and progress notes, secrets masked, to restore lost home folders.

ARCHIVE/SESSION/PATH       a copy of the session's file PATH, extended as the file grows
ARCHIVE/SESSION/PATH.1     a copy from before the file was truncated or replaced; the next is `.2`
ARCHIVE/SESSION/PATH.gz    a copy compressed after the session ended; decompressed for an update

A database changes in place instead of growing, so only its last state is archived.
"""

import gzip
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from bot.store import LiveSession, Session
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from runtimes.agents.shared.databases import open_copy
from runtimes.host import home_of

log = logging.getLogger(__name__)

#: Reads a file's bytes from one offset to another; fewer if it is shorter.
_Read = Callable[[int, int], bytes]

#: How many bytes at a copy's end are compared to find out whether the file has only grown since.
_TAIL_BYTES = 4096
_STEP_BYTES = 1024 * 1024
#: Larger files, in bytes, are not archived; databases have a limit of their own.
_MOST_BYTES = 1024**3
#: How many earlier copies of a file are kept. Once there are so many, no more are added.
_MOST_COPIES = 20
#: The first bytes of an SQLite database: https://www.sqlite.org/fileformat.html
_DATABASE = b"SQLite format 3\0"
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"
_DATABASE_SECONDS = 60.0  #: The time limit for masking the values of one database.
_MASK = """UPDATE {table} SET {column} = CASE typeof({column})
        WHEN 'text' THEN CAST(masked(CAST({column} AS BLOB)) AS TEXT) ELSE masked({column}) END
    WHERE typeof({column}) IN ('text', 'blob')
        AND masked(CAST({column} AS BLOB)) <> CAST({column} AS BLOB)"""


class Archive:
    """Copies, compresses and restores files of sessions. May be used from any thread."""

    def __init__(self, locations: Locations, redact: Redaction) -> None:
        self._locations = locations
        self._records = locations.host.records
        self._redact = redact
        self._root = locations.paths.archive
        self._known: dict[str, dict[str, tuple[int, ...]]] = {}  # By session and name.
        self._lock = threading.Lock()

    def keep_all(self, sessions: Iterable[LiveSession]) -> None:
        """Archive every session; a failure is logged and does not affect the others."""
        for session in sessions:
            try:
                self.keep(session)
            except OSError as error:
                log.warning("%s: its records were not archived: %s", session.id, error)

    def keep(self, session: LiveSession | Session) -> None:
        """Copy what has changed in the records (`LocalRecords.files`) of a session's runs.

        If files fail, the others are still copied; then the first `OSError` is raised.
        """
        failures = []
        for run in range(1, session.run + 1):
            for name, version in self._records.files(self._locations.run_of(session, run)).items():
                try:
                    with self._lock, suppress(FileNotFoundError):
                        known = self._known.setdefault(session.id, {})
                        if known.get(name) != version:
                            self._copy(session.id, name)
                            known[name] = version
                except OSError as error:  # The others of the session are archived all the same.
                    failures.append(error)
        if failures:
            raise failures[0]

    def pack(self, session: str) -> None:
        """Compress the copies of an ended session. Idempotent, also after a crash."""
        with self._lock:
            self._known.pop(session, None)
            for copy in list(_files(self._root / session)):
                if copy.suffix == ".new":  # Left by a bot that was killed.
                    copy.unlink(missing_ok=True)
                elif copy.suffix != ".gz":
                    new = copy.with_name(f"{copy.name}.new")
                    with copy.open("rb") as plain, gzip.open(new, "wb") as packed:
                        shutil.copyfileobj(plain, packed, _STEP_BYTES)
                    new.rename(_packed(copy))
                    copy.unlink()

    def sessions(self) -> list[str]:
        """Return the ids of all sessions with an archive."""
        if not self._root.is_dir():
            return []
        return sorted(folder.name for folder in self._root.iterdir() if folder.is_dir())

    def size(self, session: str) -> int:
        """Return about how many bytes of disk space a session's archive takes."""
        return sum(copy.lstat().st_blocks * 512 for copy in _files(self._root / session))

    def remove(self, session: str) -> None:
        """Remove a session's archive, if there is one."""
        with self._lock, suppress(FileNotFoundError):
            self._known.pop(session, None)
            shutil.rmtree(self._root / session)

    def put_back(self, session: str) -> None:
        """Restore the archived files that are missing from a session's home."""
        with self._lock:
            archived = self._root / session
            copies = {
                _plain(copy).relative_to(archived).as_posix(): _plain(copy)
                for copy in _files(archived / home_of(session).name)
            }
            names = [
                name
                for name, copy in copies.items()
                if copy.suffix != ".new" and not copy.suffix[1:].isdigit()
            ]
            for name in self._records.missing(session, names):
                _unpack(copies[name])
                self._records.restore(session, name, copies[name])

    def _copy(self, session: str, name: str) -> None:
        copy = self._root / session / name
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        begins = self._records.read(session, name, 0, len(_DATABASE))
        _unpack(copy)
        if begins == _DATABASE:
            self._copy_database(session, name, copy)
        else:
            self._copy_more(session, name, copy)

    def _copy_database(self, session: str, name: str, copy: Path) -> None:
        made = new, whole = [copy.with_name(copy.name + end) for end in (".new", ".whole.new")]
        for path in made:
            path.unlink(missing_ok=True)
            path.touch(mode=0o600)
        try:
            self._records.copy_database(session, name, whole)
            with open_copy(whole, _DATABASE_SECONDS) as snapshot:
                _mask_values(snapshot, self._redact.masked)
            with whole.open("rb") as plain, new.open("wb") as out:
                file, size = plain.fileno(), whole.stat().st_size
                self._write(out, lambda start, end: os.pread(file, end - start, start), 0, size)
            new.rename(copy)
        except sqlite3.Error as error:
            raise OSError(f"{name}: {error}") from error
        finally:
            for path in made:
                path.unlink(missing_ok=True)

    def _copy_more(self, session: str, name: str, copy: Path) -> None:
        copy.touch(mode=0o600)
        read = partial(self._records.read, session, name)
        size = self._records.size(session, name)
        if size > _MOST_BYTES:  # Nothing may be in most of it, and a copy has all its bytes.
            raise OSError(f"{name} is too large to be archived: {size} bytes")
        with copy.open("rb+") as out:
            begun = out.seek(0, os.SEEK_END)
            if not self._continues(read, out, begun):
                if earlier := _free(copy):
                    shutil.copyfile(copy, earlier)
                begun = out.truncate(0)
            # The copy may end in the beginning of a secret that was not written completely.
            start = out.seek(max(0, begun - self._redact.longest))
            self._write(out, read, start, size)

    def _write(self, out: BinaryIO, read: _Read, start: int, size: int) -> None:
        for at in range(start, size, _STEP_BYTES):
            out.write(self._masked(read, at, min(at + _STEP_BYTES, size), size))

    def _continues(self, read: _Read, copy: BinaryIO, begun: int) -> bool:
        """Whether the file still begins with the bytes that were copied; its end may have grown.

        `begun` is the copy's length in bytes. Only the last `_TAIL_BYTES` of the copy are compared.
        """
        start = max(0, begun - _TAIL_BYTES)
        copy.seek(start)
        return self._masked(read, start, begun, begun) == copy.read(begun - start)

    def _masked(self, read: _Read, start: int, end: int, size: int) -> bytes:
        """Return the bytes from `start` to `end` with secrets masked.

        Secrets that begin before `start` or end after `end` are masked as well. `size` is the
        file's length in bytes.
        """
        longest = self._redact.longest
        before = max(0, start - longest)
        data = self._redact.masked(read(before, min(end + longest, size)))
        return data[start - before : end - before]


def _mask_values(database: sqlite3.Connection, masked: Callable[[bytes], bytes]) -> None:
    """Mask secrets in each value of a database.

    Values are masked one by one, because SQLite splits a long value up in its file. Free pages,
    which may contain secrets too, are removed from the file.
    """
    database.create_function("masked", 1, masked, deterministic=True)
    for (table,) in database.execute(_TABLES).fetchall():
        for _, column, *_ in database.execute(f"PRAGMA table_info({_quoted(table)})").fetchall():
            names = {"table": _quoted(table), "column": _quoted(column)}
            database.execute(_MASK.format(**names))
    if database.total_changes or database.execute("PRAGMA freelist_count").fetchone()[0]:
        database.execute("VACUUM")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def lay_out(archived: Path, folder: Path) -> None:
    """Copy the files of a session's archive into a folder, decompressed.

    Existing files are kept.
    """
    for copy in _files(archived):
        target = folder / _plain(copy).relative_to(archived)
        if copy.suffix == ".new" or target.exists():
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opener = gzip.open if copy.suffix == ".gz" else open
        with opener(copy, "rb") as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, _STEP_BYTES)


def _free(copy: Path) -> Path | None:
    """Return an unused name (`.1`, `.2`) for the copy of a file that was replaced.

    None if there are `_MOST_COPIES` such copies already.
    """
    names = (copy.with_name(f"{copy.name}.{number}") for number in range(1, _MOST_COPIES + 1))
    free = (name for name in names if not name.exists() and not _packed(name).exists())
    return next(free, None)


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def _packed(plain: Path) -> Path:
    return plain.with_name(f"{plain.name}.gz")


def _plain(copy: Path) -> Path:
    return copy.with_name(copy.name.removesuffix(".gz"))


def _unpack(plain: Path) -> None:
    """Decompress `PLAIN.gz` into `plain`, unless `plain` exists, and remove the `.gz` either way.

    If both exist, as after a crash, they have the same content.
    """
    packed = _packed(plain)
    if not plain.exists() and packed.exists():
        new = plain.with_name(f"{plain.name}.new")
        with gzip.open(packed) as source, new.open("wb") as out:
            shutil.copyfileobj(source, out, _STEP_BYTES)
        new.rename(plain)
    packed.unlink(missing_ok=True)
