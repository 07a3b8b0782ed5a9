"""The statements of the schema's versions 3 and later, which `bot.store.schema` executes."""

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
    # login: empty with the page's token. user: GitHub's ID. renews: when the next cookie is due.
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
