"""Repositories that are renamed or archived."""

from bot.store import RefreshRequest, RepositoryRecord, Store
from tests.store.conftest import Scenario

WIDGETS = RepositoryRecord(id=7, name="acme/widgets", current_name="acme/widgets")


def test_rows_of_a_repository_follow_its_new_configured_name(
    scenario: Scenario, store: Store
) -> None:
    store.repositories.record(WIDGETS, scenario.clock())
    name = scenario.session(12)
    store.refreshes.request(
        [RefreshRequest(repository="acme/widgets", subject="issue:12")], scenario.clock()
    )
    renamed = RepositoryRecord(id=7, name="acme/gadgets", current_name="acme/gadgets")
    store.repositories.record(renamed, scenario.clock())
    assert store.repositories.all() == [renamed]
    assert store.sessions.of_issue("acme/gadgets", 12) == name
    assert store.sessions.of_issue("acme/widgets", 12) is None
    assert [one.repository for one in store.refreshes.due(scenario.clock(), ("issue:",))] == [
        "acme/gadgets"
    ]


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
