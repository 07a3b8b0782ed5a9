"""The tables, how they came to be, and how the file is opened.

Changing a table means adding a migration at the end; one that was ever released is never edited.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from bot.store.errors import StoreUnusable, explained

BUSY_SECONDS = 5.0
#: A delivery has 12 KB as a rule: in one page instead of four it is kept an eighth faster.
PAGE_BYTES = 16_384
OLDEST_SQLITE = (3, 37)  # the first with STRICT tables

migrations = Migrations("mergewright")


@migrations()
def first_tables(db: Database) -> None:
    """Everything the first version keeps."""
    for statement in FIRST_TABLES:
        db.execute(statement)


# Large columns stand last in their table: what follows a large value is slow to reach.
FIRST_TABLES = (
    """CREATE TABLE deliveries (
        id TEXT PRIMARY KEY,
        event TEXT NOT NULL,
        at REAL NOT NULL,
        state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done', 'failed')),
        error TEXT NOT NULL DEFAULT '',
        done_at REAL,
        body BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX deliveries_waiting ON deliveries (at) WHERE state = 'new'",
    "CREATE INDEX deliveries_settled ON deliveries (done_at) WHERE done_at IS NOT NULL",
    """CREATE TABLE touches (
        repository TEXT NOT NULL,
        subject TEXT NOT NULL,
        since REAL NOT NULL,
        due REAL NOT NULL,
        times INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY (repository, subject)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX touches_due ON touches (due)",
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        branch TEXT NOT NULL,
        created REAL NOT NULL,
        requester TEXT NOT NULL,
        agent_type TEXT NOT NULL,
        run INTEGER NOT NULL DEFAULT 0,
        slot INTEGER NOT NULL DEFAULT 0 CHECK (slot IN (0, 1)),
        status TEXT NOT NULL DEFAULT 'queued',
        since REAL NOT NULL,
        reason TEXT NOT NULL DEFAULT '',
        because TEXT NOT NULL DEFAULT '',
        blockers TEXT NOT NULL DEFAULT '[]',
        ended TEXT,
        decided_at REAL,
        due REAL,
        version INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        claimed_until REAL,
        epoch INTEGER NOT NULL DEFAULT 0,
        pulls_read_at REAL,
        head TEXT AS (json_extract(work, '$.head')),
        agent TEXT NOT NULL,
        work TEXT NOT NULL,
        issue TEXT NOT NULL,
        pulls TEXT NOT NULL DEFAULT '[]',
        UNIQUE (repository, number),
        UNIQUE (repository, branch)
    ) STRICT""",
    "CREATE INDEX sessions_due ON sessions (due) WHERE due IS NOT NULL",
    "CREATE INDEX sessions_open ON sessions (created) WHERE ended IS NULL",
    "CREATE INDEX sessions_queued ON sessions (since) WHERE slot = 0 AND status = 'queued'",
    "CREATE INDEX sessions_slots ON sessions (slot) WHERE slot = 1",
    "CREATE INDEX sessions_head ON sessions (repository, head)",
    """CREATE TABLE session_pulls (
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        session TEXT NOT NULL REFERENCES sessions (id),
        head TEXT NOT NULL,
        PRIMARY KEY (repository, number)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX session_pulls_session ON session_pulls (session)",
    "CREATE INDEX session_pulls_head ON session_pulls (repository, head, session)",
    """CREATE TABLE wishes (
        key TEXT PRIMARY KEY,
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL DEFAULT '',
        comment INTEGER,
        head TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'granted', 'refused')),
        session TEXT REFERENCES sessions (id),
        why TEXT NOT NULL DEFAULT ''
    ) STRICT""",
    "CREATE INDEX wishes_new ON wishes (at) WHERE state = 'new'",
    "CREATE INDEX wishes_granted ON wishes (session, at) WHERE session IS NOT NULL",
    """CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL REFERENCES sessions (id),
        key TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'done', 'dead')),
        attempts INTEGER NOT NULL DEFAULT 0,
        next_at REAL NOT NULL,
        created REAL NOT NULL,
        done_at REAL,
        result TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        action TEXT NOT NULL,
        UNIQUE (session, key)
    ) STRICT""",
    "CREATE INDEX outbox_due ON outbox (session, seq) WHERE state = 'due'",
    "CREATE INDEX outbox_dead ON outbox (seq) WHERE state = 'dead'",
    """CREATE TABLE history (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL REFERENCES sessions (id),
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        data TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX history_session ON history (session, seq)",
    """CREATE TABLE lease (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        expires REAL NOT NULL
    ) STRICT""",
    "CREATE TABLE trial (id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL) STRICT",
    # Sessions that are not over, or wait for a visit or an action.
    """CREATE VIEW live AS
        SELECT id FROM sessions WHERE ended IS NULL
        UNION SELECT id FROM sessions WHERE due IS NOT NULL
        UNION SELECT session FROM outbox WHERE state = 'due'""",
)


def open_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes; makes the file (0600) and its tables where they are missing.

    Raises `StoreUnusable` or another `StoreFailure`.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old: use a Python built with 3.37 or newer"
        )
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise StoreUnusable(
            f"the database {path} cannot be made or written ({error.strerror}):"
            " give this user write access to the file and to its folder"
        ) from error
    return _opened(path, "rw", _prepare_writer)


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises `StoreUnusable`."""
    if not path.is_file():
        raise StoreUnusable(
            f"there is no database {path}: `mergewright serve` makes it; is the folder right?"
        )
    return _opened(path, "ro", lambda connection, path: None)


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreUnusable` unless the tables are the ones this version knows."""
    pending = migrations.pending(Database(connection, execute_plugins=False))
    _refuse_strangers(connection, path)
    if pending:
        raise StoreUnusable(
            f"the database {path} is of an older version (it lacks {pending[0].name!r}):"
            " start `mergewright serve` once, which brings it up to date"
        )


def _opened(
    path: Path, mode: str, prepare: Callable[[sqlite3.Connection, Path], None]
) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # the writer is made in one thread and used in another
            cached_statements=256,
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA mmap_size = 268435456")
            prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise explained(error, path) or error from error
    return connection


def _prepare_writer(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # a file keeps the one it began with
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnusable(
            f"the database {path} stands on a file system without shared memory (its journal is"
            f" {mode!r}): put it on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -65536")
    _migrate(connection, path)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    # sqlite-utils begins deferred; two bots starting at once must not both make the tables.
    connection.execute("BEGIN IMMEDIATE")
    try:
        _refuse_strangers(connection, path)
        migrations.apply(Database(connection, execute_plugins=False))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _refuse_strangers(connection: sqlite3.Connection, path: Path) -> None:
    db = Database(connection, execute_plugins=False)
    ours = {migration.name for migration in migrations.applied(db)}
    if not ours and db.table_names():
        raise StoreUnusable(
            f"the database {path} belongs to another program: name another file for Mergewright's"
        )
    ours -= {migration.name for migration in migrations._migrations}
    if ours:
        raise StoreUnusable(
            f"the database {path} was written by a newer Mergewright (it has {min(ours)!r}):"
            " install that version, or name another file"
        )
