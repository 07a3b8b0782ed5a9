"""The usage of models by session, run and UTC day, in tokens, dollars and active seconds.

A run's usage may be counted twice: by its program, in its own files, and by the model proxy, from
the responses. Either may miss something. The count with more tokens is used; of equal counts, the
one recorded last. An agent can forge its count, so the cost of the proxy's tokens is the minimum.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from bot.store.database import StoreTable
from bot.store.history import wake, wake_siblings
from bot.store.rows import Row, RowDecoder, columns, encoded
from lifecycle.model.facts import Agent, Spending, Usage
from lifecycle.model.status import Activity

#: When the daily usage of a repository, person or agent crosses a multiple of one of these, the
#: other sessions with the same budget are woken. They need that usage only roughly.
STEPS = {"cost_usd": 0.25, "tokens": 100_000, "active_seconds": 600.0}

#: The length of a step of `usage_steps`, in seconds.
STEP_SECONDS: Final = 600

_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
_KINDS = (*_TOKENS, "cost_usd", "unpriced")
_COUNTED_TOKENS = ("input", "output", "cache_write", "reasoning")  #: Summed up in `usage.tokens`.
_SPENT = ("cost_usd", "tokens", "unpriced", "active_seconds")


def _sums(names: Iterable[str]) -> str:
    return ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in names)


def _added(table: str, names: Iterable[str]) -> str:
    return ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in names)


COUNTED = f"SELECT {_sums((*_KINDS, 'tokens'))} FROM usage WHERE session = ? AND run = ?"
# The agent that had the run: the one before the first handover after it, if there was one.
_ADD = f"""INSERT INTO usage (session, run, day, repository, requester, agent, active_seconds,
        {", ".join(_KINDS)})
    SELECT id, :run, :day, repository, requester,
        coalesce((SELECT before.agent_name FROM handovers AS before
            WHERE before.session = id AND before.run > :run ORDER BY before.run LIMIT 1),
            agent_name),
        :active_seconds, :{", :".join(_KINDS)}
    FROM sessions WHERE id = :session
    ON CONFLICT (session, run, day) DO UPDATE SET {_added("usage", ("active_seconds", *_KINDS))}"""
_OF_DAY = f"SELECT {_sums(_SPENT)} FROM usage WHERE {{}} = ? AND day = ?"
#: Sums up the usage of a repository, a person or an agent on a day, by the column to filter.
OF_DAY = {name: _OF_DAY.format(name) for name in ("repository", "requester", "agent")}
#: Sums up a day's usage of a session's repository, person or agent, by the column of `sessions`.
_OF_DAY_BEFORE = {
    column: f"""SELECT {_sums(STEPS)} FROM usage
        WHERE {name} = (SELECT {column} FROM sessions WHERE id = ?) AND day = ?"""
    for name, column in (("repository",) * 2, ("requester",) * 2, ("agent", "agent_name"))
}
OF_SESSIONS = f"""SELECT session, run, {_sums(_SPENT)}
    FROM usage WHERE session IN (SELECT value FROM json_each(?)) GROUP BY session, run"""

#: What the other sessions of each session's issue used.
BESIDE_SESSIONS = f"""SELECT one.id AS session, {_sums(_SPENT)} FROM sessions AS one
    JOIN sessions AS other ON other.repository = one.repository AND other.number = one.number
    JOIN usage ON usage.session = other.id
    WHERE one.id IN (SELECT value FROM json_each(?)) AND one.number > 0 AND other.id <> one.id
    GROUP BY one.id"""

#: The ways to group usage, each with the SQL expressions of the group's name and of the order.
USAGE_GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "session": ("session", "min(created) DESC"),
    "run": ("run", "min(created) DESC, run_number"),
    "agent": ("agent", "1"),
    "issue": (
        "CASE number WHEN 0 THEN session ELSE repository || '#' || number END",
        "min(created) DESC",
    ),
    "repository": ("repository", "1"),
    "person": ("requester", "1"),
    "day": ("day", "1 DESC"),
}
#: Like the view `all_usage`, without the columns that come from the large rows of `sessions`.
_COLUMNS = f"session, agent, day, repository, requester, active_seconds, {', '.join(_KINDS)}"
_USED = f"(SELECT {_COLUMNS} FROM usage UNION ALL SELECT {_COLUMNS} FROM ledger)"
_AMONG = """WHERE (:session = '' OR session = :session)
        AND (:repositories IS NULL OR repository IN (SELECT value FROM json_each(:repositories)))
        AND (:repository = '' OR repository = :repository)
        AND (:agent = '' OR agent = :agent)
        AND (:person = '' OR lower(requester) = lower(:person))
        AND day >= :first AND (:last = '' OR day <= :last)"""
_SUMS = _sums((*_KINDS, "active_seconds"))
_TOTALS = f"""SELECT {{name}} AS name, count(DISTINCT session) AS sessions, {_SUMS}
    FROM {{source}} {_AMONG} GROUP BY {{name}} ORDER BY {{order}} LIMIT {{limit}}"""
_ROWS = f"""SELECT day, repository, agent, requester AS person, session, {_SUMS}
    FROM {_USED} {_AMONG} GROUP BY day, session, agent ORDER BY day, session, agent"""
_COUNT = f"SELECT count(DISTINCT session) AS sessions FROM {_USED} {_AMONG}"
_TO_LEDGER = f"""INSERT INTO ledger (session, agent, day, repository, number, requester, created,
        active_seconds, {", ".join(_KINDS)})
    SELECT session, usage.agent, day, usage.repository, number, usage.requester, created,
        sum(active_seconds), {", ".join(f"sum({kind})" for kind in _KINDS)}
    FROM usage JOIN sessions ON sessions.id = session WHERE session = ?
    GROUP BY usage.agent, day
    ON CONFLICT (session, agent, day)
    DO UPDATE SET {_added("ledger", ("active_seconds", *_KINDS))}"""
_ADD_RESPONSE = f"""INSERT INTO model_usage (session, run, model, {", ".join(_TOKENS)})
    VALUES (:session, :run, :model, :{", :".join(_TOKENS)})
    ON CONFLICT (session, run, model) DO UPDATE SET {_added("model_usage", _TOKENS)}"""
#: What a run used of each model, as far as it is in the table of steps.
STEPS_OF_RUN = """SELECT model, sum(cost_usd) AS cost_usd, sum(tokens) AS tokens,
        sum(unpriced) AS unpriced
    FROM usage_steps WHERE session = ? AND run = ? GROUP BY model"""
_STEP_KINDS = ("cost_usd", "tokens", "unpriced")
_ADD_STEP = f"""INSERT INTO usage_steps (session, run, model, at, {", ".join(_STEP_KINDS)})
    VALUES (:session, :run, :model, :at, :{", :".join(_STEP_KINDS)})
    ON CONFLICT (session, run, model, at) DO UPDATE SET {_added("usage_steps", _STEP_KINDS)}"""
STEPS_OF_SESSION = f"""SELECT model, at, {_sums(_STEP_KINDS)} FROM usage_steps
    WHERE session = ? GROUP BY at, model ORDER BY at, model"""
MODELS_OF_RUN = "SELECT * FROM model_usage WHERE session = ? AND run = ?"
_SET_METERED = "UPDATE model_usage SET metered_usd = ? WHERE session = ? AND run = ? AND model = ?"
_METERED = "SELECT coalesce(sum(metered_usd), 0) FROM model_usage WHERE session = ? AND run = ?"
_NO_SPENDING = Spending()


class UsageFilter(Struct, frozen=True, kw_only=True):
    """Selects the usage to read, including that of deleted sessions. An empty text selects all."""

    repository: str = ""  #: `owner/name`
    agent: str = ""
    person: str = ""  #: Who requested the session; upper and lower case are the same.
    first: str = ""  #: The first UTC day, as in `2030-01-31`.
    last: str = ""  #: The last UTC day.
    #: The repositories to choose from. None for all repositories, including those of former
    #: projects.
    repositories: tuple[str, ...] | None = None


class UsageTotal(Struct, frozen=True, kw_only=True):
    """The usage of one group: a session, run, agent, issue, repository, person or day."""

    name: str  #: The group's name.
    sessions: int
    input: int  #: In tokens, as are the next five.
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    unpriced: int  #: Tokens (not `cache_read`) without a known price; `cost_usd` excludes them.
    cost_usd: float
    active_seconds: float  #: The time in which the agent was active, in turns that have ended.


class UsageRow(Struct, frozen=True, kw_only=True):
    """The usage of one session on one day by one agent."""

    day: str  #: In UTC, as in `2030-01-31`.
    repository: str
    agent: str
    person: str  #: Who requested the session; if empty, nobody.
    session: str
    cost_usd: float
    active_seconds: float
    input: int  #: In tokens, as are the next five.
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    unpriced: int


class UsageStep(Struct, frozen=True, kw_only=True):
    """The change of a session's usage of one model in one interval of `STEP_SECONDS`."""

    model: str  #: If empty, the model is not known.
    at: int  #: The beginning, in seconds since 1970.
    cost_usd: float  #: Like the tokens, negative if an earlier count was corrected downwards.
    tokens: int  #: All but those read from a cache.
    unpriced: int  #: The tokens without a known price.


_EVERYTHING = UsageFilter()
_usage = RowDecoder(Usage, "model_usage", "model")
_spending = RowDecoder(Spending, "usage", "cost_usd")


class UsageTable(StoreTable):
    """Records the usage of runs, and sums it up."""

    def totals(
        self, by: str, session: str = "", among: UsageFilter = _EVERYTHING
    ) -> list[UsageTotal]:
        """Sum up all usage, or only `session`'s if given, grouped by a key of `USAGE_GROUPS`."""
        name, order = USAGE_GROUPS[by]
        source = "all_usage" if by in ("session", "run", "issue") else _USED
        query = _TOTALS.format(name=name, order=order, source=source, limit=-1)
        values = _values(among, session)
        return [UsageTotal(**dict(row)) for row in self._all(query, values)]

    def most(
        self, column: Literal["cost_usd", "unpriced"], among: UsageFilter, limit: int
    ) -> list[UsageTotal]:
        """Return the usage of the `limit` sessions with the highest `column`, highest first."""
        order = f"sum({column}) DESC, session"
        query = _TOTALS.format(name="session", order=order, source=_USED, limit=limit)
        rows = self._all(query, _values(among))
        return [UsageTotal(**dict(row)) for row in rows]

    def sessions(self, among: UsageFilter) -> int:
        """Return how many sessions have usage in this selection."""
        (row,) = self._all(_COUNT, _values(among))
        return int(row["sessions"])

    def rows(self, among: UsageFilter) -> list[UsageRow]:
        """Return usage by day, session and agent, the first day first."""
        rows = self._all(_ROWS, _values(among))
        return [UsageRow(**dict(row)) for row in rows]

    def steps(self, session: str) -> list[UsageStep]:
        """Return a session's usage by interval of time and by model, the first interval first."""
        return [UsageStep(**dict(row)) for row in self._all(STEPS_OF_SESSION, (session,))]

    def record_response(
        self, session: str, run: int, model: str, used: Usage, priced: Callable[[Usage], Usage]
    ) -> None:
        """Add the usage of one response to the proxy's count of a run, and wake the session.

        `used` is the usage of the response. `priced` returns the run's whole usage with its cost,
        computed from the tokens by model.
        """
        values = {**columns(used), "session": session, "run": run, "model": model}

        def work(connection: sqlite3.Connection) -> list[str]:
            connection.execute(_ADD_RESPONSE, values)
            rows = connection.execute(MODELS_OF_RUN, (session, run)).fetchall()
            models = {row["model"]: _usage(row) for row in rows}
            total = {kind: sum(row[kind] for row in rows) for kind in _TOKENS}
            now, usage = self._db.clock(), priced(Usage(**total, models=models))
            metered = usage.models[model].cost_usd or 0.0
            connection.execute(_SET_METERED, (metered, session, run, model))
            add_run_usage(connection, session, run, usage, now)
            wake(connection, session, now)
            return [session]

        self._change(work)


def _values(among: UsageFilter, session: str = "") -> dict[str, object]:
    chosen = among.repositories
    repositories = None if chosen is None else encoded(chosen)
    return {**asdict(among), "session": session, "repositories": repositories}


def keep_in_ledger(connection: sqlite3.Connection, session: str) -> None:
    """Copy a session's usage by agent and day, inside the transaction that deletes the session."""
    connection.execute(_TO_LEDGER, (session,))


def day_of(now: datetime) -> str:
    """Return the UTC day of a time, as in `2030-01-31`."""
    return now.astimezone(UTC).date().isoformat()


def add_agent_usage(
    connection: sqlite3.Connection, session: str, before: Agent, agent: Agent, now: datetime
) -> None:
    """Add the usage between the observations `before` and `agent`, inside their transaction.

    The active seconds of a turn are added in the transaction that records its end, so they count
    once, on the day of that record.
    """
    active_seconds = _ended_turn_seconds(before, agent, now)
    known = agent.usage == Usage() or (agent.run == before.run and agent.usage == before.usage)
    if active_seconds or not known:
        add_run_usage(connection, session, agent.run, agent.usage, now, active_seconds)


def add_run_usage(
    connection: sqlite3.Connection,
    session: str,
    run: int,
    usage: Usage,
    now: datetime,
    active_seconds: float = 0.0,
) -> None:
    """Update a run's counted usage from `usage`, and add active seconds, inside a transaction.

    `usage` is the run's total. Counted tokens never decrease. Counted dollars may, because the
    agent's program and the model proxy may differ in prices. May wake other sessions: see `STEPS`.
    """
    (metered,) = connection.execute(_METERED, (session, run)).fetchone()
    counted = connection.execute(COUNTED, (session, run)).fetchone()
    usage = _costing(usage, metered)
    more = _excess(usage, counted, metered)
    if not active_seconds and not any(more.values()):
        return
    day = day_of(now)
    values = {"session": session, "run": run, "day": day, "active_seconds": active_seconds, **more}
    added = {**values, "tokens": sum(more[kind] for kind in _COUNTED_TOKENS)}
    for column, statement in _OF_DAY_BEFORE.items():
        spent = connection.execute(statement, (session, day)).fetchone()
        if any(
            spent[one] // step != (spent[one] + added[one]) // step for one, step in STEPS.items()
        ):
            wake_siblings(connection, session, column, now)
    connection.execute(_ADD, values)
    if usage.tokens >= counted["tokens"]:
        if any(more.values()):
            _add_steps(connection, session, run, usage, now)
    elif more["cost_usd"]:
        step = {"model": "", "at": _step_of(now), "tokens": 0}  # The rest is in `values`.
        connection.execute(_ADD_STEP, {**values, **step})


def _costing(usage: Usage, metered: float) -> Usage:
    """Return `usage`, with its cost raised to `metered` (USD) if the cost is lower."""
    more = round(metered - (usage.cost_usd or 0.0), 6)
    if more <= 0:
        return usage
    models = dict(usage.models or {"": usage})
    rest = models.get("", Usage())
    models[""] = replace(rest, cost_usd=(rest.cost_usd or 0.0) + more, models={})
    return replace(usage, cost_usd=metered, models=models)


def _add_steps(
    connection: sqlite3.Connection, session: str, run: int, usage: Usage, now: datetime
) -> None:
    """Update the table `usage_steps` so that a run's rows for each model sum up to `usage`.

    The differences are added to the current interval of `STEP_SECONDS`. A model that `usage` lacks
    gets the sum 0: the agent's program and the model proxy may name a run's models differently.
    """
    at = _step_of(now)
    rows = connection.execute(STEPS_OF_RUN, (session, run)).fetchall()
    counted = {row["model"]: dict(row) for row in rows}
    used = usage.models or {"": usage}
    for model in {**counted, **used}:
        before, one = counted.get(model, {}), used.get(model, Usage())
        total = {
            "cost_usd": one.cost_usd or 0.0,
            "tokens": one.tokens,
            "unpriced": one.tokens if one.cost_usd is None else one.unpriced,
        }
        more = {kind: total[kind] - before.get(kind, 0) for kind in _STEP_KINDS}
        if any(more.values()):
            values = {"session": session, "run": run, "model": model, "at": at}
            connection.execute(_ADD_STEP, {**values, **more})


def _step_of(now: datetime) -> int:
    """Return the start of the interval of `usage_steps` that contains a time."""
    return int(now.timestamp()) // STEP_SECONDS * STEP_SECONDS


def _excess(usage: Usage, counted: Row, metered: float) -> dict[str, float]:
    """Return what to add to each kind of a run's `counted` usage to get `usage`.

    If `usage` has fewer tokens, only the cost changes: it is raised to `metered` if it is below.
    """
    if usage.tokens < counted["tokens"]:
        short = max(0.0, round(metered - counted["cost_usd"], 6))
        return {**dict.fromkeys(_KINDS, 0), "cost_usd": short}
    priced = counted["tokens"] - counted["unpriced"]
    if usage.tokens - usage.unpriced < priced:  # This count prices fewer tokens.
        cost = max(counted["cost_usd"], metered)
        usage = replace(usage, cost_usd=cost, unpriced=usage.tokens - priced)
    return {kind: (getattr(usage, kind) or 0) - counted[kind] for kind in _KINDS}


def _ended_turn_seconds(before: Agent, agent: Agent, now: datetime) -> float:
    """Return the length of the turn that ended since `before`, in seconds; 0 if none ended."""
    if before.activity is not Activity.ACTIVE or before.since is None or before.run != agent.run:
        return 0.0
    if agent.activity is Activity.ACTIVE and agent.since == before.since:
        return 0.0
    # A stopped program keeps the time at which its last turn began.
    ended = now if agent.since is None or agent.since <= before.since else min(agent.since, now)
    return max(0.0, (ended - before.since).total_seconds())


def spending(rows: Iterable[Row], first_run: int = 0) -> Spending:
    """Sum up rows of `OF_SESSIONS`, without the runs before `first_run`."""
    counted = [row for row in rows if row["run"] >= first_run]
    if not counted:
        return _NO_SPENDING
    return Spending(**{name: sum(row[name] for row in counted) for name in _SPENT})


def spent_beside(connection: sqlite3.Connection, ids: str) -> dict[str, Spending]:
    """Return, for each session of the JSON list `ids`, what other sessions of its issue used."""
    rows = connection.execute(BESIDE_SESSIONS, (ids,))
    return {row["session"]: _spending(row) for row in rows}


def spent_on_day(connection: sqlite3.Connection, column: str, name: str, day: str) -> Spending:
    """Return the usage of a repository, requester or agent on a day (see `OF_DAY`, `day_of`)."""
    return _spending(connection.execute(OF_DAY[column], (name, day)).fetchone())
