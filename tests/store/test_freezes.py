"""A person may stop every effect: everywhere, of a project, of a session."""

import pytest

from bot.store import Freeze, Store
from lifecycle.model.facts import Frozen
from tests.store.conftest import Room


@pytest.fixture
def name(room: Room) -> str:
    name = room.session(12)
    room.decides(name, recheck_at=None)
    return name


@pytest.mark.parametrize(
    ("scope", "said"),
    [("", "all"), ("project:widgets", "project"), ("session:widgets-12", "session")],
)
def test_a_freeze_is_a_fact_and_a_reason_for_a_visit(
    room: Room, store: Store, name: str, scope: str, said: str
) -> None:
    assert store.freezes.add(scope, "ada")
    assert store.sessions.due(room.now) == [name]
    assert store.facts.get(name).frozen == Frozen(scope=said, by="ada", at=room.now)
    assert store.freezes.all() == [Freeze(scope=scope, by="ada", at=room.now)]
    room.decides(name, recheck_at=None)
    assert store.freezes.remove(scope, "ada")
    assert store.sessions.due(room.now) == [name]
    assert store.facts.get(name).frozen is None


@pytest.mark.parametrize("scope", ["project:gadgets", "session:widgets-1", "widgets", "project:"])
def test_a_freeze_elsewhere_holds_nobody_here(
    room: Room, store: Store, name: str, scope: str
) -> None:
    store.freezes.add(scope, "ada")
    assert store.sessions.due(room.now) == []
    assert store.facts.get(name).frozen is None


def test_the_widest_freeze_is_told_and_each_is_lifted_alone(store: Store, name: str) -> None:
    for scope in ("session:widgets-12", "project:widgets", ""):
        store.freezes.add(scope, "ada")
    for scope, said in (("", "all"), ("project:widgets", "project")):
        frozen = store.facts.get(name).frozen
        assert frozen is not None
        assert frozen.scope == said
        store.freezes.remove(scope, "ada")
    frozen = store.facts.get(name).frozen
    assert frozen is not None
    assert frozen.scope == "session"


def test_freezing_twice_is_the_freeze_of_the_first(room: Room, store: Store, name: str) -> None:
    store.freezes.add("", "ada")
    room.decides(name, recheck_at=None)
    room.clock.passes(60)
    assert not store.freezes.add("", "bob")
    assert store.sessions.due(room.now) == []
    assert store.freezes.all()[0].by == "ada"
    assert not store.freezes.remove("project:widgets", "ada")


def test_listeners_hear_of_a_freeze(store: Store, name: str) -> None:
    heard: list[str] = []
    store.on_change.append(heard.append)
    store.freezes.add("", "ada")
    assert heard == [name]
