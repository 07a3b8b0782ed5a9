"""Slot assignment: order, caps, memory, estimates and fairness."""

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifecycle.judge.capacity import (
    NO_MEMORY,
    Caps,
    Contender,
    Grants,
    hand_out,
    in_line,
    places,
    priority_of,
    reason_of,
)
from lifecycle.model.status import Reason
from tests.lifecycle.universe import NOW, ago


def one(session: str, waits: float = 60, **fields: Any) -> Contender:
    """A session that has waited so many seconds, or has held its slot so long."""
    fields = {"project": "widgets", "agent_type": "claude", "agent": "claude", **fields}
    fields = {"requester": "alice", "since": ago(waits), **fields}
    return Contender(session=session, **fields)


def handed(
    waiting: list[Contender],
    holding: list[Contender] | None = None,
    free_mb: int | None = None,
    **caps: Any,
) -> Grants:
    return hand_out(waiting, holding or [], Caps(**caps), free_mb, NOW)


def test_slots_go_to_the_sessions_that_have_waited_longest() -> None:
    assigned = handed([one("c", 10), one("a", 30), one("b", 20)], sessions=2)
    assert assigned.granted == ("a", "b")
    assert assigned.waits == {
        "c": "the server has no free session slot"
        " (limit: 2; slots reserved for sessions earlier in the queue are not free)"
    }


def test_equal_waits_are_ordered_by_session_name() -> None:
    assert handed([one("b"), one("a")], sessions=1).granted == ("a",)


@pytest.mark.parametrize(
    ("caps", "why"),
    [
        (
            {"sessions": 1},
            "the server has no free session slot"
            " (limit: 1; slots reserved for sessions earlier in the queue are not free)",
        ),
        (
            {"projects": {"widgets": 1}},
            "the project widgets has no free session slot"
            " (limit: 1; slots reserved for sessions earlier in the queue are not free)",
        ),
        (
            {"agent_types": {"claude": 1}},
            "the agent type claude has no free session slot (limit: 1;"
            " slots reserved for sessions earlier in the queue are not free)",
        ),
        (
            {"agents": {"claude": 1}},
            "the agent claude has no free session slot"
            " (limit: 1; slots reserved for sessions earlier in the queue are not free)",
        ),
        (
            {"per_person": 1},
            "@alice has no free session slot"
            " (limit: 1; slots reserved for sessions earlier in the queue are not free)",
        ),
        (
            {"sessions": 2, "reserved": 1},
            "the server has no free slot for a session that no command requested (limit: 1; the "
            "other slots are reserved for sessions that got a command such as `tell`)",
        ),
    ],
)
def test_each_cap_makes_the_next_session_wait_with_its_reason(
    caps: dict[str, Any], why: str
) -> None:
    assigned = handed([one("a")], [one("z")], **caps)
    assert assigned == Grants(granted=(), waits={"a": why})
    assert reason_of(why) is Reason.NO_SLOT
    assert handed([one("a")], **caps).granted == ("a",)


def test_a_user_of_the_command_line_is_named_without_an_at_sign() -> None:
    waiting, holding = one("a", requester="cli:ann"), one("z", requester="cli:ann")
    assigned = handed([waiting], [holding], per_person=1)
    assert assigned.waits["a"].startswith("ann (on the server) has no free session slot")


def test_a_full_project_does_not_delay_other_projects() -> None:
    waiting = [one("a", 30), one("b", 20, project="gadgets")]
    assigned = handed(waiting, [one("z")], projects={"widgets": 1})
    assert assigned.granted == ("b",)


def test_sessions_without_a_requester_share_no_cap_per_person() -> None:
    waiting = [one("a", requester=""), one("b", requester="")]
    assert handed(waiting, per_person=1).granted == ("a", "b")


def test_reserved_slots_go_to_sessions_a_person_waits_for() -> None:
    waiting = [one("a", 30), one("b", 20), one("c", 10, awaited=True)]
    assigned = handed(waiting, sessions=2, reserved=1)
    assert assigned.granted == ("a", "c")


def test_a_session_in_a_reserved_slot_takes_no_unreserved_one() -> None:
    assigned = handed([one("a")], [one("z", awaited=True)], sessions=2, reserved=1)
    assert assigned.granted == ("a",)


def test_a_priority_step_equals_a_fixed_waiting_time() -> None:
    high, older, old = one("a", 10, priority=1), one("b", 3000), one("c", 4000)
    low = replace(older, session="d", priority=-1)
    assert [each.session for each in in_line([low, older, high, old], Caps())] == [*"cabd"]


@pytest.mark.parametrize(
    ("labels", "steps"),
    [((), 0), (("bug", "Priority:High"), 1), (("priority:low",), -1), (("priority:urgent",), 0)],
)
def test_a_label_sets_the_priority(labels: tuple[str, ...], steps: int) -> None:
    assert priority_of(labels) == steps


def test_a_session_waits_while_memory_is_short() -> None:
    waiting = [one("a", 30), one("b", 20)]
    assigned = handed(waiting, free_mb=3999, session_mb=1500, reserve_mb=1000)
    assert assigned == Grants(granted=("a",), waits={"b": NO_MEMORY})
    assert reason_of(NO_MEMORY) is Reason.NO_MEMORY
    assert handed(waiting, free_mb=4000, session_mb=1500, reserve_mb=1000).granted == ("a", "b")


def test_a_session_that_has_just_started_still_reserves_its_memory() -> None:
    caps = Caps(session_mb=1500, reserve_mb=1000)
    assert hand_out([one("a")], [one("z", 59)], caps, 2500, NOW).granted == ()
    assert hand_out([one("a")], [one("z", 60)], caps, 2500, NOW).granted == ("a",)


@pytest.mark.parametrize("memory", [{"free_mb": None, "session_mb": 1500}, {"free_mb": 1}])
def test_unknown_or_unlimited_memory_delays_no_session(memory: dict[str, Any]) -> None:
    assert handed([one("a"), one("b")], **memory).granted == ("a", "b")


def test_the_first_in_line_reserves_the_cap_it_can_use() -> None:
    caps: dict[str, Any] = {"projects": {"widgets": 1}, "per_person": 1}
    holding = [one("z", requester="rob")]
    younger = one("b", 20, project="gadgets")
    assert handed([one("a", 30), younger], holding, **caps).granted == ()
    assert handed([one("a", 30, requester="rob"), younger], holding, **caps).granted == ("b",)


def test_newer_sessions_cannot_overtake_for_ever_by_alternating_groups() -> None:
    caps = Caps(projects={"widgets": 1}, per_person=1)
    first, busy = one("first", 9999), [one("x", requester="rob")]
    for turn in range(9):
        younger = [one(f"p{turn}", requester="rob"), one(f"q{turn}", project="gadgets")]
        waiting = [first, *younger]
        assigned = hand_out(waiting, busy, caps, None, NOW)
        if assigned.granted == ("first",):
            return
        # The running sessions end; those that just started run.
        busy = [each for each in younger if each.session in assigned.granted]
    raise AssertionError("it still waits")


def test_no_slot_is_reserved_where_the_next_exit_frees_one() -> None:
    waiting = [one("a", 30), one("b", 20, project="gadgets")]
    assigned = handed(waiting, [one("z")], projects={"widgets": 1}, agent_types={"claude": 2})
    assert assigned.granted == ("b",)


def test_a_queue_position_has_an_estimated_start() -> None:
    waiting, holding = [one("b", 20), one("a", 30)], [one("y", 100), one("z", 40)]
    line = places(waiting, holding, Caps(sessions=2), {"claude": 90.0}, NOW)
    assert [(place.session, place.position) for place in line] == [("a", 1), ("b", 2)]
    assert line[0].starts_at == NOW, "one has held its slot longer than usual"
    assert line[1].starts_at == NOW + timedelta(seconds=50)


def test_an_estimate_includes_the_sessions_ahead() -> None:
    waiting, holding = [one("b", 20), one("a", 30)], [one("z", 40)]
    first, second = places(waiting, holding, Caps(sessions=1), {"claude": 90.0}, NOW)
    assert first.starts_at == NOW + timedelta(seconds=50)
    assert second.starts_at == NOW + timedelta(seconds=140)


def test_without_earlier_runs_there_is_no_estimate() -> None:
    (place,) = places([one("a")], [one("z")], Caps(sessions=1), {}, NOW)
    assert (place.position, place.starts_at) == (1, None)


def test_a_free_slot_is_estimated_for_now() -> None:
    (place,) = places([one("a")], [], Caps(sessions=1), {}, NOW)
    assert place.starts_at == NOW


_contenders = st.lists(
    st.builds(
        one,
        st.just(""),
        st.integers(0, 20_000),
        project=st.sampled_from("PQ"),
        agent_type=st.sampled_from("TU"),
        agent=st.sampled_from("MN"),
        requester=st.sampled_from(["", "X", "Y"]),
        priority=st.integers(-1, 1),
        awaited=st.booleans(),
    ),
    max_size=12,
).map(lambda many: [replace(each, session=f"s{i}") for i, each in enumerate(many)])
_KINDS = ("project", "agent_type", "agent", "requester")
#: One of no limited kind.
_OTHER = one("other", project="Q", agent_type="U", agent="N", requester="")
_few = st.integers(0, 3)
_caps = st.builds(
    Caps,
    sessions=st.integers(3, 6),
    reserved=st.integers(0, 2),
    per_person=_few,
    projects=st.fixed_dictionaries({"P": _few}),
    agent_types=st.fixed_dictionaries({"T": _few}),
    agents=st.fixed_dictionaries({"M": _few}),
    session_mb=st.just(100),
    reserve_mb=st.just(100),
)
_laws = settings(max_examples=150, deadline=None, derandomize=True)


def crowds(busy: list[Contender], caps: Caps) -> dict[str, tuple[int, int]]:
    """Of every cap: the running sessions it counts, and its limit."""

    def of(field: str, name: str) -> int:
        return sum(getattr(each, field) == name for each in busy)

    unawaited = sum(not each.awaited for each in busy)
    limits = {
        "all": (len(busy), caps.sessions),
        "unawaited": (unawaited, caps.sessions - caps.reserved),
        "P": (of("project", "P"), caps.projects["P"]),
        "T": (of("agent_type", "T"), caps.agent_types["T"]),
        "M": (of("agent", "M"), caps.agents["M"]),
        "X": (of("requester", "X"), caps.per_person),
        "Y": (of("requester", "Y"), caps.per_person),
    }
    return {name: (count, most) for name, (count, most) in limits.items() if most}


@_laws
@given(waiting=_contenders, caps=_caps, free_mb=st.none() | st.integers(0, 900))
def test_no_cap_is_exceeded_and_every_session_gets_a_slot_or_a_reason(
    waiting: list[Contender], caps: Caps, free_mb: int | None
) -> None:
    assigned = hand_out(waiting, [], caps, free_mb, NOW)
    busy = [each for each in waiting if each.session in assigned.granted]
    assert all(count <= most for count, most in crowds(busy, caps).values())
    assert free_mb is None or len(busy) <= max(0, (free_mb - 100) // 100)
    assert {*assigned.granted, *assigned.waits} == {each.session for each in waiting}
    assert len(assigned.granted) + len(assigned.waits) == len(waiting)
    assert all(assigned.waits.values())


@_laws
@given(waiting=_contenders, holding=_contenders, caps=_caps, seed=st.integers())
def test_the_order_of_the_input_does_not_matter(
    waiting: list[Contender], holding: list[Contender], caps: Caps, seed: int
) -> None:
    shuffle = random.Random(seed).sample
    assigned = hand_out(waiting, holding, caps, 500, NOW)
    other = shuffle(waiting, len(waiting)), shuffle(holding, len(holding))
    assert hand_out(*other, caps, 500, NOW) == assigned


@_laws
@given(waiting=_contenders, holding=_contenders, caps=_caps)
def test_assigning_slots_twice_assigns_nothing_more(
    waiting: list[Contender], holding: list[Contender], caps: Caps
) -> None:
    assigned = hand_out(waiting, holding, caps, None, NOW)
    busy = [*holding, *(each for each in waiting if each.session in assigned.granted)]
    left = [each for each in waiting if each.session in assigned.waits]
    assert hand_out(left, busy, caps, None, NOW).granted == ()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(crowd=_contenders.filter(bool), caps=_caps, seed=st.integers(0, 99))
def test_no_session_starves_while_newer_ones_keep_coming(
    crowd: list[Contender], caps: Caps, seed: int
) -> None:
    """New sessions of every kind keep coming, and each holds its slot for a while."""
    chance = random.Random(seed)
    last = replace(crowd[0], priority=-1, awaited=False)
    waiting, busy, now = [last, *crowd[1:]], dict[Contender, int](), NOW
    for hour in range(150):
        assigned = hand_out(waiting, list(busy), caps, None, now)
        if last.session in assigned.granted:
            return
        started = [each for each in waiting if each.session in assigned.granted]
        waiting = [each for each in waiting if each.session in assigned.waits]
        busy.update({each: chance.randint(1, 3) for each in started})
        busy = {each: hours - 1 for each, hours in busy.items() if hours > 1}
        now += timedelta(hours=1)
        for number in range(3):
            like = chance.choice(crowd)
            kind = {name: getattr(chance.choice([like, _OTHER]), name) for name in _KINDS}
            waiting.append(replace(like, session=f"{hour}-{number}", since=now, **kind))
    raise AssertionError(f"{last} still waits")
