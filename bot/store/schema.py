"""The tables, and how they came to be.

Changing a table means adding a migration at the end; one that was ever released is never edited.
"""

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

migrations = Migrations("mergewright")


@migrations()
def first_tables(db: Database) -> None:
    """Everything the first version keeps."""
    for statement in FIRST_TABLES:
        db.execute(statement)


@migrations()
def whole_lifecycle(db: Database) -> None:
    """Slots by priority, identities, budgets, freezes, metadata, incidents."""
    for statement in WHOLE_LIFECYCLE:
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
    """CREATE TABLE refreshes (
        repository TEXT NOT NULL,
        subject TEXT NOT NULL,
        since REAL NOT NULL,
        due REAL NOT NULL,
        times INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY (repository, subject)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX refreshes_due ON refreshes (due)",
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
    """CREATE TABLE commands (
        key TEXT PRIMARY KEY,
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL DEFAULT '',
        comment INTEGER,
        head TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT 'new' CHECK (
            state IN ('new', 'authorized', 'granted', 'refused')
        ),
        session TEXT REFERENCES sessions (id),
        why TEXT NOT NULL DEFAULT ''
    ) STRICT""",
    "CREATE INDEX commands_new ON commands (at) WHERE state = 'new'",
    "CREATE INDEX commands_authorized ON commands (repository, number) WHERE state = 'authorized'",
    "CREATE INDEX commands_granted ON commands (session, at) WHERE session IS NOT NULL",
    # An action belongs to a session, or to a repository alone: answers where no session exists.
    """CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT REFERENCES sessions (id),
        repository TEXT,
        key TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'sent', 'done', 'dead')),
        attempts INTEGER NOT NULL DEFAULT 0,
        next_at REAL NOT NULL,
        created REAL NOT NULL,
        done_at REAL,
        result TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        action TEXT NOT NULL,
        receipt TEXT NOT NULL DEFAULT '',
        CHECK ((session IS NULL) <> (repository IS NULL)),
        UNIQUE (session, key),
        UNIQUE (repository, key)
    ) STRICT""",
    "CREATE INDEX outbox_settled ON outbox (done_at) WHERE session IS NULL",
    "CREATE INDEX outbox_due ON outbox (session, seq) WHERE state = 'due'",
    "CREATE INDEX outbox_sent ON outbox (session, seq) WHERE state = 'sent'",
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
        UNION SELECT session FROM outbox WHERE state = 'due' AND session IS NOT NULL""",
)

WHOLE_LIFECYCLE = (
    # Whether it has something to run and no slot, since when, and why it was given none.
    "ALTER TABLE sessions ADD COLUMN wants_slot INTEGER NOT NULL DEFAULT 0"
    " CHECK (wants_slot IN (0, 1))",
    "ALTER TABLE sessions ADD COLUMN wanted_since REAL",
    "ALTER TABLE sessions ADD COLUMN waits TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN priority INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN agent_name TEXT NOT NULL DEFAULT ''",
    # When it was last restored, and the first run since then.
    "ALTER TABLE sessions ADD COLUMN restored_at REAL",
    "ALTER TABLE sessions ADD COLUMN first_run INTEGER NOT NULL DEFAULT 0",
    # How many sessions of its project ended how, where it was the last of them to end.
    "ALTER TABLE sessions ADD COLUMN finished TEXT NOT NULL DEFAULT '{}'",
    """UPDATE sessions SET wants_slot = 1, wanted_since = since
        WHERE status = 'queued' AND slot = 0 AND ended IS NULL""",
    # A decision is held to its session's version, and a bot to its lease; nothing is claimed.
    "ALTER TABLE sessions DROP COLUMN owner",
    "ALTER TABLE sessions DROP COLUMN claimed_until",
    "ALTER TABLE sessions DROP COLUMN epoch",
    # When GitHub is read is not a matter of single sessions any more.
    "ALTER TABLE sessions DROP COLUMN pulls_read_at",
    "DROP INDEX sessions_queued",
    "DROP INDEX outbox_dead",
    # All that the line is made of, so that it is read without the large columns.
    """CREATE INDEX sessions_wanting ON sessions (
        wanted_since, id, project, agent_type, agent_name, requester, priority, waits
    ) WHERE slot = 0 AND wants_slot = 1""",
    """CREATE INDEX sessions_untold ON sessions (id)
        WHERE slot = 0 AND wants_slot = 1 AND waits = ''""",
    "UPDATE sessions SET agent_name = agent_type",
    "CREATE INDEX sessions_requester ON sessions (project, requester, created)",
    # Who held a slot, and how long.
    """CREATE TABLE slots (
        session TEXT NOT NULL REFERENCES sessions (id),
        agent_type TEXT NOT NULL,
        taken REAL NOT NULL,
        freed REAL,
        awaited INTEGER NOT NULL DEFAULT 0 CHECK (awaited IN (0, 1))
    ) STRICT""",
    """INSERT INTO slots (session, agent_type, taken)
        SELECT id, agent_type, since FROM sessions WHERE slot = 1""",
    "CREATE UNIQUE INDEX slots_held ON slots (session) WHERE freed IS NULL",
    "CREATE INDEX slots_session ON slots (session, freed)",
    "CREATE INDEX slots_freed ON slots (agent_type, freed DESC) WHERE freed IS NOT NULL",
    # What a run used on one day (UTC, `2030-01-31`); the sums are what its agent counts.
    """CREATE TABLE usage (
        session TEXT NOT NULL REFERENCES sessions (id),
        run INTEGER NOT NULL,
        day TEXT NOT NULL,
        repository TEXT NOT NULL,
        cost_usd REAL NOT NULL DEFAULT 0,
        active_seconds REAL NOT NULL DEFAULT 0,
        input INTEGER NOT NULL DEFAULT 0,
        output INTEGER NOT NULL DEFAULT 0,
        cache_read INTEGER NOT NULL DEFAULT 0,
        cache_write INTEGER NOT NULL DEFAULT 0,
        reasoning INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER AS (input + output + cache_write + reasoning),
        unpriced INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (session, run, day)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX usage_day ON usage (repository, day, cost_usd, tokens, unpriced, active_seconds)",
    # What models said that the answers of a run used, as our door to them heard it.
    """CREATE TABLE answers (
        session TEXT NOT NULL REFERENCES sessions (id),
        run INTEGER NOT NULL,
        model TEXT NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        reasoning INTEGER NOT NULL,
        PRIMARY KEY (session, run, model)
    ) STRICT, WITHOUT ROWID""",
    # Which agent type had the runs before this one, where a session was handed over for it.
    """CREATE TABLE handovers (
        session TEXT NOT NULL REFERENCES sessions (id),
        run INTEGER NOT NULL,
        agent_type TEXT NOT NULL,
        PRIMARY KEY (session, run)
    ) STRICT, WITHOUT ROWID""",
    # A scope is empty (everything), `project:NAME` or `session:ID`.
    """CREATE TABLE freezes (
        scope TEXT PRIMARY KEY,
        actor TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE metadata (
        session TEXT NOT NULL REFERENCES sessions (id),
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE incidents (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL,
        since REAL NOT NULL,
        cleared_at REAL,
        text TEXT NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX incidents_open ON incidents (key) WHERE cleared_at IS NULL",
    # Sessions that are not over, hold a slot, or wait for an action. One whose workspace is to be
    # released in some days is due then, and does not live for that.
    "DROP VIEW live",
    """CREATE VIEW live AS
        SELECT id FROM sessions WHERE ended IS NULL
        UNION SELECT id FROM sessions WHERE slot = 1
        UNION SELECT session FROM outbox WHERE state = 'due' AND session IS NOT NULL""",
    # The person's own conversation that the session is to go on with.
    "ALTER TABLE commands ADD COLUMN resume TEXT NOT NULL DEFAULT ''",
    # Configured repositories: GitHub's number of each, and what it is called today.
    """CREATE TABLE repositories (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        current_name TEXT NOT NULL,
        archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1))
    ) STRICT""",
    # Whose word does not count: told once for an issue.
    """CREATE TABLE outsiders (
        repository TEXT NOT NULL,
        issue INTEGER NOT NULL,
        login TEXT NOT NULL,
        number INTEGER NOT NULL,
        at REAL NOT NULL,
        told REAL,
        PRIMARY KEY (repository, issue, login)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX outsiders_untold ON outsiders (at) WHERE told IS NULL",
    # What repositories say of themselves in a file of theirs.
    """CREATE TABLE configurations (
        repository TEXT PRIMARY KEY,
        blob TEXT NOT NULL,
        good TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # How far something that grows elsewhere was looked at.
    """CREATE TABLE marks (
        name TEXT PRIMARY KEY,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # What a decision of the history was made from; `bot.store.judgements` says how it is kept.
    """CREATE TABLE policies (
        hash TEXT PRIMARY KEY,
        policy TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE judgements (
        history INTEGER PRIMARY KEY REFERENCES history (seq) ON DELETE CASCADE,
        policy TEXT NOT NULL REFERENCES policies (hash),
        judged BLOB NOT NULL
    ) STRICT""",
)
