"""The usage of a run is charged to its repository, its requester and its agent."""

import pytest
from msgspec.structs import replace

from bot.store import Observation, Store
from bot.store.usage import STEPS
from lifecycle.model.facts import Agent, Spending, Usage
from lifecycle.model.status import Activity
from tests.store.conftest import Clock, Scenario

USED = Usage(input=60, output=40)


def uses(store: Store, session: str, run: int, used: Usage = USED, usd: float = 0.01) -> None:
    store.usage.record_response(
        session, run, "a-model", used, lambda usage: replace(usage, cost_usd=usage.tokens * usd)
    )


def test_usage_of_a_day_counts_for_its_repository_requester_and_agent(
    scenario: Scenario, store: Store, clock: Clock
) -> None:
    one, other = scenario.session(1), scenario.session(2)
    store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET requester = 'eve', agent_name = 'bob' WHERE id = ?", (other,)
        )
    )
    uses(store, one, 1)
    uses(store, other, 1)
    alone = Spending(tokens=100, cost_usd=1.0)
    for session in (one, other):
        facts = store.facts.get(session)
        assert facts.spent_today.tokens == 200
        assert facts.spent_by_person == alone
        assert facts.spent_by_agent == alone
    clock.passes(86_400)
    for session in (one, other):
        facts = store.facts.get(session)
        assert facts.spent_ever.tokens == 100
        days = {facts.spent_today, facts.spent_by_person, facts.spent_by_agent}
        assert days == {Spending()}


def test_usage_of_a_run_remains_its_agents_after_a_handover(
    scenario: Scenario, store: Store
) -> None:
    session = scenario.session(1)
    uses(store, session, 1)
    store.agents.assign(session, "bob", "codex", 2)
    uses(store, session, 2)
    uses(store, session, 1)
    store.agents.assign(session, "cid", "codex", 3)
    assert store.facts.get(session).spent_by_agent == Spending()
    by_agent = {row.name: row.input for row in store.usage.totals("agent")}
    assert by_agent == {"": 120, "bob": 60}
    records = {one.agent: one for one in store.agents.records()}
    assert {name: one.cost_usd for name, one in records.items()} == {"": 2.0, "bob": 1.0, "cid": 0}
    assert {name: one.sessions for name, one in records.items()} == {"": 1, "bob": 1, "cid": 1}


def test_tokens_without_a_price_wake_the_other_sessions_of_the_repository(
    scenario: Scenario, store: Store
) -> None:
    one, other = scenario.session(1), scenario.session(2)
    scenario.decides(other)
    uses(store, one, 1, Usage(input=int(STEPS["tokens"]) - 1), usd=0.0)
    assert other not in store.sessions.due(scenario.now)
    uses(store, one, 1, Usage(output=1), usd=0.0)
    assert other in store.sessions.due(scenario.now)


@pytest.mark.parametrize("shared", ["repository", "requester", "agent_name"])
def test_usage_wakes_the_sessions_that_share_a_budget_of_the_day(
    scenario: Scenario, store: Store, shared: str
) -> None:
    """Sessions of other repositories are woken too, and also when the recorded cost decreases."""
    others = {"repository": "acme/gears", "requester": "bob", "agent_name": "gill"}
    values = {
        1: {},
        2: {name: other for name, other in others.items() if name != shared},
        3: others,
    }
    for number, changed in values.items():
        store.sessions.create(replace(scenario.new_session(number), **changed))
        scenario.decides(f"widgets-{number}", recheck_at=None)

    def woken(agent: Agent) -> list[str]:
        seen = Observation(session="widgets-1", run=1, agent=agent)
        store.observations.record([seen], scenario.now)
        due = store.sessions.due(scenario.now)
        for session in due:
            scenario.decides(session, recheck_at=None)
        return sorted({*due} - {"widgets-1"})

    def used(dollars: float) -> Agent:
        return Agent(run=1, usage=Usage(input=100, cost_usd=dollars))

    assert [woken(used(0.2)), woken(used(0.3)), woken(used(0.4))] == [[], ["widgets-2"], []]
    assert woken(used(0.1)) == ["widgets-2"]
    began = scenario.now
    turn = replace(used(0.1), activity=Activity.ACTIVE, since=began)
    assert woken(turn) == []
    rest = replace(turn, activity=Activity.READY, since=scenario.clock.passes(700))
    assert woken(rest) == ["widgets-2"]


def test_the_sessions_of_an_issue_share_its_budget(scenario: Scenario, store: Store) -> None:
    first, other = scenario.session(12), scenario.session(13)
    second = replace(scenario.new_session(12), id="widgets-12b", branch="b")
    prompts = [replace(scenario.new_session(0), id=f"widgets-p{n}", branch=f"p{n}") for n in (1, 2)]
    for new in (second, *prompts):
        assert store.sessions.create(new)
    for session in (first, second.id, other, "widgets-p1"):
        uses(store, session, 1)
        uses(store, session, 2)
    for session, beside in (
        (first, 200),
        (second.id, 200),
        (other, 0),
        ("widgets-p1", 0),
        ("widgets-p2", 0),
    ):
        assert store.facts.get(session).spent_beside.tokens == beside, session
