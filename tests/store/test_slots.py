"""Slots are assigned in the order of the queue, and every waiting session has a reason."""

import sqlite3
from datetime import timedelta

from msgspec.structs import replace

from bot.store import NewCommand, Store
from lifecycle.judge.capacity import NO_MEMORY, Caps
from tests.store.conftest import REPOSITORY, Scenario


def named(many: list[int]) -> list[str]:
    return [f"widgets-{number}" for number in many]


def made(scenario: Scenario, *numbers: int) -> None:
    """Sessions that want a slot, a second apart."""
    for number in numbers:
        scenario.session(number)
        scenario.clock.passes(1)


def granted(scenario: Scenario, id: str, kind: str) -> None:
    number = int(id.removeprefix("widgets-"))
    key = f"comment:{kind}:{scenario.now.timestamp()}"
    command = NewCommand(
        key=key, repository=REPOSITORY, number=number, kind=kind, actor="ada", at=scenario.now
    )
    scenario.store.commands.add(command)
    scenario.store.commands.grant(key, id, scenario.now)


def test_slots_go_to_the_sessions_that_wait_longest(scenario: Scenario, store: Store) -> None:
    made(scenario, 3, 1, 2)
    assert store.slots.assign(Caps(sessions=2))[:2] == named([3, 1])
    assert [one.slot for one in store.sessions.all()] == [False, True, True]
    assert store.slots.assign(Caps(sessions=3)) == ["widgets-2"]


def test_a_session_with_priority_gets_the_slot_first(scenario: Scenario, store: Store) -> None:
    made(scenario, 1)
    store.sessions.create(replace(scenario.new_session(2), priority=1))
    assert store.slots.assign(Caps(sessions=1))[0] == "widgets-2"


def test_a_session_without_a_slot_is_woken_once_with_the_reason(
    scenario: Scenario, store: Store
) -> None:
    made(scenario, 1, 2)
    scenario.decides("widgets-2", status="queued", wants_slot=True, recheck_at=None)
    assert store.slots.assign(Caps(sessions=1)) == named([1, 2])
    assert (
        store.facts.get("widgets-2").waits == "the server has no free session slot"
        " (limit: 1; slots reserved for sessions earlier in the queue are not free)"
    )
    assert "widgets-2" in store.sessions.due(scenario.now)
    assert store.slots.assign(Caps(sessions=1)) == []
    assert store.slots.assign(Caps(sessions=2, session_mb=10), free_mb=9) == ["widgets-2"]
    assert store.facts.get("widgets-2").waits == NO_MEMORY
    assert store.slots.assign(Caps(sessions=2)) == ["widgets-2"]
    assert store.facts.get("widgets-2").waits == ""


def test_an_assignment_that_changes_nothing_writes_nothing(
    scenario: Scenario, store: Store, statements: list[str]
) -> None:
    made(scenario, 1, 2)
    store.slots.assign(Caps(sessions=1))
    statements.clear()
    store.slots.assign(Caps(sessions=1))
    assert statements == []


def test_a_freed_slot_goes_to_the_next_session(scenario: Scenario, store: Store) -> None:
    made(scenario, 1, 2)
    store.slots.assign(Caps(sessions=1))
    scenario.decides("widgets-1", frees_slot=True, status="needs_input")
    assert store.slots.assign(Caps(sessions=1)) == ["widgets-2"]
    assert store.slots.assign(Caps(sessions=5)) == []


def test_a_session_that_wants_a_slot_again_is_last_in_the_queue(
    scenario: Scenario, store: Store
) -> None:
    made(scenario, 1)
    scenario.decides("widgets-1", status="needs_input")
    made(scenario, 2)
    scenario.decides("widgets-1", status="queued", wants_slot=True)
    assert store.slots.assign(Caps(sessions=1))[0] == "widgets-2"


def test_a_slot_wakes_its_session(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    scenario.decides(name, status="queued", wants_slot=True, recheck_at=None)
    assert store.sessions.due(scenario.now) == []
    store.slots.assign(Caps())
    assert store.sessions.due(scenario.now) == [name]
    assert store.facts.get(name).slot is True


def test_a_run_that_a_person_requested_is_marked_until_it_had_its_slot(
    scenario: Scenario, store: Store
) -> None:
    kept = Caps(sessions=2, reserved=1)
    made(scenario, 1, 2, 3)
    granted(scenario, "widgets-3", "help")
    assert store.slots.assign(kept)[0] == "widgets-1"
    granted(scenario, "widgets-3", "resume")
    assert [place.awaited for place in store.slots.queue(kept)] == [False, True]
    assert store.slots.assign(kept) == ["widgets-3"]
    scenario.clock.passes(1)
    scenario.decides("widgets-3", frees_slot=True, status="paused")
    scenario.decides("widgets-3", status="queued", wants_slot=True)
    assert store.slots.assign(kept) == ["widgets-3"], "it only gets the reason why it waits"
    assert [place.awaited for place in store.slots.queue(kept)] == [False, False]


def test_the_queue_has_position_reason_and_an_estimate_from_past_slots(
    scenario: Scenario, store: Store
) -> None:
    made(scenario, 1, 2, 3, 4)
    caps = Caps(sessions=1)
    for number, seconds in ((1, 90), (2, 100)):
        store.slots.assign(caps)
        scenario.clock.passes(seconds)
        scenario.decides(f"widgets-{number}", frees_slot=True, status="done")
    store.slots.assign(caps)
    scenario.clock.passes(15)
    (place,) = store.slots.queue(caps)
    assert (place.session, place.position) == ("widgets-4", 1)
    limit = "limit: 1; slots reserved for sessions earlier in the queue are not free"
    assert place.waits == f"the server has no free session slot ({limit})"
    assert place.starts_at == scenario.now + timedelta(seconds=80)


def test_without_past_slots_there_is_no_estimate(scenario: Scenario, store: Store) -> None:
    made(scenario, 1, 2)
    store.slots.assign(Caps(sessions=1))
    assert [place.starts_at for place in store.slots.queue(Caps(sessions=1))] == [None]


def test_the_time_a_slot_was_held_is_recorded_once(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    store.slots.assign(Caps())
    taken = scenario.now
    freed = scenario.clock.passes(60)
    scenario.decides(name, frees_slot=True, status="needs_input")
    scenario.clock.passes(60)
    scenario.decides(name, frees_slot=True, status="needs_input", because="another")

    def held(connection: sqlite3.Connection) -> list[tuple[float, float]]:
        return [
            (row[0], row[1]) for row in connection.execute("SELECT taken_at, freed_at FROM slots")
        ]

    assert store.db.write(held) == [(taken.timestamp(), freed.timestamp())]


def test_a_session_that_arrives_when_all_slots_are_taken_gets_the_reason(
    scenario: Scenario, store: Store
) -> None:
    made(scenario, 1)
    store.slots.assign(Caps(sessions=1))
    made(scenario, 2)
    assert store.slots.assign(Caps(sessions=1)) == ["widgets-2"]
    assert (
        store.facts.get("widgets-2").waits == "the server has no free session slot"
        " (limit: 1; slots reserved for sessions earlier in the queue are not free)"
    )


def test_a_run_requested_by_a_person_takes_the_reserved_slot(
    scenario: Scenario, store: Store
) -> None:
    made(scenario, 1)
    granted(scenario, "widgets-1", "start")
    store.slots.assign(Caps(sessions=2, reserved=1))
    made(scenario, 2)
    store.slots.assign(Caps(sessions=2, reserved=1))
    assert [one.slot for one in store.sessions.all()] == [True, True]


def test_a_handover_is_blocked_by_the_cap_of_the_other_agent(
    scenario: Scenario, store: Store
) -> None:
    for number, agent in enumerate(("ada", "bea"), 1):
        new = replace(scenario.new_session(number), agent_name=agent)
        store.sessions.create(new)
    caps = Caps(sessions=2, agents={"ada": 1, "bea": 1}, agent_types={"claude": 2, "codex": 1})
    store.slots.assign(caps)
    why = (
        "the agent ada has no free session slot"
        " (limit: 1; slots reserved for sessions earlier in the queue are not free)"
    )
    assert store.slots.handover_blocker("widgets-2", "ada", "claude", caps) == why
    assert store.slots.handover_blocker("widgets-2", "eve", "codex", caps) == ""
    assert store.slots.handover_blocker("widgets-2", "bea", "claude", caps) == ""
    assert store.slots.handover_blocker("widgets-9", "ada", "claude", caps) == ""


def test_the_priority_of_a_waiting_session_can_change(scenario: Scenario, store: Store) -> None:
    made(scenario, 1, 2, 3)
    store.slots.prioritize("widgets-3", 1)
    assert [place.session for place in store.slots.queue(Caps())] == named([3, 1, 2])
    store.slots.prioritize("widgets-3", -1)
    assert [place.session for place in store.slots.queue(Caps())] == named([1, 2, 3])
