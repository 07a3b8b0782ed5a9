"""A repository is its number: what is kept of it goes along with its configured name."""

from bot.store import RefreshRequest, RepositoryRecord, Store
from tests.store.conftest import Room

WIDGETS = RepositoryRecord(id=7, name="acme/widgets", current_name="acme/widgets")


def test_what_is_kept_of_a_repository_goes_along_with_a_new_configured_name(
    room: Room, store: Store
) -> None:
    store.repositories.record(WIDGETS, room.clock())
    name = room.session(12)
    store.refreshes.request(
        [RefreshRequest(repository="acme/widgets", subject="issue:12")], room.clock()
    )
    renamed = RepositoryRecord(id=7, name="acme/gadgets", current_name="acme/gadgets")
    store.repositories.record(renamed, room.clock())
    assert store.repositories.all() == [renamed]
    assert store.sessions.of_issue("acme/gadgets", 12) == name
    assert store.sessions.of_issue("acme/widgets", 12) is None
    assert [one.repository for one in store.refreshes.due(room.clock(), ("issue:",))] == [
        "acme/gadgets"
    ]


def test_sessions_of_a_repository_that_is_archived_are_visited_and_know_it(
    room: Room, store: Store
) -> None:
    store.repositories.record(WIDGETS, room.clock())
    name = room.session(12)
    assert not store.facts.get(name).archived
    room.decides(name)
    assert store.sessions.due(room.clock(), 9) == []
    archived = RepositoryRecord(
        id=7, name="acme/widgets", current_name="acme/widgets", archived=True
    )
    store.repositories.record(archived, room.clock())
    assert store.sessions.due(room.clock(), 9) == [name]
    assert store.facts.get(name).archived


def test_where_nothing_changed_nobody_is_visited(room: Room, store: Store) -> None:
    store.repositories.record(WIDGETS, room.clock())
    name = room.session(12)
    room.decides(name)
    store.repositories.record(WIDGETS, room.clock())
    assert store.sessions.due(room.clock(), 9) == []


def test_a_name_belongs_to_one_repository_at_a_time(room: Room, store: Store) -> None:
    store.repositories.record(WIDGETS, room.clock())
    other = RepositoryRecord(id=8, name="acme/widgets", current_name="acme/widgets")
    store.repositories.record(other, room.clock())
    assert (
        store.repositories.all(),
        store.repositories.get(7),
        store.repositories.named("acme/widgets"),
    ) == (
        *([other], None),
        other,
    )
