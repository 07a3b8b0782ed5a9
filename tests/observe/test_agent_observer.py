"""The agent observer: failed observations, unlikely mass exits, receipts."""

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from bot.observe.agents import AgentObserver
from lifecycle.model import keys
from lifecycle.model.actions import Stop
from lifecycle.model.facts import Agent, Exit
from lifecycle.model.key import parse
from lifecycle.model.status import Activity, Probe, Reason
from runtimes.base import Seen, Unavailable
from tests.harness.edges import (
    ALIVE,
    PROJECTS,
    Checkout,
    Edge,
    incidents,
    is_received,
    is_sent,
    programs,
    running,
    the,
)

# -- failed observations ---------------------------------------------------------------------------


def test_a_failed_observation_changes_only_the_probes(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    edge.says["widgets-1"] = Agent(activity=Activity.WAITING_INPUT, question="Which?")
    watch.sweep()
    before = the(scenario)
    edge.fails = Unavailable("no tmux")
    for rounds in (1, 2, 3):
        watch.sweep()
        probe_failure = the(scenario).probe_failure
        assert probe_failure is not None
        assert probe_failure.rounds == rounds
    assert incidents(scenario) == ["runtime"]
    assert watch.sweep() == 0  # Observations are counted up to the configured number.
    probes = {"runtime": Probe.ALIVE, "program": Probe.ALIVE, "probe_failure": None}
    assert replace(the(scenario), **probes) == before
    edge.fails = None
    watch.sweep()
    assert the(scenario) == before
    assert incidents(scenario) == []


def test_agents_are_read_although_no_screen_can_be(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    edge.screens_fail = Unavailable("no screens")
    assert watch.sweep() == 1


def test_one_unreadable_agent_does_not_keep_the_others_from_being_read(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1, 2)
    edge.unreadable.add("widgets-1")
    assert watch.sweep() == 1
    assert [live.agent.activity for live in scenario.store.sessions.live()] == ["none", "active"]


def test_a_session_of_an_unconfigured_project_is_not_observed(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    watch.locations.projects = {}
    assert watch.sweep() == 0
    watch.locations.projects, watch.locations.adapters = PROJECTS, {}
    assert watch.sweep() == 0


# -- contradictory probes --------------------------------------------------------------------------


def test_contradictory_observations_are_counted_while_their_evidence_is_the_same(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    edge.seen["widgets-1_r1"] = Seen(runtime=Probe.DEAD, program=Probe.ALIVE)
    began = scenario.clock()
    for rounds in (1, 2, 3, 3):
        watch.sweep()
        probe_failure = the(scenario).probe_failure
        assert probe_failure is not None
        assert (probe_failure.since, probe_failure.rounds) == (began, rounds)
        scenario.clock.passes(5)
    edge.seen["widgets-1_r1"] = Seen(runtime=Probe.DEAD, program=Probe.UNKNOWN)
    watch.sweep()
    probe_failure = the(scenario).probe_failure
    assert probe_failure is not None
    assert (probe_failure.since, probe_failure.rounds) == (scenario.clock(), 1)
    edge.seen["widgets-1_r1"] = ALIVE
    watch.sweep()
    assert the(scenario).probe_failure is None


# -- many exits at once ----------------------------------------------------------------------------


def test_a_single_program_that_vanished_is_dead(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1, 2)
    del edge.seen["widgets-1_r1"]
    watch.sweep()
    assert programs(scenario) == ["dead", "alive"]


def test_a_program_that_is_being_stopped_does_not_count_as_crashed(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    watch.sweep()
    edge.seen.clear()
    scenario.orders("widgets-1", Stop(key=parse("park:work#1"), run=1))
    watch.sweep()
    assert the(scenario).program is Probe.ALIVE
    (due,) = scenario.store.outbox.due(scenario.clock())
    scenario.store.outbox.mark_failed(due.seq, Reason.ACTION_FAILED, "it hangs", scenario.clock())
    watch.sweep()
    assert the(scenario).program is Probe.DEAD


def test_five_lost_programs_and_more_than_half_are_an_incident_and_do_not_count_as_dead(
    scenario: Any, edge: Edge, watch: AgentObserver, caplog: pytest.LogCaptureFixture
) -> None:
    running(scenario, edge, *range(1, 10))
    for number in range(1, 6):
        del edge.seen[f"widgets-{number}_r1"]
    watch.sweep()
    assert programs(scenario) == ["unknown"] * 5 + ["alive"] * 4
    assert {live.agent.activity for live in scenario.store.sessions.live()} == {Activity.ACTIVE}
    assert incidents(scenario) == ["many-lost"]
    assert "no agent counts as exited" in caplog.text
    watch.sweep()
    assert programs(scenario)[0] == "unknown"
    assert caplog.text.count("no agent counts as exited") == 1
    edge.seen["widgets-5_r1"] = ALIVE
    watch.sweep()
    assert programs(scenario) == ["dead"] * 4 + ["alive"] * 5
    assert incidents(scenario) == []


@pytest.mark.parametrize(("lost", "all_of_them"), [(4, 4), (5, 10)])
def test_four_lost_programs_or_half_of_all_count_as_dead(
    scenario: Any, edge: Edge, watch: AgentObserver, lost: int, all_of_them: int
) -> None:
    running(scenario, edge, *range(1, all_of_them + 1))
    for number in range(1, lost + 1):
        del edge.seen[f"widgets-{number}_r1"]
    watch.sweep()
    assert programs(scenario).count("dead") == lost


@pytest.mark.parametrize("shown", [True, False])
def test_a_program_that_was_dead_before_counts_neither_as_lost_nor_as_alive(
    scenario: Any, edge: Edge, watch: AgentObserver, shown: bool
) -> None:
    running(scenario, edge, *range(1, 5))
    end = Seen(runtime=Probe.ALIVE, program=Probe.DEAD, exit=Exit(at=scenario.clock(), code=1))
    edge.seen = dict.fromkeys(edge.seen, end) if shown else {}
    watch.sweep()
    assert programs(scenario) == ["dead"] * 4
    reads = edge.reads
    running(scenario, edge, *range(5, 14))
    for number in range(5, 10):
        del edge.seen[f"widgets-{number}_r1"]
    watch.sweep()
    assert Counter(programs(scenario)) == {"dead": 4, "unknown": 5, "alive": 4}
    assert edge.reads == reads + 9


@pytest.mark.parametrize("shown", [True, False])
def test_programs_that_were_dead_before_do_not_turn_few_losses_into_many(
    scenario: Any, edge: Edge, watch: AgentObserver, shown: bool
) -> None:
    running(scenario, edge, *range(1, 5))
    gone = Seen(runtime=Probe.DEAD, program=Probe.DEAD)
    edge.seen = dict.fromkeys(edge.seen, gone) if shown else {}
    watch.sweep()
    running(scenario, edge, *range(5, 12))
    for number in range(5, 9):
        del edge.seen[f"widgets-{number}_r1"]
    watch.sweep()
    assert Counter(programs(scenario)) == {"dead": 8, "alive": 3}


def test_an_unproved_exit_is_left_to_the_next_sweep(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    is_sent(scenario, "widgets-1")
    edge.seen.clear()
    assert watch.confirm_receipts() == 1
    assert programs(scenario) == ["alive"]
    watch.sweep()
    assert programs(scenario) == ["dead"]


# -- receipts --------------------------------------------------------------------------------------


def test_an_agent_that_was_sent_a_message_is_looked_at_until_it_has_arrived(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1, 2)
    assert watch.confirm_receipts() == 0
    key = is_sent(scenario, "widgets-1")
    assert watch.confirm_receipts() == 1
    assert edge.reads == 1, "no other agent is read"
    edge.received.add(keys.visible("widgets-1", key))
    assert watch.confirm_receipts() == 1
    assert key in scenario.store.facts.get("widgets-1").done
    assert watch.confirm_receipts() == 0


def test_a_missing_message_is_not_looked_for_again_and_again(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    key = is_sent(scenario, "widgets-1")
    scenario.clock.passes(8)
    assert watch.confirm_receipts() == 1
    assert scenario.store.facts.get("widgets-1").sent[key].missing
    assert watch.confirm_receipts() == 0


def test_a_message_is_not_missing_while_the_runtime_does_not_answer(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, 1)
    key = is_sent(scenario, "widgets-1")
    edge.fails = Unavailable("no tmux")
    scenario.clock.passes(8)
    watch.confirm_receipts()
    assert not scenario.store.facts.get("widgets-1").sent[key].missing


def test_a_message_and_the_turn_it_led_to_are_recorded_together(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    key = is_received(scenario, edge, "widgets-1")
    sent_at = scenario.clock()
    scenario.clock.passes(20)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    watch.sweep()
    assert key not in scenario.store.facts.get("widgets-1").done
    watch.examine()
    assert the(scenario).activity is Activity.READY
    assert scenario.store.facts.get("widgets-1").done[key].at == sent_at


def test_a_message_that_arrives_while_the_workspace_is_examined_is_recorded_at_once(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    watch.sweep()
    key = is_received(scenario, edge, "widgets-1")
    scenario.clock.passes(20)
    watch.sweep()
    assert scenario.store.facts.get("widgets-1").done[key].at == scenario.clock()


def test_a_message_counts_from_when_it_was_sent_however_long_its_turn_is_examined(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    key = is_received(scenario, edge, "widgets-1")
    sent_at = scenario.clock()
    scenario.clock.passes(20)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    for _ in range(3):
        watch.sweep()
        scenario.clock.passes(5)
    assert key not in scenario.store.facts.get("widgets-1").done
    watch.examine()
    assert scenario.store.facts.get("widgets-1").done[key].at == sent_at


def test_a_message_that_is_sent_again_during_an_examination_is_not_missing_after_it(
    scenario: Any, edge: Edge, watch: AgentObserver, checkout: Checkout
) -> None:
    running(scenario, edge, 1)
    key = is_sent(scenario, "widgets-1")
    scenario.clock.passes(8)
    edge.says["widgets-1"] = Agent(activity=Activity.READY, since=scenario.clock())
    watch.sweep()

    def sent_again() -> None:
        watch.sweep()
        assert scenario.store.facts.get("widgets-1").sent[key].missing
        assert is_sent(scenario, "widgets-1") == key

    checkout.meanwhile = sent_again
    watch.examine()
    assert the(scenario).activity is Activity.READY
    assert not scenario.store.facts.get("widgets-1").sent[key].missing


def test_recorded_exits_count_however_many_there_are(
    scenario: Any, edge: Edge, watch: AgentObserver
) -> None:
    running(scenario, edge, *range(1, 7))
    end = Exit(at=scenario.clock(), lost="the machine was restarted")
    for name in edge.seen:
        edge.seen[name] = Seen(runtime=Probe.DEAD, program=Probe.DEAD, exit=end)
    watch.sweep()
    assert programs(scenario) == ["dead"] * 6
    assert [live.agent.exit for live in scenario.store.sessions.live()] == [end] * 6
    assert incidents(scenario) == []
