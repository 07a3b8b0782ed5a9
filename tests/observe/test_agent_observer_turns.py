"""The agent observer: unchanged readings, skipped files, the end of a turn."""

from typing import Any

import pytest
from msgspec.structs import replace

from bot.observe.agents import AgentObserver
from lifecycle.model.facts import Agent, OffBranch, Usage
from lifecycle.model.status import Activity
from runtimes.workspaces.git import GitFailure
from tests.harness.edges import ALIVE, Checkout, Edge, is_sent, programs, running, the

# -- unchanged readings-----------------------------------------------------------------------------


def test_a_source_that_falls_silent_changes_nothing(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    used = Usage(input=9, output=9)
    edge.says["widgets-1"] = Agent(activity=Activity.BLOCKED, error="429", usage=used)
    watch.sweep()
    before = the(scenario)
    edge.says["widgets-1"] = Agent()
    scenario.clock.passes(600)
    assert watch.sweep() == 0
    edge.says["widgets-1"] = Agent(activity=Activity.BLOCKED, error="429", usage=Usage(input=1))
    scenario.clock.passes(600)
    assert watch.sweep() == 0
    assert the(scenario) == before


def test_noticeable_costs_are_recorded_at_once(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    watch.sweep()
    for cost, changed in ((0.09, 0), (0.1, 1), (0.15, 0), (0.3, 1)):
        used = Usage(input=1, cost_usd=cost)
        edge.says["widgets-1"] = Agent(activity=Activity.ACTIVE, seen=scenario.clock(), usage=used)
        assert watch.sweep() == changed
    assert the(scenario).usage == used


def test_evidence_and_usage_of_an_active_agent_are_recorded_every_twenty_seconds(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    watch.sweep()
    for _ in range(3):
        scenario.clock.passes(6)
        used = Usage(input=int(scenario.clock().timestamp()))
        edge.says["widgets-1"] = Agent(activity=Activity.ACTIVE, seen=scenario.clock(), usage=used)
        assert watch.sweep() == 0
    scenario.clock.passes(2)
    assert watch.sweep() == 1
    assert the(scenario).usage.input == used.input
    edge.says["widgets-1"] = Agent(activity=Activity.WAITING_INPUT, usage=Usage(input=2**40))
    assert watch.sweep() == 1
    assert the(scenario).usage.input == 2**40


def test_throttled_usage_is_recorded_later_without_another_sign(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    edge.says["widgets-1"] = Agent(activity=Activity.BLOCKED, error="429", seen=scenario.clock())
    watch.sweep()
    scenario.clock.passes(5)
    used = Usage(input=9)
    edge.says["widgets-1"] = replace(edge.says["widgets-1"], seen=scenario.clock(), usage=used)
    edge.seen["widgets-1_r1"] = replace(ALIVE, output_at=scenario.clock())
    for _ in range(3):
        watch.sweep()
        assert the(scenario).usage == Usage()
        scenario.clock.passes(3)
    scenario.clock.passes(6)
    watch.sweep()
    assert the(scenario).usage.input == used.input
    assert the(scenario).usage.unpriced == 9, "no price is configured"


def idle(scenario: Any, edge: Edge, watch: AgentObserver, *numbers: int) -> None:
    """Agents whose turn ended long ago and was fully observed."""
    running(scenario, edge, *numbers)
    for number in numbers:
        rests = Agent(activity=Activity.READY, since=scenario.clock(), seen=scenario.clock())
        edge.says[f"widgets-{number}"] = rests
    scenario.clock.passes(301)
    watch.sweep()
    watch.sweep()
    edge.reads = 0


def test_files_of_an_idle_agent_are_not_read_while_its_terminal_is_quiet(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    idle(scenario, edge, watch, 1, 2)
    for _ in range(5):
        scenario.clock.passes(5)
        watch.sweep()
    assert edge.reads == 0
    edge.seen["widgets-1_r1"] = replace(ALIVE, output_at=scenario.clock())
    watch.sweep()
    assert edge.reads == 1
    for reads in (2, 3):  # More may be written in the same second.
        scenario.clock.passes(1)
        watch.sweep()
        assert edge.reads == reads
    scenario.clock.passes(5)
    watch.sweep()
    assert edge.reads == 4
    watch.sweep()
    assert edge.reads == 4
    is_sent(scenario, "widgets-2")
    watch.sweep()
    assert edge.reads == 5, "a message may have arrived"


def test_files_of_idle_agents_are_read_after_a_minute_but_not_all_at_once(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    idle(scenario, edge, watch, 1, 2)
    scenario.clock.passes(61)
    watch.sweep()
    assert edge.reads == 1
    scenario.clock.passes(30)
    watch.sweep()
    assert edge.reads == 2


def test_the_exit_of_an_idle_agent_is_seen_at_once(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    idle(scenario, edge, watch, 1)
    del edge.seen["widgets-1_r1"]
    watch.sweep()
    assert programs(scenario) == ["dead"]


# -- the workspace at the end of a turn ------------------------------------------------------------


def test_the_end_of_a_turn_is_recorded_once_its_workspace_was_examined(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout, asked: list[str]
) -> None:
    running(scenario, edge, 1, 2)
    watch.sweep()
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    checkout.unclean = True
    watch.sweep()
    watch.sweep()
    assert the(scenario).activity is Activity.ACTIVE
    assert asked
    assert watch.examine() == 1
    assert the(scenario).activity is Activity.READY
    assert scenario.store.sessions.live()[0].work.dirty is True
    watch.sweep()
    assert watch.examine() == 0
    assert checkout.looks == 1


def test_commits_on_another_branch_are_recorded_at_the_end_of_the_turn_alone(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    watch.sweep()
    checkout.at = None  # The agent has renamed the branch.
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    checkout.elsewhere = OffBranch(head="b" * 40, branch="fix", adoptable=True)
    watch.sweep()
    watch.examine()
    work = scenario.store.sessions.live()[0].work
    assert (work.head, work.off_branch) == ("a" * 40, checkout.elsewhere)
    scenario.clock.passes(1)
    edge.says["widgets-1"] = Agent(activity=Activity.ACTIVE, since=scenario.clock())
    watch.sweep()
    assert scenario.store.sessions.live()[0].work.off_branch is None


def test_a_workspace_that_takes_long_to_examine_is_examined_once(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    watch.sweep()

    def sweeps() -> None:
        checkout.meanwhile = int
        watch.sweep()  # Nothing waits for it, and it is not requested again.

    checkout.meanwhile = sweeps
    assert watch.examine() == 1
    assert the(scenario).activity is Activity.READY
    assert checkout.looks == 1


def test_an_agent_that_continues_during_the_examination_was_not_at_rest(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    watch.sweep()
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    watch.sweep()

    def goes_on() -> None:
        del edge.says["widgets-1"]
        watch.sweep()  # Nothing waits for the examination.

    checkout.meanwhile = goes_on
    assert watch.examine() == 0
    assert the(scenario).activity is Activity.ACTIVE
    assert scenario.store.sessions.live()[0].work.dirty is None


@pytest.mark.parametrize(
    "fails",
    [GitFailure("status", "/x", "odd", "mend it"), FileNotFoundError("removed meanwhile")],
)
def test_an_unreadable_workspace_is_a_fact_and_examined_again(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout, fails: Exception
) -> None:
    running(scenario, edge, 1)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    checkout.fails = fails
    for _ in range(3):
        watch.sweep()
        watch.examine()
    assert the(scenario).activity is Activity.READY
    work = scenario.store.sessions.live()[0].work
    assert (work.dirty, work.unreadable) == (None, str(fails))
    checkout.fails = None
    watch.sweep()
    watch.examine()
    work = scenario.store.sessions.live()[0].work
    assert (work.dirty, work.unreadable) == (False, "")


@pytest.mark.parametrize(("seconds", "activity"), [(300, Activity.READY), (301, Activity.IDLE)])
def test_ready_for_longer_than_five_minutes_is_idle(
    scenario: Any, edge: Edge, watch: AgentObserver, seconds: float, activity: Activity
) -> None:
    running(scenario, edge, 1)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    watch.sweep()
    scenario.clock.passes(seconds)
    watch.sweep()
    watch.examine()
    assert the(scenario).activity is activity


@pytest.mark.parametrize("activity", [Activity.WAITING_INPUT, Activity.BLOCKED])
def test_an_open_question_keeps_its_time_whatever_a_new_reader_says(
    scenario: Any, edge: Edge, watch: AgentObserver, activity: Activity
) -> None:
    running(scenario, edge, 1)
    first = scenario.clock()
    asks: dict[str, Any] = {
        "activity": activity,
        "native_id": "talk",
        "question": "Which?",
        "error": "529",
    }
    edge.says["widgets-1"] = Agent(**asks, since=first)
    watch.sweep()
    scenario.clock.passes(60)
    later = scenario.clock()
    edge.says["widgets-1"] = Agent(**{**asks, "native_id": ""}, since=later)
    watch.sweep()
    assert (the(scenario).since, the(scenario).native_id) == (first, "talk")
    edge.says["widgets-1"] = Agent(**{**asks, "question": "Which one?"}, since=later)
    scenario.clock.passes(120)
    watch.sweep()
    assert the(scenario).since == later
