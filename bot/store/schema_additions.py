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
