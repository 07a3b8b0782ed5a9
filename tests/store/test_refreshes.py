"""A refresh asks for another look; a refresh during the look asks again."""

from bot.store import RefreshRequest, Store
from tests.store.conftest import Room

ISSUE = RefreshRequest(repository="acme/widgets", subject="issue:12")
PULL = RefreshRequest(repository="acme/widgets", subject="pull:34")
EVERYTHING = ("issue:", "pull:", "branch:", "sha:")


def test_many_refreshes_of_one_thing_are_one_look(room: Room, store: Store) -> None:
    for _ in range(3):
        store.refreshes.request([ISSUE, ISSUE], room.now)
    assert [t.subject for t in store.refreshes.due(room.now, EVERYTHING)] == ["issue:12"]


def test_a_refresh_is_gone_once_it_was_looked_at(room: Room, store: Store) -> None:
    store.refreshes.request([ISSUE], room.now)
    store.refreshes.mark_done(store.refreshes.due(room.now, EVERYTHING)[0])
    assert store.refreshes.due(room.now, EVERYTHING) == []


def test_a_refresh_during_the_look_is_not_lost_even_in_the_same_instant(
    room: Room, store: Store
) -> None:
    store.refreshes.request([ISSUE], room.now)
    looking = store.refreshes.due(room.now, EVERYTHING)[0]
    store.refreshes.request([ISSUE], room.now)
    store.refreshes.mark_done(looking)
    assert [t.subject for t in store.refreshes.due(room.now, EVERYTHING)] == ["issue:12"]


def test_another_refresh_keeps_the_earlier_place(room: Room, store: Store) -> None:
    first = room.now
    store.refreshes.request([ISSUE], first)
    later = room.clock.passes(10)
    store.refreshes.request([ISSUE], later)
    (waiting,) = store.refreshes.due(later, EVERYTHING)
    assert (waiting.due, waiting.since) == (first, later)


def test_a_postponed_refresh_waits_until_its_time_or_the_next_refresh(
    room: Room, store: Store
) -> None:
    store.refreshes.request([ISSUE, PULL], room.now)
    for waiting in store.refreshes.due(room.now, EVERYTHING):
        store.refreshes.postpone(waiting, room.clock.now.replace(year=2031))
    assert store.refreshes.due(room.now, EVERYTHING) == []
    store.refreshes.request([PULL], room.now)
    assert [t.subject for t in store.refreshes.due(room.now, EVERYTHING)] == ["pull:34"]


def test_a_refresh_that_came_during_a_failed_look_is_not_postponed(
    room: Room, store: Store
) -> None:
    store.refreshes.request([ISSUE], room.now)
    looking = store.refreshes.due(room.now, EVERYTHING)[0]
    store.refreshes.request([ISSUE], room.now)
    store.refreshes.postpone(looking, room.clock.now.replace(year=2031))
    assert len(store.refreshes.due(room.now, EVERYTHING)) == 1


def test_refreshes_are_found_by_the_kind_of_their_subject_oldest_first(
    room: Room, store: Store
) -> None:
    store.refreshes.request([PULL], room.now)
    room.clock.passes(1)
    store.refreshes.request(
        [ISSUE, RefreshRequest(repository="acme/widgets", subject="pull:3")], room.now
    )
    found = store.refreshes.due(room.now, ("pull:", "sha:"))
    assert [t.subject for t in found] == ["pull:34", "pull:3"]
    assert store.refreshes.due(room.now, ()) == []
    assert len(store.refreshes.due(room.now, EVERYTHING, limit=2)) == 2
