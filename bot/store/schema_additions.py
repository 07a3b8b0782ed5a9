"""The statements of the schema's versions 2 and later, which `bot.store.schema` executes."""

from sqlite_utils import Database

LEDGER = (
    # The usage of deleted sessions, by agent and day. created: when the session was created.
    """CREATE TABLE ledger (
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        day TEXT NOT NULL,
        repository TEXT NOT NULL,
        number INTEGER NOT NULL,
        requester TEXT NOT NULL,
        created REAL NOT NULL,
        cost_usd REAL NOT NULL,
        active_seconds REAL NOT NULL,
        input INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        reasoning INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        PRIMARY KEY (session, agent, day)
    ) STRICT, WITHOUT ROWID""",
    # All usage, of deleted sessions too. run: `SESSION_rRUN`; of a deleted session, only its id.
    """CREATE VIEW all_usage AS
        SELECT session, session || '_r' || usage.run AS run, usage.agent, day, usage.repository,
            number, usage.run AS run_number, created, cost_usd, active_seconds, input, output,
            cache_read, cache_write, reasoning, unpriced
        FROM usage JOIN sessions ON sessions.id = session
        UNION ALL SELECT session, session, agent, day, repository, number, 0, created, cost_usd,
            active_seconds, input, output, cache_read, cache_write, reasoning, unpriced
        FROM ledger""",
    "CREATE INDEX commands_refused ON commands (at) WHERE state = 'refused'",
    # For counts, which then read no large columns.
    "CREATE INDEX sessions_status ON sessions (project, status)",
    "CREATE INDEX outbox_failed ON outbox (session) WHERE state = 'failed'",
)
NOTIFICATIONS = (
    "ALTER TABLE sessions ADD COLUMN cause TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX sessions_cause ON sessions (cause) WHERE cause <> ''",
    "CREATE INDEX sessions_ended ON sessions (ended ->> 'at') WHERE ended IS NOT NULL",
    # session: empty if the message concerns the whole bot. event: a `raised` cause lasts until
    # gone_at, one of `once` has no end. attempting: an attempt to send has begun and not ended.
    """CREATE TABLE notifications (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        notifier TEXT NOT NULL, session TEXT NOT NULL, cause TEXT NOT NULL,
        event TEXT NOT NULL CHECK (event IN ('raised', 'resolved', 'once')),
        state TEXT NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'sent', 'failed')),
        attempting INTEGER NOT NULL DEFAULT 0 CHECK (attempting IN (0, 1)),
        next_at REAL NOT NULL, created REAL NOT NULL, gone_at REAL, done_at REAL,
        error TEXT NOT NULL DEFAULT '', priority TEXT NOT NULL, message TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX notifications_due ON notifications (notifier, next_at) WHERE state = 'due'",
    """CREATE UNIQUE INDEX notifications_raised ON notifications (notifier, session, cause)
        WHERE event = 'raised' AND gone_at IS NULL""",
    """CREATE UNIQUE INDEX notifications_once ON notifications (notifier, session, cause)
        WHERE event = 'once'""",
    "CREATE INDEX notifications_done_at ON notifications (done_at) WHERE done_at IS NOT NULL",
)
PERSONS = (
    # The view of version 2, with the person who requested the session.
    "DROP VIEW all_usage",
    """CREATE VIEW all_usage AS
        SELECT session, session || '_r' || usage.run AS run, usage.agent, day, usage.repository,
            usage.requester, number, usage.run AS run_number, created, cost_usd, active_seconds,
            input, output, cache_read, cache_write, reasoning, unpriced
        FROM usage JOIN sessions ON sessions.id = session
        UNION ALL SELECT session, session, agent, day, repository, requester, number, 0, created,
            cost_usd, active_seconds, input, output, cache_read, cache_write, reasoning, unpriced
        FROM ledger""",
)
DELIVERY_OUTCOMES = (
    # The effects of a processed delivery. repository: the one that it names. ignored: why it has no
    # effects. at: when the delivery arrived.
    """CREATE TABLE delivery_outcomes (
        delivery TEXT PRIMARY KEY REFERENCES deliveries (id) ON DELETE CASCADE,
        repository TEXT NOT NULL,
        at REAL NOT NULL,
        ignored TEXT NOT NULL,
        effects TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX delivery_outcomes_repository ON delivery_outcomes (repository, at)",
    # Covers lists of deliveries, so that they read no bodies.
    "CREATE INDEX deliveries_at ON deliveries (at, id, event, state)",
)
PEOPLE = (
    # Cookies of signed-in browsers, by their SHA-256. first: that of the sign-in's first cookie.
    # login: empty with the page token. user: GitHub's ID. renews: when the next cookie is due.
    # ends: when a replaced cookie ends.
    """CREATE TABLE sign_ins (
        hash TEXT PRIMARY KEY,
        first TEXT NOT NULL,
        login TEXT NOT NULL,
        user INTEGER NOT NULL,
        created REAL NOT NULL,
        seen REAL NOT NULL,
        renews REAL NOT NULL,
        used INTEGER NOT NULL CHECK (used IN (0, 1)),
        ends REAL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX sign_ins_first ON sign_ins (first)",
    """CREATE TABLE personal_tokens (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        hash TEXT NOT NULL UNIQUE,
        login TEXT NOT NULL,
        user INTEGER NOT NULL,
        name TEXT NOT NULL,
        scope TEXT NOT NULL,
        created REAL NOT NULL,
        expires REAL NOT NULL,
        used REAL
    ) STRICT""",
)
ORIGINS = (
    "CREATE INDEX sessions_issue ON sessions (repository, number)",
    # spawn: what a start command gave for a new session, with the session's id.
    "ALTER TABLE commands ADD COLUMN spawn TEXT",
    # addressee: the session that a command names.
    "ALTER TABLE commands ADD COLUMN addressee TEXT NOT NULL DEFAULT ''",
    """CREATE UNIQUE INDEX commands_spawn ON commands (spawn ->> 'session')
        WHERE spawn IS NOT NULL""",
)

COSTS_OVER_TIME = (
    # What a run used of a model in the ten minutes from `at`.
    """CREATE TABLE usage_steps (
        session TEXT NOT NULL REFERENCES sessions (id),
        run INTEGER NOT NULL,
        model TEXT NOT NULL,
        at INTEGER NOT NULL,
        cost_usd REAL NOT NULL,
        tokens INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        PRIMARY KEY (session, run, model, at)
    ) STRICT, WITHOUT ROWID""",
)

METERED_COSTS = (
    # metered_usd: the cost of these tokens; 0: no price is known.
    "ALTER TABLE model_usage ADD COLUMN metered_usd REAL NOT NULL DEFAULT 0",
)


def rebuild_sessions(db: Database) -> None:
    """Allow several sessions for an issue, and sessions without one, whose issue number is 0.

    In SQLite, a constraint can only be removed by making its table again, with foreign keys not
    enforced:
    https://www.sqlite.org/lang_altertable.html#otheralter

    The rows wait in memory meanwhile, so that the new table takes the pages of the old one. The new
    columns are `origin`, what a session was opened for, and `budget_usd`, the budget that the
    session got at its start, or 0.
    """
    columns = ", ".join(row[1] for row in db.execute("PRAGMA table_info(sessions)"))
    schema = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    views = db.execute(f"{schema} AND type = 'view'").fetchall()
    (table,) = db.execute(f"{schema} AND type = 'table' AND name = 'sessions'").fetchall()
    indexes = db.execute(f"{schema} AND type = 'index' AND tbl_name = 'sessions'").fetchall()
    for view in views:
        db.execute(f"DROP VIEW {view[1]}")
    db.execute(f"CREATE TEMP TABLE kept AS SELECT {columns} FROM sessions ORDER BY rowid")
    db.execute("DROP TABLE sessions")
    # New columns come before the large ones; see `bot.store.schema`.
    db.execute(
        table[2]
        .replace("        UNIQUE (repository, number),\n", "")
        .replace(
            "        priority INTEGER",
            """        origin TEXT NOT NULL DEFAULT 'issue',
        budget_usd REAL NOT NULL DEFAULT 0,
        priority INTEGER""",
        )
    )
    db.execute(f"INSERT INTO sessions ({columns}) SELECT {columns} FROM temp.kept ORDER BY rowid")
    db.execute("DROP TABLE temp.kept")
    for _, _, sql in (*indexes, *views):
        db.execute(sql)
