"""Slots are handed out once, in the order of the line, and every session is told why it waits."""

import sqlite3
from datetime import timedelta

from msgspec.structs import replace

from bot.store import NewCommand, Store
from lifecycle.judge.capacity import NO_MEMORY, Caps
from tests.store.conftest import REPOSITORY, Room


def named(many: list[int]) -> list[str]:
    return [f"widgets-{number}" for number in many]


def made(room: Room, *numbers: int) -> None:
    """Sessions that want a slot, a second apart."""
    for number in numbers:
        room.session(number)
        room.clock.passes(1)


def granted(room: Room, id: str, kind: str) -> None:
    number = int(id.removeprefix("widgets-"))
    key = f"comment:{kind}:{room.now.timestamp()}"
    command = NewCommand(
        key=key, repository=REPOSITORY, number=number, kind=kind, actor="ada", at=room.now
    )
    room.store.commands.add(command)
    room.store.commands.grant(key, id, room.now)


def test_slots_go_to_the_sessions_that_wait_longest(room: Room, store: Store) -> None:
    made(room, 3, 1, 2)
    assert store.slots.assign(Caps(sessions=2))[:2] == named([3, 1])
    assert [one.slot for one in store.sessions.all()] == [False, True, True]
    assert store.slots.assign(Caps(sessions=3)) == ["widgets-2"]


def test_a_priority_goes_first(room: Room, store: Store) -> None:
    made(room, 1)
    store.sessions.create(replace(room.new_session(2), priority=1))
    assert store.slots.assign(Caps(sessions=1))[0] == "widgets-2"


def test_who_gets_none_is_told_why_once_and_visited(room: Room, store: Store) -> None:
    made(room, 1, 2)
    room.decides("widgets-2", status="queued", wants_slot=True, recheck_at=None)
    assert store.slots.assign(Caps(sessions=1)) == named([1, 2])
    assert store.facts.get("widgets-2").waits == "every slot is taken, 1 in all"
    assert "widgets-2" in store.sessions.due(room.now)
    assert store.slots.assign(Caps(sessions=1)) == []
    assert store.slots.assign(Caps(sessions=2, session_mb=10), free_mb=9) == ["widgets-2"]
    assert store.facts.get("widgets-2").waits == NO_MEMORY
    assert store.slots.assign(Caps(sessions=2)) == ["widgets-2"]
    assert store.facts.get("widgets-2").waits == ""


def test_a_look_that_changes_nothing_writes_nothing(
    room: Room, store: Store, statements: list[str]
) -> None:
    made(room, 1, 2)
    store.slots.assign(Caps(sessions=1))
    statements.clear()
    store.slots.assign(Caps(sessions=1))
    assert statements == []


def test_a_freed_slot_goes_to_the_next_and_waits_for_nobody_else(room: Room, store: Store) -> None:
    made(room, 1, 2)
    store.slots.assign(Caps(sessions=1))
    room.decides("widgets-1", frees_slot=True, status="needs_input")
    assert store.slots.assign(Caps(sessions=1)) == ["widgets-2"]
    assert store.slots.assign(Caps(sessions=5)) == []


def test_a_session_that_wants_a_slot_again_stands_at_the_end(room: Room, store: Store) -> None:
    made(room, 1)
    room.decides("widgets-1", status="needs_input")
    made(room, 2)
    room.decides("widgets-1", status="queued", wants_slot=True)
    assert store.slots.assign(Caps(sessions=1))[0] == "widgets-2"


def test_a_slot_is_a_reason_for_a_visit(room: Room, store: Store) -> None:
    name = room.session(12)
    room.decides(name, status="queued", wants_slot=True, recheck_at=None)
    assert store.sessions.due(room.now) == []
    store.slots.assign(Caps())
    assert store.sessions.due(room.now) == [name]
    assert store.facts.get(name).slot is True


def test_what_a_person_asked_for_is_awaited_until_it_had_its_slot(room: Room, store: Store) -> None:
    kept = Caps(sessions=2, reserved=1)
    made(room, 1, 2, 3)
    granted(room, "widgets-3", "help")
    assert store.slots.assign(kept)[0] == "widgets-1"
    granted(room, "widgets-3", "resume")
    assert [place.awaited for place in store.slots.queue(kept)] == [False, True]
    assert store.slots.assign(kept) == ["widgets-3"]
    room.clock.passes(1)
    room.decides("widgets-3", frees_slot=True, status="paused")
    room.decides("widgets-3", status="queued", wants_slot=True)
    assert store.slots.assign(kept) == ["widgets-3"], "it is only told why it waits"
    assert [place.awaited for place in store.slots.queue(kept)] == [False, False]


def test_the_line_tells_place_reason_and_when_by_how_long_others_took(
    room: Room, store: Store
) -> None:
    made(room, 1, 2, 3, 4)
    caps = Caps(sessions=1)
    for number, seconds in ((1, 90), (2, 100)):
        store.slots.assign(caps)
        room.clock.passes(seconds)
        room.decides(f"widgets-{number}", frees_slot=True, status="done")
    store.slots.assign(caps)
    room.clock.passes(15)
    (place,) = store.slots.queue(caps)
    assert (place.session, place.position) == ("widgets-4", 1)
    assert place.waits == "every slot is taken, 1 in all"
    assert place.starts_at == room.now + timedelta(seconds=80)


def test_without_a_past_nobody_says_when(room: Room, store: Store) -> None:
    made(room, 1, 2)
    store.slots.assign(Caps(sessions=1))
    assert [place.starts_at for place in store.slots.queue(Caps(sessions=1))] == [None]


def test_how_long_a_slot_was_held_is_written_down_once(room: Room, store: Store) -> None:
    name = room.session(12)
    store.slots.assign(Caps())
    taken = room.now
    freed = room.clock.passes(60)
    room.decides(name, frees_slot=True, status="needs_input")
    room.clock.passes(60)
    room.decides(name, frees_slot=True, status="needs_input", because="another")

    def held(connection: sqlite3.Connection) -> list[tuple[float, float]]:
        return [
            (row[0], row[1]) for row in connection.execute("SELECT taken_at, freed_at FROM slots")
        ]

    assert store.db.write(held) == [(taken.timestamp(), freed.timestamp())]


def test_who_comes_when_all_slots_are_taken_is_told_too(room: Room, store: Store) -> None:
    made(room, 1)
    store.slots.assign(Caps(sessions=1))
    made(room, 2)
    assert store.slots.assign(Caps(sessions=1)) == ["widgets-2"]
    assert store.facts.get("widgets-2").waits == "every slot is taken, 1 in all"


def test_what_holds_a_slot_for_a_person_takes_no_place_of_the_others(
    room: Room, store: Store
) -> None:
    made(room, 1)
    granted(room, "widgets-1", "start")
    store.slots.assign(Caps(sessions=2, reserved=1))
    made(room, 2)
    store.slots.assign(Caps(sessions=2, reserved=1))
    assert [one.slot for one in store.sessions.all()] == [True, True]


def test_a_session_is_handed_to_whom_there_is_room_for(room: Room, store: Store) -> None:
    for number, agent in enumerate(("ada", "bea"), 1):
        new = replace(room.new_session(number), agent_name=agent)
        store.sessions.create(new)
    caps = Caps(sessions=2, agents={"ada": 1, "bea": 1}, agent_types={"claude": 2, "codex": 1})
    store.slots.assign(caps)
    why = "the agent ada is at work in as many sessions as it may, 1"
    assert store.slots.handover_blocker("widgets-2", "ada", "claude", caps) == why
    assert store.slots.handover_blocker("widgets-2", "eve", "codex", caps) == ""
    assert store.slots.handover_blocker("widgets-2", "bea", "claude", caps) == ""
    assert store.slots.handover_blocker("widgets-9", "ada", "claude", caps) == ""


def test_a_priority_can_change_while_it_waits(room: Room, store: Store) -> None:
    made(room, 1, 2, 3)
    store.slots.prioritize("widgets-3", 1)
    assert [place.session for place in store.slots.queue(Caps())] == named([3, 1, 2])
    store.slots.prioritize("widgets-3", -1)
    assert [place.session for place in store.slots.queue(Caps())] == named([1, 2, 3])
