"""Metadata of sessions, and incidents of the whole bot."""

from pathlib import Path

import pytest

from bot.store import Incident, Store, StoreFailure
from tests.store.conftest import Scenario


def test_metadata_is_set_changed_and_removed(scenario: Scenario, store: Store) -> None:
    name, other = scenario.session(12), scenario.session(13)
    store.metadata.set(name, {"team": "core", "ticket": "W-1"}, "ada")
    store.metadata.set(name, {"team": "ui", "ticket": ""}, "ada")
    store.metadata.set(other, {"team": "docs"}, "ada")
    assert store.metadata.of(name) == {"team": "ui"}
    assert [session.metadata for session in store.sessions.all()] == [
        {"team": "docs"},
        {"team": "ui"},
    ]
    assert store.metadata.of("nobody-1") == {}


def test_metadata_of_an_unknown_session_is_an_error_that_names_it(store: Store) -> None:
    with pytest.raises(StoreFailure, match=r"nobody-1.*mergewright ls"):
        store.metadata.set("nobody-1", {"team": "core"}, "ada")


def test_listeners_are_called_for_metadata(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    announced: list[str] = []
    store.on_change.append(announced.append)
    store.metadata.set(name, {"team": "core"}, "ada")
    assert announced == [name]


def test_an_incident_is_current_until_it_is_cleared(scenario: Scenario, store: Store) -> None:
    begun = scenario.now
    assert store.incidents.report("many-lost", "6 of 8 programs vanished", scenario.now)
    scenario.clock.passes(5)
    assert not store.incidents.report("many-lost", "7 of 8 programs vanished", scenario.now)
    (open_incident,) = store.incidents.current()
    assert open_incident == Incident(key="many-lost", since=begun, text="7 of 8 programs vanished")
    assert store.incidents.clear("many-lost", scenario.now)
    assert not store.incidents.clear("many-lost", scenario.now)
    assert store.incidents.current() == []
    assert store.incidents.recent()[0].cleared_at == scenario.now


def test_an_incident_can_be_reported_again_after_it_was_cleared(
    scenario: Scenario, store: Store
) -> None:
    for _ in range(2):
        assert store.incidents.report("disk", "it is full", scenario.now)
        assert store.incidents.clear("disk", scenario.now)
    assert store.incidents.report("disk", "it is full", scenario.now)
    assert len(store.incidents.recent()) == 3


def test_reporting_a_current_incident_again_writes_nothing(
    scenario: Scenario, store: Store, path: Path, statements: list[str]
) -> None:
    store.incidents.report("disk", "it is full", scenario.now)
    statements.clear()
    store.incidents.report("disk", "it is full", scenario.now)
    store.incidents.clear("other", scenario.now)
    assert statements == []
