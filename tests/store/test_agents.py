"""The record of an agent, computed from its sessions."""

from datetime import timedelta

from msgspec.structs import replace

from bot.store import AgentEnd, AgentRecord, Observation, Store
from lifecycle.model import keys
from lifecycle.model.actions import Action, Prompt, SendMessage, Start
from lifecycle.model.facts import Agent, Ended, Usage, Work
from lifecycle.model.key import parse
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Scenario


def message(prompt: str, number: int) -> Action:
    return SendMessage(
        key=keys.reword(f"{prompt}{number}").of_run(1), run=1, prompt=Prompt(name=prompt)
    )


def works(scenario: Scenario, number: int, agent: str, *actions: Action) -> str:
    """A session of an agent in which these things were done."""
    assert scenario.store.sessions.create(replace(scenario.new_session(number), agent_name=agent))
    name = f"widgets-{number}"
    scenario.decides(name, *actions)
    for _ in actions:
        (due,) = [each for each in scenario.store.outbox.due(scenario.now) if each.session == name]
        scenario.store.outbox.mark_done(due.seq, "", scenario.now)
    return name


def ends(scenario: Scenario, name: str, status: Status, seconds: float) -> None:
    scenario.clock.passes(seconds)
    ended = Ended(status=status, reason=Reason.PR_MERGED, because="so it was", at=scenario.now)
    scenario.decides(name, status=status, ended=ended)


def test_an_agents_record_counts_sessions_outcomes_repairs_cost_and_time(
    scenario: Scenario, store: Store
) -> None:
    first = works(
        scenario, 1, "ada", Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    )
    ends(scenario, first, Status.MERGED, 60)
    second = works(
        scenario, 2, "ada", message("fix_ci", 1), message("fix_ci", 2), message("address_review", 1)
    )
    usage = Agent(run=1, usage=Usage(output=5, cost_usd=1.5))
    store.observations.record([Observation(session=second, run=1, agent=usage)], scenario.now)
    ends(scenario, second, Status.MERGED, 120)
    ends(scenario, works(scenario, 3, "ada"), Status.KILLED, 600)
    works(scenario, 4, "ada")
    works(scenario, 5, "ben")
    ada, ben = store.agents.records()
    assert ada == AgentRecord(
        agent="ada",
        sessions=4,
        live=1,
        outcomes={"killed": 1, "merged": 2},
        first_pass=1,
        repairs=2,
        review_rounds=1,
        cost_usd=1.5,
        tokens=5,
        seconds_to_merge=90.0,
    )
    assert ada.first_pass_rate == 0.5
    assert store.agents.history("ada") == (
        ada,
        [
            AgentEnd(scenario.now - timedelta(seconds=seconds), outcome)
            for seconds, outcome in ((720, "merged"), (600, "merged"), (0, "killed"))
        ],
    )
    assert (ben.agent, ben.sessions, ben.seconds_to_merge, ben.first_pass_rate) == (
        "ben",
        1,
        None,
        None,
    )


def test_a_repair_counts_once_its_message_is_delivered(scenario: Scenario, store: Store) -> None:
    begun = Start(key=parse("start:message#2"), run=2, prompt=Prompt(name="address_review"))
    ends(scenario, works(scenario, 1, "ada", begun), Status.MERGED, 5)
    scenario.decides(works(scenario, 2, "ada"), message("fix_ci", 1))
    (ada,) = store.agents.records()
    assert (ada.first_pass, ada.review_rounds, ada.repairs) == (0, 1, 0)


def commits(scenario: Scenario, name: str, head: str, run: int) -> None:
    scenario.decides(name, run=run)
    seen = Observation(session=name, run=run, agent=Agent(run=run), work=Work(head=head))
    scenario.store.observations.record([seen], scenario.now)


def outcomes(store: Store) -> dict[str, tuple[int, int, dict[str, int]]]:
    return {
        one.agent: (one.sessions, one.live, dict(one.outcomes)) for one in store.agents.records()
    }


def test_after_a_handover_each_agent_has_its_own_messages_and_outcome(
    scenario: Scenario, store: Store
) -> None:
    name = works(scenario, 1, "ada", message("fix_ci", 1))
    commits(scenario, name, "a1", 1)
    store.agents.assign(name, "ben", "shell", 2)
    assert outcomes(store) == {"ada": (1, 0, {"handed_over": 1}), "ben": (1, 1, {})}
    commits(scenario, name, "b2", 2)
    ends(scenario, name, Status.MERGED, 60)
    ada, ben = store.agents.records()
    assert outcomes(store) == {"ada": (1, 0, {"handed_over": 1}), "ben": (1, 0, {"merged": 1})}
    assert (ada.repairs, ben.repairs, ben.first_pass) == (1, 0, 0)
    assert (ada.seconds_to_merge, ben.seconds_to_merge) == (None, 60.0)


def test_a_merge_is_the_outcome_of_the_agent_that_committed_last(
    scenario: Scenario, store: Store
) -> None:
    name = works(scenario, 1, "ada")
    commits(scenario, name, "a1", 1)
    for run, agent in ((2, "ben"), (3, "eve")):
        store.agents.assign(name, agent, "shell", run)
        commits(scenario, name, "a1", run)
    ends(scenario, name, Status.MERGED, 60)
    assert outcomes(store) == {
        "ada": (1, 0, {"merged": 1}),
        "ben": (1, 0, {"handed_over": 1}),
        "eve": (1, 0, {"handed_over": 1}),
    }


def test_an_agent_keeps_the_outcome_of_a_session_that_another_brings_back(
    scenario: Scenario, store: Store
) -> None:
    name = works(scenario, 1, "ada")
    ends(scenario, name, Status.ERRORED, 60)
    scenario.decides(name, status="queued", ended=None)
    assert outcomes(store) == {"ada": (1, 1, {})}
    store.agents.assign(name, "ben", "shell", 2)
    assert outcomes(store) == {"ada": (1, 0, {"errored": 1}), "ben": (1, 1, {})}
    store.agents.assign(name, "eve", "shell", 3)
    assert outcomes(store)["ben"] == (1, 0, {"handed_over": 1})


def test_a_handover_before_the_first_run_leaves_nothing_behind(
    scenario: Scenario, store: Store
) -> None:
    name = works(scenario, 1, "ada")
    store.agents.assign(name, "ben", "shell", 1)
    assert outcomes(store) == {"ben": (1, 1, {})}
