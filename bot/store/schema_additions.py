"""What versions of the schema after the second one add; see `bot.store.schema`."""

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
    # What followed from a processed delivery. repository: the one that it names. ignored: why
    # nothing followed. at: when the delivery arrived.
    """CREATE TABLE delivery_outcomes (
        delivery TEXT PRIMARY KEY REFERENCES deliveries (id) ON DELETE CASCADE,
        repository TEXT NOT NULL,
        at REAL NOT NULL,
        ignored TEXT NOT NULL,
        effects TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX delivery_outcomes_repository ON delivery_outcomes (repository, at)",
    # So that lists read no bodies.
    "CREATE INDEX deliveries_at ON deliveries (at, id, event, state)",
)
