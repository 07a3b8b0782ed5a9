"""The tables of the database.

Times are seconds since 1970 (UTC), structs are JSON. A new table has its large columns last,
because SQLite reads a row from its beginning and is slow to reach columns after a large value.
Statements use SQL that SQLite and PostgreSQL share, which includes partial indexes, generated
columns, `ON CONFLICT`, `RETURNING`, window functions and `->>`. Exceptions, which only SQLite has,
are above all STRICT, WITHOUT ROWID, AUTOINCREMENT, `rowid` as a tie-breaker, `json_each` and the
other JSON functions, truth values as numbers, and `UPDATE OR IGNORE` in `repositories`.
"""

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from bot.store.schema_additions import (
    COSTS_OVER_TIME,
    DELIVERY_OUTCOMES,
    LEDGER,
    METERED_COSTS,
    NOTIFICATIONS,
    ORIGINS,
    PEOPLE,
    PERSONS,
    rebuild_sessions,
)

#: The versions of the schema. Never change a released version: add a new one below.
migrations = Migrations("mergewright")

_STATEMENTS = (
    # -- deliveries --------------------------------------------------------------------------------
    """CREATE TABLE deliveries (
        id TEXT PRIMARY KEY,
        event TEXT NOT NULL,
        at REAL NOT NULL,
        state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'done', 'failed')),
        error TEXT NOT NULL DEFAULT '',
        done_at REAL,
        body BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX deliveries_new ON deliveries (at) WHERE state = 'new'",
    "CREATE INDEX deliveries_failed ON deliveries (at DESC) WHERE state = 'failed'",
    "CREATE INDEX deliveries_done_at ON deliveries (done_at) WHERE done_at IS NOT NULL",
    """CREATE TABLE refreshes (
        repository TEXT NOT NULL,
        subject TEXT NOT NULL,
        since REAL NOT NULL,
        due REAL NOT NULL,
        requests INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY (repository, subject)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX refreshes_due ON refreshes (due)",
    # The time up to which the bot has read a growing list, such as the deliveries at GitHub.
    "CREATE TABLE cursors (name TEXT PRIMARY KEY, at REAL NOT NULL) STRICT, WITHOUT ROWID",
    # -- sessions ----------------------------------------------------------------------------------
    # slot: holds a slot. wants_slot: has something to run and no slot, since wanted_since; waits:
    # why it has none. first_run: the first run after the last restore. finished: the number of the
    # project's ended sessions by status, if this session was the last to end. taken_back: the end
    # that the last restore undid, until the session is handed over. permission_mode: the one
    # requested at its start.
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        project TEXT NOT NULL,
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        branch TEXT NOT NULL,
        created REAL NOT NULL,
        requester TEXT NOT NULL,
        agent_type TEXT NOT NULL,
        agent_name TEXT NOT NULL,
        permission_mode TEXT NOT NULL DEFAULT '',
        priority INTEGER NOT NULL DEFAULT 0,
        run INTEGER NOT NULL DEFAULT 0,
        first_run INTEGER NOT NULL DEFAULT 0,
        restored_at REAL,
        slot INTEGER NOT NULL DEFAULT 0 CHECK (slot IN (0, 1)),
        wants_slot INTEGER NOT NULL DEFAULT 0 CHECK (wants_slot IN (0, 1)),
        wanted_since REAL,
        waits TEXT NOT NULL DEFAULT '',
        status TEXT NOT NULL DEFAULT 'queued',
        since REAL NOT NULL,
        reason TEXT NOT NULL DEFAULT '',
        because TEXT NOT NULL DEFAULT '',
        blockers TEXT NOT NULL DEFAULT '[]',
        ended TEXT,
        taken_back TEXT,
        finished TEXT NOT NULL DEFAULT '{}',
        due REAL,
        version INTEGER NOT NULL DEFAULT 0,
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
    "CREATE INDEX sessions_slots ON sessions (slot) WHERE slot = 1",
    "CREATE INDEX sessions_head ON sessions (repository, head)",
    "CREATE INDEX sessions_requester ON sessions (project, requester, created)",
    # Covers the queries of the queue for slots, so that they read no large columns.
    """CREATE INDEX sessions_queue ON sessions (
        wanted_since, id, project, agent_type, agent_name, requester, priority, waits
    ) WHERE slot = 0 AND wants_slot = 1""",
    """CREATE INDEX sessions_unexplained ON sessions (id)
        WHERE slot = 0 AND wants_slot = 1 AND waits = ''""",
    """CREATE TABLE session_pulls (
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        session TEXT NOT NULL REFERENCES sessions (id),
        head TEXT NOT NULL,
        PRIMARY KEY (repository, number)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX session_pulls_session ON session_pulls (session)",
    "CREATE INDEX session_pulls_head ON session_pulls (repository, head, session)",
    # The files that the pushed commits of a session change.
    """CREATE TABLE session_paths (
        session TEXT NOT NULL REFERENCES sessions (id),
        path TEXT NOT NULL,
        PRIMARY KEY (session, path)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE metadata (
        session TEXT NOT NULL REFERENCES sessions (id),
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID""",
    # When each session held a slot. requested: a person's command requested the run.
    """CREATE TABLE slots (
        session TEXT NOT NULL REFERENCES sessions (id),
        agent_type TEXT NOT NULL,
        taken_at REAL NOT NULL,
        freed_at REAL,
        requested INTEGER NOT NULL DEFAULT 0 CHECK (requested IN (0, 1))
    ) STRICT""",
    "CREATE UNIQUE INDEX slots_held ON slots (session) WHERE freed_at IS NULL",
    "CREATE INDEX slots_session ON slots (session, freed_at)",
    "CREATE INDEX slots_freed ON slots (agent_type, freed_at DESC) WHERE freed_at IS NOT NULL",
    # The agent and agent type that had the runs before `run`, with which another agent took over.
    # head: the last commit at the handover. ended: how the session ended under the former agent, if
    # a restore undid that end.
    """CREATE TABLE handovers (
        session TEXT NOT NULL REFERENCES sessions (id),
        run INTEGER NOT NULL,
        agent_type TEXT NOT NULL,
        agent_name TEXT NOT NULL,
        head TEXT NOT NULL,
        ended TEXT,
        PRIMARY KEY (session, run)
    ) STRICT, WITHOUT ROWID""",
    # -- commands ----------------------------------------------------------------------------------
    # resume: the id of the person's conversation that a new session continues; empty: none.
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
        refusal TEXT NOT NULL DEFAULT '',
        resume TEXT NOT NULL DEFAULT ''
    ) STRICT""",
    "CREATE INDEX commands_new ON commands (at) WHERE state = 'new'",
    "CREATE INDEX commands_authorized ON commands (repository, number) WHERE state = 'authorized'",
    "CREATE INDEX commands_granted ON commands (session, at) WHERE session IS NOT NULL",
    # People without write access who labelled, reviewed or commented: notified once per issue.
    """CREATE TABLE outsiders (
        repository TEXT NOT NULL,
        issue INTEGER NOT NULL,
        login TEXT NOT NULL,
        number INTEGER NOT NULL,
        at REAL NOT NULL,
        notified_at REAL,
        PRIMARY KEY (repository, issue, login)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX outsiders_new ON outsiders (at) WHERE notified_at IS NULL",
    # -- actions and decisions ---------------------------------------------------------------------
    # An action belongs to a session, or to a repository if it concerns no session.
    """CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT REFERENCES sessions (id),
        repository TEXT,
        key TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'sent', 'done', 'failed')),
        attempts INTEGER NOT NULL DEFAULT 0,
        next_at REAL NOT NULL,
        created REAL NOT NULL,
        done_at REAL,
        result TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        action TEXT NOT NULL,
        receipt TEXT,
        CHECK ((session IS NULL) <> (repository IS NULL)),
        UNIQUE (session, key),
        UNIQUE (repository, key)
    ) STRICT""",
    "CREATE INDEX outbox_done_at ON outbox (done_at) WHERE session IS NULL",
    "CREATE INDEX outbox_due ON outbox (session, seq) WHERE state = 'due'",
    "CREATE INDEX outbox_sent ON outbox (session, seq) WHERE state = 'sent'",
    """CREATE TABLE history (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL REFERENCES sessions (id),
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        data TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX history_session ON history (session, seq)",
    # Decisions with their inputs: compressed MessagePack of the facts and the decision, and the
    # SHA-256 of the policy.
    "CREATE TABLE policies (hash TEXT PRIMARY KEY, policy TEXT NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE decision_records (
        history INTEGER PRIMARY KEY REFERENCES history (seq) ON DELETE CASCADE,
        policy TEXT NOT NULL REFERENCES policies (hash),
        record BLOB NOT NULL
    ) STRICT""",
    # Sessions that have not ended, hold a slot or wait for an action. A session that is due only
    # because its workspace is released in some days is not live.
    """CREATE VIEW live AS
        SELECT id FROM sessions WHERE ended IS NULL
        UNION SELECT id FROM sessions WHERE slot = 1
        UNION SELECT session FROM outbox WHERE state = 'due' AND session IS NOT NULL""",
    # -- usage of models ---------------------------------------------------------------------------
    # The usage of a run on one day (UTC, `2030-01-31`), with its requester and its agent.
    """CREATE TABLE usage (
        session TEXT NOT NULL REFERENCES sessions (id),
        run INTEGER NOT NULL,
        day TEXT NOT NULL,
        repository TEXT NOT NULL,
        requester TEXT NOT NULL,
        agent TEXT NOT NULL,
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
    """CREATE INDEX usage_requester
        ON usage (requester, day, cost_usd, tokens, unpriced, active_seconds)""",
    "CREATE INDEX usage_agent ON usage (agent, day, cost_usd, tokens, unpriced, active_seconds)",
    # What the model proxy counted for a run.
    """CREATE TABLE model_usage (
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
    # -- the network -------------------------------------------------------------------------------
    # Hosts that the proxy refused to a session. public: false for a host that is allowed, but has
    # no public address. An empty host counts all hosts after the first 50.
    """CREATE TABLE refused_hosts (
        session TEXT NOT NULL REFERENCES sessions (id),
        host TEXT NOT NULL,
        port INTEGER NOT NULL,
        public INTEGER NOT NULL CHECK (public IN (0, 1)),
        times INTEGER NOT NULL,
        first REAL NOT NULL,
        last REAL NOT NULL,
        PRIMARY KEY (session, host, port)
    ) STRICT, WITHOUT ROWID""",
    # -- the whole bot -----------------------------------------------------------------------------
    """CREATE TABLE lease (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        expires REAL NOT NULL
    ) STRICT""",
    # The actions that were due when a leader was replaced, which it may still execute. former: the
    # replaced leader's name; empty if it released the lease. at: when it was replaced.
    """CREATE TABLE inherited (
        former TEXT NOT NULL,
        seq INTEGER NOT NULL,
        session TEXT NOT NULL,
        repository TEXT NOT NULL,
        at REAL NOT NULL,
        action TEXT NOT NULL,
        PRIMARY KEY (former, seq)
    ) STRICT, WITHOUT ROWID""",
    "CREATE TABLE write_probe (id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL) STRICT",
    # A scope is empty (everything), `project:NAME` or `session:ID`.
    """CREATE TABLE freezes (scope TEXT PRIMARY KEY, actor TEXT NOT NULL, at REAL NOT NULL)
        STRICT, WITHOUT ROWID""",
    """CREATE TABLE incidents (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL,
        since REAL NOT NULL,
        cleared_at REAL,
        text TEXT NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX incidents_open ON incidents (key) WHERE cleared_at IS NULL",
    # Configured repositories. id: GitHub's, which survives renames. name: as configured.
    """CREATE TABLE repositories (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        current_name TEXT NOT NULL,
        archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1))
    ) STRICT""",
    # Repositories of the App's installations that are or were projects, so that each keeps its
    # project's name. id: GitHub's. name: `owner/name` when it became a project.
    """CREATE TABLE installed_projects (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        project TEXT NOT NULL UNIQUE,
        removed INTEGER NOT NULL DEFAULT 0 CHECK (removed IN (0, 1))
    ) STRICT""",
    # A repository's own configuration file: the blob last read, and the last valid text.
    """CREATE TABLE configurations (
        repository TEXT PRIMARY KEY, blob TEXT NOT NULL, valid TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
)


@migrations()
def version_1(db: Database) -> None:
    """Create the tables of the first version."""
    for statement in _STATEMENTS:
        db.execute(statement)


@migrations()
def version_2(db: Database) -> None:
    """Add the ledger, which keeps the cost of deleted sessions."""
    for statement in LEDGER:
        db.execute(statement)


@migrations()
def version_3(db: Database) -> None:
    """Add each session's reason to notify people, and the table of notifiers' messages."""
    for statement in NOTIFICATIONS:
        db.execute(statement)


@migrations()
def version_4(db: Database) -> None:
    """Add the person who requested a session to the view of all usage."""
    for statement in PERSONS:
        db.execute(statement)


@migrations()
def version_5(db: Database) -> None:
    """Add a table for the effects of each delivery."""
    for statement in DELIVERY_OUTCOMES:
        db.execute(statement)


@migrations()
def version_6(db: Database) -> None:
    """Add the tables for people's sign-in."""
    for statement in PEOPLE:
        db.execute(statement)


@migrations()
def version_7(db: Database) -> None:
    """Allow sessions without an issue, and several sessions of one issue."""
    rebuild_sessions(db)
    for statement in ORIGINS:
        db.execute(statement)


@migrations()
def version_8(db: Database) -> None:
    """Add the cost of each model over time."""
    for statement in COSTS_OVER_TIME:
        db.execute(statement)


@migrations()
def version_9(db: Database) -> None:
    """Add the cost of the tokens that the model proxy counted."""
    for statement in METERED_COSTS:
        db.execute(statement)
