"""Opens the database file for the writer, for readers, and for small writes beside the writer."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlite_utils import Database

from bot.store.errors import StoreUnusable, damaged, explained
from bot.store.schema import migrations

BUSY_SECONDS = 5.0
#: The page size. A delivery has about 12 KB, and is written 1/8 faster in one page than in four.
PAGE_BYTES = 16_384
#: Memory map and page cache: both count as memory of the process, which stays below 200 MB with
#: 10,000 sessions.
MAPPED_BYTES = 32 * 1024 * 1024
CACHE_KB = 16_384
OLDEST_SQLITE = (3, 38)  # the first with `->>`


class RedactingConnection(sqlite3.Connection):
    """A connection that passes every text in the values of its statements through `redact`."""

    redact: Callable[[str], str] = staticmethod(str)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(sql, self._clean(parameters))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        return super().executemany(sql, map(self._clean, parameters))

    def _clean(self, parameters: Any) -> Any:
        if isinstance(parameters, Mapping):
            return {name: self._clean_one(value) for name, value in parameters.items()}
        return tuple(map(self._clean_one, parameters))

    def _clean_one(self, value: Any) -> Any:
        return self.redact(value) if isinstance(value, str) else value


def open_writer(
    path: Path, redact: Callable[[str], str], refuse_new: str = ""
) -> sqlite3.Connection:
    """Open the writing connection; create the file (mode 0600) and its tables if they are missing.

    An older schema is updated after the file was copied to `FILE.VERSION` beside it. Every text is
    passed through `redact` before it is written. `refuse_new` is the reason why no new database may
    be created; empty if one may. With a reason, a missing or empty database raises `StoreUnusable`,
    whose message ends with the reason.

    Raises `StoreDamaged`, `StoreUnusable` or another `StoreFailure`.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old: use a Python built with 3.38 or newer"
        )
    new = not path.exists() or path.stat().st_size == 0
    if new and refuse_new:
        # Checked before SQLite opens the file: it deletes a write-ahead log beside an empty one.
        raise StoreUnusable(f"the database {path} is missing or empty, {refuse_new}")
    if not new:
        check_whole(path)
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreUnusable(
            f"the database {path} cannot be created or written ({error.strerror}):"
            " give this user write access to the file and to its folder"
        ) from error

    def prepare(connection: sqlite3.Connection, path: Path) -> None:
        _prepare_writer(connection, path, refuse_new)

    return _opened(path, "rw", prepare, redact)


def check_whole(path: Path) -> None:
    """Read the whole file and check its structure. Raises `StoreDamaged`.

    Uses a read-only connection, because closing a writing one copies the write-ahead log into the
    damaged file. See https://www.sqlite.org/pragma.html#pragma_quick_check.
    """
    try:
        with closing(open_reader(path)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise explained(error, path) or error from error
    if found != "ok":
        raise damaged(path, found)


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection for reading. Raises `StoreUnusable` if the file cannot be opened."""
    if not path.is_file():
        raise StoreUnusable(
            f"there is no database {path}: `mergewright serve` creates it; check the folder"
        )
    return _opened(path, "ro")


def open_second_writer(path: Path, redact: Callable[[str], str]) -> sqlite3.Connection:
    """Open a connection for small writes beside the bot's writer. Raises `StoreFailure`."""
    return _opened(path, "rw", _prepare_second_writer, redact)


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreUnusable` unless the tables have the schema of this version."""
    pending = migrations.pending(Database(connection, execute_plugins=False))
    _check_owner(connection, path)
    if pending:
        raise StoreUnusable(
            f"the database {path} has an older schema (it lacks {pending[0].name!r}):"
            " start `mergewright serve` once, which updates it"
        )


def _opened(
    path: Path,
    mode: str,
    prepare: Callable[[sqlite3.Connection, Path], None] = lambda connection, path: None,
    redact: Callable[[str], str] | None = None,
) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # the writer is opened in one thread and used in another
            cached_statements=256,
            factory=RedactingConnection if redact else sqlite3.Connection,
        )
        try:
            if isinstance(connection, RedactingConnection) and redact:
                connection.redact = redact
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
            # Overwrites what is deleted, such as typed text; the default differs between builds.
            connection.execute("PRAGMA secure_delete = ON")
            prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise explained(error, path) or error from error
    return connection


def _prepare_writer(connection: sqlite3.Connection, path: Path, refuse_new: str) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # takes effect in a new file only
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnusable(
            f"the database {path} is on a file system without shared memory (its journal is"
            f" {mode!r}): put it on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    connection.execute("PRAGMA foreign_keys = OFF")  # A migration may replace a table.
    _migrate(connection, path, refuse_new)
    connection.execute("PRAGMA foreign_keys = ON")


def _prepare_second_writer(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # The bot checkpoints, so that a person's command need not wait for it.
    connection.execute("PRAGMA wal_autocheckpoint = 0")


def _migrate(connection: sqlite3.Connection, path: Path, refuse_new: str) -> None:
    db = Database(connection, execute_plugins=False)
    _check_owner(connection, path)
    if (before := _applied(connection)) and migrations.pending(db):
        copy_database(connection, _copy_of(path, _newest(before)))
    # sqlite-utils begins deferred; two bots starting at once must not both create the tables.
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check_owner(connection, path)
        if refuse_new and not _applied(connection):
            raise StoreUnusable(f"the database {path} has no tables, {refuse_new}")
        migrations.apply(db)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    db = Database(connection, execute_plugins=False)
    ours = _applied(connection)
    if not ours and db.table_names():
        raise StoreUnusable(
            f"the database {path} belongs to another program: set `server.data` to another folder"
        )
    known = {migration.name for migration in migrations._migrations}
    if newer := ours - known:
        copy = _copy_of(path, _newest(ours & known))
        back = (
            ", or go back to the state before the upgrade: stop the bot, replace the database with"
            f" its copy {copy}, and remove {path.name}-wal and {path.name}-shm if they exist"
        )
        raise StoreUnusable(
            f"the database {path} was written by a newer version of Mergewright (its schema has"
            f" {min(newer)!r}): install that version{back if copy.exists() else ''}"
        )


def _newest(names: Set[str]) -> str:
    """Return the last of these migrations in the order in which they are applied; empty if none."""
    ordered = [migration.name for migration in migrations._migrations if migration.name in names]
    return ordered[-1] if ordered else ""


def _copy_of(path: Path, version: str) -> Path:
    """Return the path of the copy that an upgrade makes of a database with this schema version."""
    return path.with_name(f"{path.name}.{version}")


def copy_database(connection: sqlite3.Connection, target: Path) -> None:
    """Copy a database, even while others write to it, into the file `target`, which is replaced.

    The copy has mode 0600. See https://www.sqlite.org/backup.html. Raises `StoreFailure` or
    `OSError`.
    """
    new = target.with_name(f"{target.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(new)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # Without a write-ahead log beside it.
    except sqlite3.Error as error:
        new.unlink(missing_ok=True)
        raise explained(error, target) or error from error
    new.replace(target)


def _applied(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the migrations that were applied."""
    db = Database(connection, execute_plugins=False)
    return {migration.name for migration in migrations.applied(db)}
