"""What people remember about a session, and what is wrong with the whole."""

from pathlib import Path

import pytest

from bot.store import Incident, Store, StoreFailure
from tests.store.conftest import Room


def test_metadata_is_set_changed_and_forgotten(room: Room, store: Store) -> None:
    name, other = room.session(12), room.session(13)
    store.metadata.set(name, {"team": "core", "ticket": "W-1"})
    store.metadata.set(name, {"team": "ui", "ticket": ""})
    store.metadata.set(other, {"team": "docs"})
    assert store.metadata.of(name) == {"team": "ui"}
    assert [session.metadata for session in store.sessions.all()] == [
        {"team": "docs"},
        {"team": "ui"},
    ]
    assert store.metadata.of("nobody-1") == {}


def test_metadata_of_nobody_is_an_error_that_names_them(store: Store) -> None:
    with pytest.raises(StoreFailure, match=r"nobody-1.*mergewright ls"):
        store.metadata.set("nobody-1", {"team": "core"})


def test_listeners_hear_of_metadata(room: Room, store: Store) -> None:
    name = room.session(12)
    heard: list[str] = []
    store.on_change.append(heard.append)
    store.metadata.set(name, {"team": "core"})
    assert heard == [name]


def test_an_incident_stands_until_it_is_cleared(room: Room, store: Store) -> None:
    begun = room.now
    assert store.incidents.report("many-lost", "6 of 8 programs vanished", room.now)
    room.clock.passes(5)
    assert not store.incidents.report("many-lost", "7 of 8 programs vanished", room.now)
    (standing,) = store.incidents.current()
    assert standing == Incident(key="many-lost", since=begun, text="7 of 8 programs vanished")
    assert store.incidents.clear("many-lost", room.now)
    assert not store.incidents.clear("many-lost", room.now)
    assert store.incidents.current() == []
    assert store.incidents.recent()[0].cleared_at == room.now


def test_an_incident_may_come_back(room: Room, store: Store) -> None:
    for _ in range(2):
        assert store.incidents.report("disk", "it is full", room.now)
        assert store.incidents.clear("disk", room.now)
    assert store.incidents.report("disk", "it is full", room.now)
    assert len(store.incidents.recent()) == 3


def test_an_incident_that_goes_on_writes_nothing(
    room: Room, store: Store, path: Path, statements: list[str]
) -> None:
    store.incidents.report("disk", "it is full", room.now)
    statements.clear()
    store.incidents.report("disk", "it is full", room.now)
    store.incidents.clear("other", room.now)
    assert statements == []
