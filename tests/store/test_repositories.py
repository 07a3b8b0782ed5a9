"""Repositories that are renamed or archived."""

import sqlite3
from functools import partial

from bot.store import (
    Configuration,
    InstalledProject,
    Observation,
    Outsider,
    ProcessedDelivery,
    RefreshRequest,
    RepositoryRecord,
    Store,
)
from bot.store.usage import keep_in_ledger
from lifecycle.model import keys
from lifecycle.model.actions import ReportConfiguration
from lifecycle.model.facts import Agent, Pull, Usage
from tests.store.conftest import REPOSITORY, Scenario

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1"
WIDGETS = RepositoryRecord(id=7, name="acme/widgets", current_name="acme/widgets")


def names(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the names in the column `repository` of each table that has one."""
    tables = [row[0] for row in connection.execute(_TABLES)]
    found = {}
    for table in tables:
        columns = [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]
        if "repository" in columns:
            rows = connection.execute(f"SELECT DISTINCT repository FROM {table}")
            found[table] = [row[0] for row in rows]
    return found


def test_every_row_of_a_repository_follows_its_new_configured_name(
    scenario: Scenario, store: Store
) -> None:
    now = scenario.now
    store.repositories.record(WIDGETS, now)
    name = scenario.session(12)
    store.commands.add(scenario.command())
    store.refreshes.request([RefreshRequest(repository=REPOSITORY, subject="issue:12")], now)
    used = Agent(run=1, usage=Usage(output=5, cost_usd=1.5))
    pulls = (Pull(number=34, head="feed"),)
    store.observations.record([Observation(session=name, agent=used, pulls=pulls)], now)
    store.outsiders.add(Outsider(repository=REPOSITORY, issue=12, login="eve", number=12), now)
    report = ReportConfiguration(
        key=keys.report_configuration("feed", "b"), head="feed", path="p", problems=()
    )
    store.configurations.set(Configuration(repository=REPOSITORY, blob="b"), [report])
    for leader in ("former", "second"):
        store.lease.acquire(leader, now, 0)

    store.db.write(partial(keep_in_ledger, session=name))
    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_all_done([ProcessedDelivery("a", repository=REPOSITORY)])

    before = store.db.write(names)
    assert before == {table: [REPOSITORY] for table in before}, "every table has a row"
    renamed = RepositoryRecord(id=7, name="acme/gadgets", current_name="acme/gadgets")
    store.repositories.record(renamed, now)
    assert store.repositories.all() == [renamed]
    assert store.sessions.of_subject("acme/gadgets", "issue:12") == name
    after = store.db.write(names)
    assert after == {table: ["acme/gadgets"] for table in before}


def test_archiving_a_repository_is_a_fact_and_wakes_its_sessions(
    scenario: Scenario, store: Store
) -> None:
    store.repositories.record(WIDGETS, scenario.clock())
    name = scenario.session(12)
    assert not store.facts.get(name).archived
    scenario.decides(name)
    assert store.sessions.due(scenario.clock(), 9) == []
    archived = RepositoryRecord(
        id=7, name="acme/widgets", current_name="acme/widgets", archived=True
    )
    store.repositories.record(archived, scenario.clock())
    assert store.sessions.due(scenario.clock(), 9) == [name]
    assert store.facts.get(name).archived


def test_an_unchanged_repository_wakes_no_session(scenario: Scenario, store: Store) -> None:
    store.repositories.record(WIDGETS, scenario.clock())
    name = scenario.session(12)
    scenario.decides(name)
    store.repositories.record(WIDGETS, scenario.clock())
    assert store.sessions.due(scenario.clock(), 9) == []


def test_a_name_belongs_to_one_repository_at_a_time(scenario: Scenario, store: Store) -> None:
    store.repositories.record(WIDGETS, scenario.clock())
    other = RepositoryRecord(id=8, name="acme/widgets", current_name="acme/widgets")
    store.repositories.record(other, scenario.clock())
    assert (
        store.repositories.all(),
        store.repositories.get(7),
        store.repositories.named("acme/widgets"),
    ) == (
        *([other], None),
        other,
    )


def test_the_projects_of_installations_are_kept_with_the_removed_ones(store: Store) -> None:
    gears = InstalledProject(id=1, name="acme/gears", project="gears", removed=True)
    wheels = InstalledProject(id=2, name="acme/wheels", project="wheels")
    store.installed.replace([gears, wheels])
    assert store.installed.all() == [gears, wheels]
    assert store.installed.projects() == {"wheels": "acme/wheels"}
    store.installed.replace([wheels])
    assert store.installed.all() == [wheels]
