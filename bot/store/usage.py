"""What agents used, by session, run and UTC day; and what that comes to.

A run is counted twice: by its program, in its files, and by our door to the models, as answers
pass. Both begin at nothing and grow, and either may see less than the other. Whichever has counted
more tokens is right, and of as many the one that speaks last; nothing of the one is ever added to
what the other counts.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.rows import Row
from bot.store.values import UsageTotal
from bot.store.wake import wake, wake_siblings
from lifecycle.model.facts import Agent, Spending, Usage
from lifecycle.model.status import Activity

#: Sessions of a repository hear of its day's cost each time it passes a multiple of this: those
#: that spend are visited anyway, and the others only have to know roughly.
STEP_USD = 0.25

_KINDS = ("input", "output", "cache_read", "cache_write", "reasoning", "cost_usd", "unpriced")
COUNTED = """SELECT coalesce(sum(input), 0) AS input, coalesce(sum(output), 0) AS output,
        coalesce(sum(cache_read), 0) AS cache_read, coalesce(sum(cache_write), 0) AS cache_write,
        coalesce(sum(reasoning), 0) AS reasoning, coalesce(sum(cost_usd), 0.0) AS cost_usd,
        coalesce(sum(unpriced), 0) AS unpriced, coalesce(sum(tokens), 0) AS tokens
    FROM usage WHERE session = ? AND run = ?"""
_ADD = """INSERT INTO usage (session, run, day, repository, active_seconds,
        input, output, cache_read, cache_write, reasoning, cost_usd, unpriced)
    SELECT id, :run, :day, repository, :active_seconds,
        :input, :output, :cache_read, :cache_write, :reasoning, :cost_usd, :unpriced
    FROM sessions WHERE id = :session
    ON CONFLICT (session, run, day) DO UPDATE SET
        active_seconds = active_seconds + excluded.active_seconds,
        input = input + excluded.input, output = output + excluded.output,
        cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write,
        reasoning = reasoning + excluded.reasoning, cost_usd = cost_usd + excluded.cost_usd,
        unpriced = unpriced + excluded.unpriced"""
OF_DAY = """SELECT coalesce(sum(cost_usd), 0.0) AS cost_usd, coalesce(sum(tokens), 0) AS tokens,
        coalesce(sum(unpriced), 0) AS unpriced,
        coalesce(sum(active_seconds), 0.0) AS active_seconds
    FROM usage WHERE repository = ? AND day = ?"""
OF_DAY_BEFORE = """SELECT coalesce(sum(cost_usd), 0.0) AS cost_usd FROM usage
    WHERE day = ?1 AND repository = (SELECT repository FROM sessions WHERE id = ?2)"""
OF_SESSIONS = """SELECT session, run, sum(cost_usd) AS cost_usd, sum(tokens) AS tokens,
        sum(unpriced) AS unpriced, sum(active_seconds) AS active_seconds
    FROM usage WHERE session IN (SELECT value FROM json_each(?)) GROUP BY session, run"""

#: What it may be summed up by: how each is called, and in which order they come.
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "session": ("usage.session", "min(created) DESC"),
    "run": ("usage.session || '_r' || usage.run", "min(created) DESC, usage.run"),
    "agent": ("agent_name", "1"),
    "issue": ("usage.repository || '#' || number", "min(created) DESC"),
    "repository": ("usage.repository", "1"),
    "day": ("day", "1 DESC"),
}
_SUMS = """SELECT {name} AS name, count(DISTINCT usage.session) AS sessions,
        sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read,
        sum(cache_write) AS cache_write, sum(reasoning) AS reasoning, sum(unpriced) AS unpriced,
        sum(cost_usd) AS cost_usd, sum(active_seconds) AS active_seconds
    FROM usage JOIN sessions ON sessions.id = usage.session
    WHERE ?1 = '' OR usage.session = ?1 GROUP BY 1 ORDER BY {order}"""
_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
_ADD_RESPONSE = """INSERT INTO answers (
        session, run, model, input, output, cache_read, cache_write, reasoning)
    VALUES (:session, :run, :model, :input, :output, :cache_read, :cache_write, :reasoning)
    ON CONFLICT (session, run, model) DO UPDATE SET
        input = input + excluded.input, output = output + excluded.output,
        cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write,
        reasoning = reasoning + excluded.reasoning"""
MODELS_OF_RUN = """SELECT model, input, output, cache_read, cache_write, reasoning FROM answers
    WHERE session = ? AND run = ?"""
_NOTHING = Spending()


class UsageTable(StoreTable):
    """Tokens, dollars and active seconds of runs."""

    def totals(self, by: str, session: str = "") -> list[UsageTotal]:
        """What was used, by one of GROUPS; of one session or, without a name, of all."""
        name, order = GROUPS[by]
        with self._db.read() as connection:
            rows = connection.execute(_SUMS.format(name=name, order=order), (session,)).fetchall()
        return [UsageTotal(**dict(row)) for row in rows]

    def record_response(
        self, session: str, run: int, model: str, used: Usage, priced: Callable[[Usage], Usage]
    ) -> None:
        """Add what one answer used to what the door counted of its run, and visit the session.

        `priced` puts a price on all of the run.
        """
        values = {kind: getattr(used, kind) for kind in _TOKENS}
        values |= {"session": session, "run": run, "model": model}

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD_RESPONSE, values)
            rows = connection.execute(MODELS_OF_RUN, (session, run)).fetchall()
            models = {row["model"]: Usage(**{kind: row[kind] for kind in _TOKENS}) for row in rows}
            total = {kind: sum(row[kind] for row in rows) for kind in _TOKENS}
            now = self._db.clock()
            add_run_usage(connection, session, run, priced(Usage(**total, models=models)), now)
            wake(connection, session, now)

        self._db.write(work)
        self._db.announce([session])


def day_of(now: datetime) -> str:
    """The UTC day a time lies in, as the table has it."""
    return now.astimezone(UTC).date().isoformat()


def add_agent_usage(
    connection: sqlite3.Connection, session: str, before: Agent, agent: Agent, now: datetime
) -> None:
    """Inside a transaction that replaces `before` by `agent`: add what was used in between.

    A turn counts, on the day of its end, in the very transaction that takes its activity off the
    session, so it counts once.
    """
    turned = _turned(before, agent, now)
    known = agent.usage == Usage() or (agent.run == before.run and agent.usage == before.usage)
    if turned or not known:
        add_run_usage(connection, session, agent.run, agent.usage, now, turned)


def add_run_usage(
    connection: sqlite3.Connection,
    session: str,
    run: int,
    usage: Usage,
    now: datetime,
    turned: float = 0.0,
) -> None:
    """Inside a transaction: add what a run used beyond what is counted of it, and active seconds.

    `usage` is all of the run so far, so what the table has of that run is taken off. Tokens without
    a price may become fewer, and dollars too, because some are told before their price is.
    """
    more = _beyond(usage, connection.execute(COUNTED, (session, run)).fetchone())
    if not turned and not any(more.values()):
        return
    day = day_of(now)
    values = {"session": session, "run": run, "day": day, "active_seconds": turned, **more}
    spent = connection.execute(OF_DAY_BEFORE, (day, session)).fetchone()["cost_usd"]
    connection.execute(_ADD, values)
    if spent // STEP_USD != (spent + more["cost_usd"]) // STEP_USD:
        wake_siblings(connection, session, now)


def _beyond(usage: Usage, counted: Row) -> dict[str, float]:
    """What one count of a run has more, by kind, than is counted of it already."""
    if usage.tokens < counted["tokens"]:
        return dict.fromkeys(_KINDS, 0)
    priced = counted["tokens"] - counted["unpriced"]
    if usage.tokens - usage.unpriced < priced:  # It knows the price of less.
        usage = replace(usage, cost_usd=counted["cost_usd"], unpriced=usage.tokens - priced)
    return {kind: (getattr(usage, kind) or 0) - counted[kind] for kind in _KINDS}


def _turned(before: Agent, agent: Agent, now: datetime) -> float:
    """The seconds of a turn that has ended since `before` was seen; 0: none has."""
    if before.activity is not Activity.ACTIVE or before.since is None or before.run != agent.run:
        return 0.0
    if agent.activity is Activity.ACTIVE and agent.since == before.since:
        return 0.0
    # A program that was stopped keeps the time its last turn began at.
    ended = now if agent.since is None or agent.since <= before.since else min(agent.since, now)
    return max(0.0, (ended - before.since).total_seconds())


def spending(rows: Iterable[Row], first_run: int = 0) -> Spending:
    """What runs came to, from `first_run` on; rows as `OF_SESSIONS` has them."""
    counted = [row for row in rows if row["run"] >= first_run]
    if not counted:
        return _NOTHING
    return Spending(
        cost_usd=sum(row["cost_usd"] for row in counted),
        tokens=sum(row["tokens"] for row in counted),
        unpriced=sum(row["unpriced"] for row in counted),
        active_seconds=sum(row["active_seconds"] for row in counted),
    )


def spent_on_day(connection: sqlite3.Connection, repository: str, day: str) -> Spending:
    """What all sessions of a repository used on a day."""
    row = connection.execute(OF_DAY, (repository, day)).fetchone()
    return Spending(
        cost_usd=row["cost_usd"],
        tokens=row["tokens"],
        unpriced=row["unpriced"],
        active_seconds=row["active_seconds"],
    )
