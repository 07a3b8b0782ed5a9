"""Copies of what programs wrote about themselves, so that a lost home loses nothing but secrets.

ARCHIVE/SESSION/PATH       what stands at PATH below the folder of all runs, as far as it grew
ARCHIVE/SESSION/PATH.1     what was there before it was cut or replaced; the next is `.2`
ARCHIVE/SESSION/PATH.gz    the same, packed once the session is over; unpacked when more comes

A database changes anywhere in it and does not grow: of one the archive has its last state, whole.
"""

import gzip
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from bot.store import LiveSession, Session
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from runtimes.agents.shared.databases import reading
from runtimes.agents.shared.files import opened

log = logging.getLogger(__name__)

#: So much of a copy's end has to be where it was, for a file to be the one that was copied.
_TAIL_BYTES = 4096
_STEP_BYTES = 1024 * 1024
_DATABASE = b"SQLite format 3\0"  #: How one begins.
_TABLES = """SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND sql NOT LIKE 'CREATE VIRTUAL %'"""
_MASK = """UPDATE {table} SET {column} = CASE typeof({column})
        WHEN 'text' THEN CAST(masked(CAST({column} AS BLOB)) AS TEXT) ELSE masked({column}) END
    WHERE typeof({column}) IN ('text', 'blob')
        AND masked(CAST({column} AS BLOB)) <> CAST({column} AS BLOB)"""


class Archive:
    """Keeps, packs and puts back. May be used from any thread."""

    def __init__(self, locations: Locations, redact: Redaction) -> None:
        self._locations = locations
        self._redact = redact
        self._sessions = locations.paths.sessions
        self._root = locations.paths.archive
        self._known: dict[str, dict[Path, tuple[int, ...]]] = {}  # By session.
        self._lock = threading.Lock()

    def keep_all(self, sessions: Iterable[LiveSession]) -> None:
        """Keep what is new of every session. The trouble of one is not that of the others."""
        for session in sessions:
            try:
                self.keep(session)
            except OSError as error:
                log.warning("%s: its records were not archived: %s", session.id, error)

    def keep(self, session: LiveSession | Session) -> None:
        """Copy what was appended to the records of its runs, and its notes, since the last time."""
        program = self._locations.programs.get(session.agent_type)
        if program is None:
            return
        for run in range(1, session.run + 1):
            workspace = Path(session.work.path)
            files = self._locations.files(session.id, run, session.branch, workspace)
            notes = () if files.progress.parent.is_symlink() else (files.progress,)
            for path in (*program.records(files), *notes):
                with self._lock, suppress(FileNotFoundError):
                    self._keep_file(session.id, path)

    def pack(self, session: str) -> None:
        """Pack the copies of a session that is over. Safe to repeat after a crash."""
        with self._lock:
            self._known.pop(session, None)
            for copy in list(_files(self._root / session)):
                if copy.suffix == ".new":  # Of a bot that was killed.
                    copy.unlink(missing_ok=True)
                elif copy.suffix != ".gz":
                    new = copy.with_name(f"{copy.name}.new")
                    with copy.open("rb") as plain, gzip.open(new, "wb") as packed:
                        shutil.copyfileobj(plain, packed, _STEP_BYTES)
                    new.rename(_packed(copy))
                    copy.unlink()

    def put_back(self, session: str) -> None:
        """Give the session's home back the files that are missing there."""
        with self._lock:
            home = self._root / session / self._locations.paths.home(session).name
            for copy in list(_files(home)):
                plain = _plain(copy)
                target = self._sessions / plain.relative_to(self._root / session)
                if target.exists() or plain.suffix == ".new" or plain.suffix[1:].isdigit():
                    continue
                if self._leads_out(target):
                    log.warning("%s: %s leads out of its folder", session, target.parent)
                    continue
                _unpack(plain)
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                new = target.with_name(f"{target.name}.new")
                new.unlink(missing_ok=True)
                with plain.open("rb") as kept, new.open("xb") as out:  # Through no link.
                    shutil.copyfileobj(kept, out, _STEP_BYTES)
                new.rename(target)

    def _keep_file(self, session: str, path: Path) -> None:
        state = _state(path)
        with suppress(FileNotFoundError):  # What a database has not yet merged into itself.
            state += _state(path.with_name(f"{path.name}-wal"))
        known = self._known.setdefault(session, {})
        if known.get(path) != state:
            self._copy(session, path)
            known[path] = state

    def _leads_out(self, path: Path) -> bool:
        """Whether a folder on the way to a file is a link, which agents may have made."""
        below = path.relative_to(self._sessions)
        return Path(os.path.realpath(path.parent)) != (self._sessions.resolve() / below).parent

    def _copy(self, session: str, path: Path) -> None:
        if self._leads_out(path):
            raise OSError(f"{path} leads out of the session's folder")
        copy = self._root / session / path.relative_to(self._sessions)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _unpack(copy)
        with opened(path) as source:
            is_database = source.read(len(_DATABASE)) == _DATABASE
        if is_database:
            self._copy_database(path, copy)
        else:
            self._copy_more(path, copy)

    def _copy_database(self, path: Path, copy: Path) -> None:
        new, whole = copy.with_name(f"{copy.name}.new"), copy.with_name(f"{copy.name}.whole.new")
        for made in (new, whole):
            made.unlink(missing_ok=True)
            made.touch(mode=0o600)
        try:
            with (
                reading(path) as source,
                closing(sqlite3.connect(whole)) as snapshot,
            ):
                source.backup(snapshot)
                snapshot.execute("PRAGMA journal_mode = DELETE")  # It is one file, then.
                _mask_values(snapshot, self._redact.masked)
            with whole.open("rb") as plain, new.open("wb") as out:
                size = os.fstat(plain.fileno()).st_size
                for start in range(0, size, _STEP_BYTES):
                    out.write(self._masked(plain, start, min(start + _STEP_BYTES, size), size))
            new.rename(copy)
        except sqlite3.Error as error:
            raise OSError(f"{path}: {error}") from error
        finally:
            for made in (new, whole):
                made.unlink(missing_ok=True)

    def _copy_more(self, path: Path, copy: Path) -> None:
        copy.touch(mode=0o600)
        with opened(path) as source, copy.open("rb+") as out:
            begun = out.seek(0, os.SEEK_END)
            if not self._continues(source, out, begun):
                shutil.copyfile(copy, _free(copy))
                begun = out.truncate(0)
            size = os.fstat(source.fileno()).st_size
            # A secret of which only the beginning had been written stands at the copy's end.
            out.seek(max(0, begun - self._redact.longest))
            for start in range(out.tell(), size, _STEP_BYTES):
                out.write(self._masked(source, start, min(start + _STEP_BYTES, size), size))

    def _continues(self, source: BinaryIO, copy: BinaryIO, begun: int) -> bool:
        """Whether the source still begins with what was copied: longer, and the same at its end."""
        start = max(0, begun - _TAIL_BYTES)
        copy.seek(start)
        return self._masked(source, start, begun, begun) == copy.read(begun - start)

    def _masked(self, source: BinaryIO, start: int, end: int, size: int) -> bytes:
        """What a copy of `size` bytes has there; a secret may reach beyond it on both sides."""
        longest = self._redact.longest
        before = max(0, start - longest)
        source.seek(before)
        data = self._redact.masked(source.read(min(end + longest, size) - before))
        return data[start - before : end - before]


def _mask_values(database: sqlite3.Connection, masked: Callable[[bytes], bytes]) -> None:
    """Take secrets out of long values, which lie in pieces in the file, and out of free pages."""
    database.create_function("masked", 1, masked, deterministic=True)
    for (table,) in database.execute(_TABLES).fetchall():
        for _, column, *_ in database.execute(f"PRAGMA table_info({_quoted(table)})").fetchall():
            names = {"table": _quoted(table), "column": _quoted(column)}
            database.execute(_MASK.format(**names))
    database.commit()
    if database.total_changes or database.execute("PRAGMA freelist_count").fetchone()[0]:
        database.execute("VACUUM")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def lay_out(archived: Path, folder: Path) -> None:
    """Have plain copies of what a session's archive holds in a folder; the archive stays."""
    for copy in _files(archived):
        target = folder / _plain(copy).relative_to(archived)
        if copy.suffix == ".new" or target.exists():
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opener = gzip.open if copy.suffix == ".gz" else open
        with opener(copy, "rb") as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, _STEP_BYTES)


def _state(path: Path) -> tuple[int, ...]:
    """What differs once anything was written to a file."""
    status = path.stat(follow_symlinks=False)
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _free(copy: Path) -> Path:
    """Where what a file held before is kept."""
    names = (copy.with_name(f"{copy.name}.{number}") for number in count(1))
    return next(name for name in names if not name.exists() and not _packed(name).exists())


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def _packed(plain: Path) -> Path:
    return plain.with_name(f"{plain.name}.gz")


def _plain(copy: Path) -> Path:
    return copy.with_name(copy.name.removesuffix(".gz"))


def _unpack(plain: Path) -> None:
    """Have the plain copy where there is a packed one. Both at once say the same."""
    packed = _packed(plain)
    if not plain.exists() and packed.exists():
        new = plain.with_name(f"{plain.name}.new")
        with gzip.open(packed) as source, new.open("wb") as out:
            shutil.copyfileobj(source, out, _STEP_BYTES)
        new.rename(plain)
    packed.unlink(missing_ok=True)
