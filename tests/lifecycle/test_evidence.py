"""How activity and probes decide whether an agent is available."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.model.facts import Agent, Exit, Facts, ProbeFailure
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe, Reason, Status
from lifecycle.read.action_history import ActionHistory
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView
from tests.lifecycle.decisions import decision, effects, ordered
from tests.lifecycle.universe import NOW, agent, ago, done, ended, facts, published

DEAD: Any = {"runtime": Probe.DEAD, "program": Probe.DEAD}
ACTIVE, DAY = Activity.ACTIVE, 86_400.0
LOST = Exit(at=ago(60), lost="the machine was restarted")


def availability(who: Agent, **fields: Any) -> Availability:
    return SessionView(facts(agent=who, **fields), Policy(), NOW).availability


def working(**fields: Any) -> Agent:
    return agent(ACTIVE, 5000, **fields)


# -- activity --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds_ago", "alive", "dead"),
    [
        (0, Availability.ACTIVE, Availability.UNKNOWN),
        (
            59,
            Availability.ACTIVE,
            Availability.UNKNOWN,
        ),  # strong: two dead probes do not outweigh it
        (
            60,
            Availability.ACTIVE,
            Availability.CRASHED,
        ),  # weak: it reads active, and proves nothing to probes
        (299, Availability.ACTIVE, Availability.CRASHED),
        (300, Availability.UNKNOWN, Availability.CRASHED),  # stale: it proves nothing at all
        (-60, Availability.ACTIVE, Availability.UNKNOWN),  # another clock, slightly ahead
        (-61, Availability.UNKNOWN, Availability.CRASHED),  # no time at all
    ],
)
def test_evidence_counts_by_its_age(
    seconds_ago: float, alive: Availability, dead: Availability
) -> None:
    seen = ago(seconds_ago)
    assert availability(working(seen=seen)) is alive
    assert availability(working(seen=seen, **DEAD)) is dead


def test_evidence_without_a_time_is_stale() -> None:
    assert availability(agent(ACTIVE, since=None, seen=None)) is Availability.UNKNOWN
    assert availability(agent(ACTIVE, since=None, seen=None, **DEAD)) is Availability.CRASHED
    assert (
        availability(agent(Activity.EXITED, since=None, seen=None, **DEAD)) is Availability.CRASHED
    )


@pytest.mark.parametrize(
    ("activity", "expected"),
    [
        (Activity.READY, Availability.IDLE),
        (Activity.IDLE, Availability.IDLE),
        (Activity.WAITING_INPUT, Availability.WAITING),
        (Activity.BLOCKED, Availability.BLOCKED),
    ],
)
@pytest.mark.parametrize("seen", [ago(30 * DAY), None])
def test_only_activity_goes_stale(activity: Activity, expected: Availability, seen: Any) -> None:
    assert availability(agent(activity, 30 * DAY, seen=seen)) is expected


def test_an_agent_in_a_long_tool_call_is_active() -> None:
    calls = facts(agent=working(seen=ago(1200), calling=True))
    assert decision(calls).status is Status.WORKING
    assert SessionView(calls, Policy(), NOW).availability is Availability.ACTIVE
    silent = facts(agent=working(seen=ago(1200)))
    assert (decision(silent).status, decision(silent).reason) == (Status.STUCK, Reason.NO_PROGRESS)


def test_an_open_tool_call_of_a_dead_program_is_no_activity() -> None:
    assert availability(working(seen=ago(1200), calling=True, **DEAD)) is Availability.CRASHED
    assert availability(working(calling=True, program=Probe.UNKNOWN)) is Availability.UNKNOWN


def test_evidence_of_an_earlier_run_is_ignored() -> None:
    late = replace(agent(Activity.WAITING_INPUT, question="Which?"), run=1)
    session = facts(run=2, agent=late, done=done("start:crash#2", seconds_ago=5))
    assert SessionView(session, Policy(), NOW).availability is Availability.NONE
    assert decision(session).status is Status.WORKING


def test_a_pull_request_that_waits_for_review_never_becomes_stuck() -> None:
    for activity in (Activity.READY, Activity.IDLE):
        session = published(agent=agent(activity, 3 * DAY))
        assert decision(session).status is Status.REVIEW_PENDING
        policy = Policy(park_seconds=1e9, wait_seconds=0)
        later = decide(session, policy, NOW + timedelta(days=30))
        assert later.status is Status.REVIEW_PENDING


def test_a_time_far_in_the_future_does_not_delay_stuck() -> None:
    session = facts(agent=working(seen=ago(-DAY), since=ago(700)))
    assert decision(session).reason is Reason.NO_PROGRESS


# -- is it alive? ----------------------------------------------------------------------------------


@pytest.mark.parametrize("runtime", Probe)
@pytest.mark.parametrize("program", Probe)
def test_an_agent_has_crashed_only_if_both_probes_are_dead(runtime: Probe, program: Probe) -> None:
    expected = {
        (Probe.ALIVE, Probe.ALIVE): Availability.IDLE,
        (Probe.DEAD, Probe.DEAD): Availability.CRASHED,
    }
    who = agent(seconds_ago=120, runtime=runtime, program=program)
    assert availability(who) is expected.get((runtime, program), Availability.UNKNOWN)


def test_contradicting_or_unknown_probes_keep_the_status() -> None:
    probes: tuple[Any, ...] = ({"program": Probe.DEAD}, {"runtime": Probe.UNKNOWN})
    for session in probes:
        who = agent(
            seconds_ago=3600,
            probe_failure=ProbeFailure(since=ago(10), evidence="?", rounds=2),
            **session,
        )
        judged = decision(published(agent=who))
        assert judged.status is Status.REVIEW_PENDING
        assert not effects(judged)


@pytest.mark.parametrize(
    ("rounds", "seconds", "status"),
    [
        (3, 300, Status.STUCK),
        (2, 300, Status.REVIEW_PENDING),
        (3, 299, Status.REVIEW_PENDING),
    ],
)
def test_probes_that_fail_three_times_in_five_minutes_make_the_session_stuck(
    rounds: int, seconds: float, status: Status
) -> None:
    probe_failure = ProbeFailure(since=ago(seconds), evidence="alive/unknown", rounds=rounds)
    judged = decision(
        published(agent=agent(seconds_ago=9000, program=Probe.UNKNOWN, probe_failure=probe_failure))
    )
    assert judged.status is status
    if status is Status.STUCK:
        assert judged.reason is Reason.PROBE_FAILURE


def test_a_probe_never_ends_a_session_that_is_starting() -> None:
    session = facts(run=2, agent=agent(seconds_ago=9000, **DEAD))
    assert decision(session).status is Status.SPAWNING
    assert stops(session) == []


def stops(session: Facts) -> list[str]:
    return [str(each.key) for each in decision(session).actions if str(each.key).startswith("stop")]


# -- a program that exited -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ({"code": 0}, Availability.EXITED),
        ({"code": 1}, Availability.CRASHED),
        ({"signal": 9}, Availability.CRASHED),
        ({}, Availability.CRASHED),
        ({"lost": "its terminal was closed"}, Availability.CRASHED),
        ({"code": 0, "lost": "its terminal was closed"}, Availability.CRASHED),  # it went politely
    ],
)
def test_only_exit_code_zero_is_a_regular_exit(end: Any, expected: Availability) -> None:
    assert availability(replace(ended(), exit=Exit(at=ago(60), **end))) is expected


@pytest.mark.parametrize("runtime", Probe)
@pytest.mark.parametrize("program", Probe)
def test_a_recorded_exit_outweighs_the_probes(runtime: Probe, program: Probe) -> None:
    for code, expected in ((0, Availability.EXITED), (1, Availability.CRASHED)):
        assert availability(replace(ended(code, 1), runtime=runtime, program=program)) is expected


@pytest.mark.parametrize("key", ["stop#1", "park:idle:x#1", "release#1"])
@pytest.mark.parametrize("who", [ended(1), ended(None), agent(ACTIVE, 1, **DEAD)])
def test_a_run_ended_by_the_bot_is_no_crash(key: str, who: Agent) -> None:
    assert availability(who, done=done(key)) is Availability.EXITED
    assert availability(who, pending=frozenset({key})) is Availability.EXITED
    other = key.replace("#1", "#11")
    assert availability(who, done=done(other)) is not Availability.EXITED
    assert availability(who, pending=frozenset({other, "fix_ci:x#1"})) is not Availability.EXITED


def test_a_run_ended_by_the_bot_has_exited_although_probes_fail() -> None:
    unseen: dict[str, Any] = {"runtime": Probe.UNKNOWN, "program": Probe.UNKNOWN}
    assert availability(agent(ACTIVE, 1, **unseen), done=done("stop#1")) is Availability.EXITED


def test_a_run_that_survives_its_stop_is_judged_by_its_activity() -> None:
    assert availability(agent(ACTIVE, 1), done=done("park:idle#1")) is Availability.ACTIVE


# -- lost with its machine -------------------------------------------------------------------------


def lost(times: int, **fields: Any) -> Facts:
    """Lost again after so many restarts."""
    starts = [f"start:lost#{run}" for run in range(2, times + 2)]
    who = replace(agent(ACTIVE, 90, exit=LOST, **DEAD), run=times + 1)
    return facts(run=times + 1, agent=who, done=done(*starts, seconds_ago=400), **fields)


def test_a_run_lost_with_its_machine_restarts_without_counting_as_a_crash() -> None:
    (start,) = ordered(lost(0))
    assert str(start.key) == "start:lost#2"
    (start,) = ordered(lost(3))
    assert str(start.key) == "start:lost#5"
    crashed = replace(lost(3), agent=replace(ended(1), run=4))
    (start,) = ordered(crashed)
    assert str(start.key) == "start:crash#5"


def test_repeated_losses_back_off_and_end_the_session() -> None:
    session = lost(4)
    due = decide(session, Policy(restart_seconds=60), NOW)
    assert not effects(due)
    assert due.recheck_at == LOST.at + timedelta(seconds=300)
    session = lost(10)
    judged = decision(session)
    assert (judged.status, judged.reason) == (Status.KILLED, Reason.RUNTIME_LOST)
    assert "the machine was restarted" in judged.because
    assert decision(session, lost_runs=11).status is Status.WORKING


def test_a_message_to_a_lost_run_counts_as_not_sent() -> None:
    sent = done("address_review:x#1", "start:lost#2")
    assert ActionHistory(sent).last_sent(parse("address_review:x")) is None
