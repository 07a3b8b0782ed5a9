"""Frequent queries use indexes."""

import importlib
import pkgutil
import re
import sqlite3

import pytest

import bot.store
from bot.store import Store

STATEMENTS = {
    f"{module.name}.{name}": statement
    for module in pkgutil.iter_modules(bot.store.__path__)
    for name, statement in vars(importlib.import_module(f"bot.store.{module.name}")).items()
    if isinstance(statement, str)
    and statement.startswith(("SELECT", "UPDATE", "DELETE"))
    and "{" not in statement
}
# Lists of all sessions read all of them.
FULL_SCANS = {
    "slots.RECORDS",
    "slots.HANDOVERS",
    "slots.MESSAGES",
    "sessions.ALL",
    "sessions.OWNERS",
    "statistics.USAGE",
    "statistics.REFRESHES",
    "usage._ROWS",
    "usage._COUNT",
}
TABLES = (
    "deliveries|refreshes|sessions|session_pulls|commands|outbox|slots|history|decision_records|usage|model_usage|handovers|metadata|refused_hosts"
    "|first|earlier|delivery_outcomes|p|s"
)


def plan(store: Store, name: str) -> list[str]:
    """The steps in which SQLite would run a statement."""
    statement = STATEMENTS[name]
    named = set(re.findall(r":(\w+)", statement))
    numbered = [int(number) for number in re.findall(r"\?(\d)", statement)]
    places = max(numbered) if numbered else statement.count("?")
    values = dict.fromkeys(named) if named else (None,) * places

    def explain(connection: sqlite3.Connection) -> list[str]:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        return [row["detail"] for row in rows]

    return store.db.write(explain)


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - FULL_SCANS))
def test_a_query_scans_no_table(store: Store, name: str) -> None:
    steps = plan(store, name)
    # A partial index holds only the few rows that wait: reading all of it is what we want.
    assert not [step for step in steps if re.fullmatch(rf"SCAN ({TABLES})", step)], steps


def test_a_commit_is_found_by_an_index_on_its_sha(store: Store) -> None:
    steps = plan(store, "sessions.BY_SHA")
    assert len([step for step in steps if "head=?" in step]) == 2, steps


def test_the_statements_were_found() -> None:
    assert {"sessions.DUE", "outbox.DUE_ACTIONS", "sessions.BY_SHA"} <= STATEMENTS.keys()
