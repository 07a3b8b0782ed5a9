"""A touch asks for another look; a touch during the look asks again."""

from bot.store import Store, Touch
from tests.store.conftest import Room

ISSUE = Touch(repository="acme/widgets", subject="issue:12")
PULL = Touch(repository="acme/widgets", subject="pull:34")
EVERYTHING = ("issue:", "pull:", "branch:", "sha:")


def test_many_touches_of_one_thing_are_one_look(room: Room, store: Store) -> None:
    for _ in range(3):
        store.touch([ISSUE, ISSUE], room.now)
    assert [t.subject for t in store.due_touches(room.now, EVERYTHING)] == ["issue:12"]


def test_a_touch_is_gone_once_it_was_looked_at(room: Room, store: Store) -> None:
    store.touch([ISSUE], room.now)
    store.settle_touch(store.due_touches(room.now, EVERYTHING)[0])
    assert store.due_touches(room.now, EVERYTHING) == []


def test_a_touch_during_the_look_is_not_lost_even_in_the_same_instant(
    room: Room, store: Store
) -> None:
    store.touch([ISSUE], room.now)
    looking = store.due_touches(room.now, EVERYTHING)[0]
    store.touch([ISSUE], room.now)
    store.settle_touch(looking)
    assert [t.subject for t in store.due_touches(room.now, EVERYTHING)] == ["issue:12"]


def test_another_touch_keeps_the_earlier_place(room: Room, store: Store) -> None:
    first = room.now
    store.touch([ISSUE], first)
    later = room.clock.passes(10)
    store.touch([ISSUE], later)
    (waiting,) = store.due_touches(later, EVERYTHING)
    assert (waiting.due, waiting.since) == (first, later)


def test_a_postponed_touch_waits_until_its_time_or_the_next_touch(room: Room, store: Store) -> None:
    store.touch([ISSUE, PULL], room.now)
    for waiting in store.due_touches(room.now, EVERYTHING):
        store.postpone_touch(waiting, room.clock.now.replace(year=2031))
    assert store.due_touches(room.now, EVERYTHING) == []
    store.touch([PULL], room.now)
    assert [t.subject for t in store.due_touches(room.now, EVERYTHING)] == ["pull:34"]


def test_a_touch_that_came_during_a_failed_look_is_not_postponed(room: Room, store: Store) -> None:
    store.touch([ISSUE], room.now)
    looking = store.due_touches(room.now, EVERYTHING)[0]
    store.touch([ISSUE], room.now)
    store.postpone_touch(looking, room.clock.now.replace(year=2031))
    assert len(store.due_touches(room.now, EVERYTHING)) == 1


def test_touches_are_found_by_the_kind_of_their_subject_oldest_first(
    room: Room, store: Store
) -> None:
    store.touch([PULL], room.now)
    room.clock.passes(1)
    store.touch([ISSUE, Touch(repository="acme/widgets", subject="pull:3")], room.now)
    found = store.due_touches(room.now, ("pull:", "sha:"))
    assert [t.subject for t in found] == ["pull:34", "pull:3"]
    assert store.due_touches(room.now, ()) == []
    assert len(store.due_touches(room.now, EVERYTHING, limit=2)) == 2
