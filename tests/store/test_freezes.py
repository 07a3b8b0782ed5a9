"""Freezes of everything, of a project and of a session."""

import pytest

from bot.store import Freeze, Store
from lifecycle.model.facts import Frozen
from tests.store.conftest import Scenario


@pytest.fixture
def name(scenario: Scenario) -> str:
    name = scenario.session(12)
    scenario.decides(name, recheck_at=None)
    return name


@pytest.mark.parametrize(
    ("scope", "kind"),
    [("", "all"), ("project:widgets", "project"), ("session:widgets-12", "session")],
)
def test_a_freeze_is_a_fact_and_wakes_its_sessions(
    scenario: Scenario, store: Store, name: str, scope: str, kind: str
) -> None:
    assert store.freezes.add(scope, "ada")
    assert store.sessions.due(scenario.now) == [name]
    assert store.facts.get(name).frozen == Frozen(scope=kind, by="ada", at=scenario.now)
    assert store.freezes.all() == [Freeze(scope=scope, by="ada", at=scenario.now)]
    scenario.decides(name, recheck_at=None)
    assert store.freezes.remove(scope, "ada")
    assert store.sessions.due(scenario.now) == [name]
    assert store.facts.get(name).frozen is None


@pytest.mark.parametrize("scope", ["project:gadgets", "session:widgets-1", "widgets", "project:"])
def test_a_freeze_does_not_apply_outside_its_scope(
    scenario: Scenario, store: Store, name: str, scope: str
) -> None:
    store.freezes.add(scope, "ada")
    assert store.sessions.due(scenario.now) == []
    assert store.facts.get(name).frozen is None


def test_the_widest_freeze_is_the_fact_and_each_is_removed_alone(store: Store, name: str) -> None:
    for scope in ("session:widgets-12", "project:widgets", ""):
        store.freezes.add(scope, "ada")
    for scope, kind in (("", "all"), ("project:widgets", "project")):
        frozen = store.facts.get(name).frozen
        assert frozen is not None
        assert frozen.scope == kind
        store.freezes.remove(scope, "ada")
    frozen = store.facts.get(name).frozen
    assert frozen is not None
    assert frozen.scope == "session"


def test_a_second_freeze_of_a_scope_changes_nothing(
    scenario: Scenario, store: Store, name: str
) -> None:
    store.freezes.add("", "ada")
    scenario.decides(name, recheck_at=None)
    scenario.clock.passes(60)
    assert not store.freezes.add("", "bob")
    assert store.sessions.due(scenario.now) == []
    assert store.freezes.all()[0].by == "ada"
    assert not store.freezes.remove("project:widgets", "ada")


def test_listeners_are_called_for_a_freeze(store: Store, name: str) -> None:
    announced: list[str] = []
    store.on_change.append(announced.append)
    store.freezes.add("", "ada")
    assert announced == [name]
