"""Usage is counted once, on its day, and summed up for budgets."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from bot.store import USAGE_GROUPS, Observation, Store, UsageFilter, UsageTotal
from lifecycle.model.facts import Agent, Ended, Spending, Usage
from lifecycle.model.status import Activity, Reason, Status
from tests.store.conftest import Scenario


@pytest.fixture
def name(scenario: Scenario) -> str:
    """A session in its first run, with nothing due."""
    name = scenario.session(12)
    scenario.decides(name, recheck_at=None)
    return name


def used(cost: float, run: int = 1, **more: object) -> Agent:
    """An agent's usage of its run so far: 100 tokens for each dollar."""
    usage = Usage(input=round(cost * 60), output=round(cost * 40), cost_usd=cost)
    return Agent(run=run, usage=usage, **more)  # type: ignore[arg-type]


def sees(scenario: Scenario, session: str, agent: Agent) -> None:
    scenario.store.observations.record(
        [Observation(session=session, run=agent.run, agent=agent)], scenario.now
    )


def test_growing_usage_is_counted(scenario: Scenario, store: Store, name: str) -> None:
    for cost in (1.0, 1.0, 3.5):
        sees(scenario, name, used(cost))
    spent = Spending(cost_usd=3.5, tokens=350)
    facts = store.facts.get(name)
    assert (facts.spent, facts.spent_ever, facts.spent_today) == (spent, spent, spent)
    session = store.sessions.get(name)
    assert session is not None
    assert (session.spent, session.spent_ever) == (spent, spent)


def test_the_usage_of_each_model_is_kept_in_steps_of_ten_minutes(
    scenario: Scenario, store: Store, name: str
) -> None:
    def sees_models(**models: float | None) -> None:
        one = {key: Usage(input=100, cost_usd=cost) for key, cost in models.items()}
        known = sum(cost or 0 for cost in models.values())
        usage = Usage(input=100 * len(one), cost_usd=known, models=one)
        sees(scenario, name, Agent(run=1, usage=usage))

    scenario.clock.now = datetime(2030, 1, 2, 10, 0, 30, tzinfo=UTC)
    sees_models(big=1.0)
    sees_models(big=1.0, small=None)
    scenario.clock.passes(600)
    sees_models(big=1.5, small=None, new=0.25)
    at = int(datetime(2030, 1, 2, 10, 0, tzinfo=UTC).timestamp())
    assert [
        (one.at - at, one.model, one.cost_usd, one.tokens, one.unpriced)
        for one in store.usage.steps(name)
    ] == [
        (0, "big", 1.0, 100, 0),
        (0, "small", 0.0, 100, 100),
        (600, "big", 0.5, 0, 0),
        (600, "new", 0.25, 100, 0),
    ]


def test_a_second_count_with_other_names_of_models_replaces_the_first(
    scenario: Scenario, store: Store, name: str
) -> None:
    sees(scenario, name, used(2.0))
    models = {"big": Usage(input=300, cost_usd=3.0)}
    sees(scenario, name, Agent(run=1, usage=Usage(input=300, cost_usd=3.0, models=models)))
    found = {one.model: (one.cost_usd, one.tokens) for one in store.usage.steps(name)}
    assert found == {"": (0.0, 0), "big": (3.0, 300)}


def test_cache_reads_do_not_count_as_tokens(scenario: Scenario, store: Store, name: str) -> None:
    usage = Usage(input=1, output=2, cache_read=1000, cache_write=4, reasoning=8)
    sees(scenario, name, Agent(run=1, usage=usage))
    assert store.facts.get(name).spent == Spending(tokens=15)


def test_a_reader_that_restarts_counts_nothing_twice(
    scenario: Scenario, store: Store, name: str
) -> None:
    for cost in (2.0, 0.0, 1.0, 2.0, 2.5):
        sees(scenario, name, used(cost))
    assert store.facts.get(name).spent.cost_usd == 2.5


def test_usage_counts_on_the_day_it_was_observed(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.clock.now = datetime(2030, 1, 2, 23, 59, tzinfo=UTC)
    sees(scenario, name, used(1.0))
    assert store.facts.get(name).spent_today.cost_usd == 1.0
    scenario.clock.now = datetime(2030, 1, 3, 0, 0, tzinfo=UTC)
    assert store.facts.get(name).spent_today == Spending()
    sees(scenario, name, used(3.0))
    facts = store.facts.get(name)
    assert (facts.spent.cost_usd, facts.spent_today.cost_usd) == (3.0, 2.0)


def test_the_usage_of_a_day_is_that_of_all_sessions_of_the_repository(
    scenario: Scenario, store: Store, name: str
) -> None:
    other = scenario.session(13)
    sees(scenario, name, used(1.0))
    scenario.decides(other)
    sees(scenario, other, used(2.0))
    facts = store.facts.get(name)
    assert (facts.spent.cost_usd, facts.spent_today.cost_usd) == (1.0, 3.0)


@pytest.mark.parametrize(
    "after",
    [Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED],
)
def test_an_ended_turn_counts_as_active_time(
    scenario: Scenario, store: Store, name: str, after: Activity
) -> None:
    begun = scenario.now
    sees(scenario, name, Agent(run=1, activity=Activity.ACTIVE, since=begun))
    scenario.clock.passes(30)
    assert store.facts.get(name).spent.active_seconds == 0, "it is under way"
    ended = Agent(run=1, activity=after, since=begun + timedelta(seconds=25))
    sees(scenario, name, ended)
    sees(scenario, name, ended)
    sees(scenario, name, used(1.0, activity=after, since=ended.since))
    assert store.facts.get(name).spent.active_seconds == 25


def test_a_turn_with_an_unobserved_end_lasts_until_the_next(
    scenario: Scenario, store: Store, name: str
) -> None:
    begun = scenario.now
    sees(scenario, name, Agent(run=1, activity=Activity.ACTIVE, since=begun))
    scenario.clock.passes(60)
    again = begun + timedelta(seconds=40)
    sees(scenario, name, Agent(run=1, activity=Activity.ACTIVE, since=again))
    assert store.facts.get(name).spent.active_seconds == 40


def test_a_turn_cut_off_by_a_stop_lasts_until_the_stop(
    scenario: Scenario, store: Store, name: str
) -> None:
    active = Agent(run=1, activity=Activity.ACTIVE, since=scenario.now)
    sees(scenario, name, active)
    scenario.clock.passes(60)
    sees(scenario, name, msgspec.structs.replace(active, activity=Activity.EXITED))
    assert store.facts.get(name).spent.active_seconds == 60


def test_the_first_observation_of_a_run_ends_no_turn(
    scenario: Scenario, store: Store, name: str
) -> None:
    sees(scenario, name, Agent(run=1, activity=Activity.ACTIVE, since=scenario.now))
    scenario.decides(name, run=2)
    scenario.clock.passes(3600)
    sees(scenario, name, Agent(run=2, since=scenario.now))
    assert store.facts.get(name).spent.active_seconds == 0


def test_a_restored_session_starts_with_an_unused_budget(
    scenario: Scenario, store: Store, name: str
) -> None:
    sees(scenario, name, used(1.0))
    ended = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="", at=scenario.now)
    scenario.decides(name, status="killed", ended=ended)
    assert store.facts.get(name).restored_at is None
    restored = scenario.clock.passes(60)
    scenario.decides(name, status="queued", ended=None)
    assert store.facts.get(name).spent == Spending()
    scenario.decides(name, run=2)
    sees(scenario, name, used(0.5, run=2))
    facts = store.facts.get(name)
    assert (facts.spent.cost_usd, facts.spent_ever.cost_usd) == (0.5, 1.5)
    assert facts.restored_at == restored


def test_a_noticeable_cost_of_the_day_wakes_the_other_sessions(
    scenario: Scenario, store: Store, name: str
) -> None:
    other = scenario.session(13)
    scenario.decides(other, recheck_at=None)
    sees(scenario, name, used(0.10))
    sees(scenario, name, used(0.20))
    assert store.sessions.due(scenario.now) == [name]
    sees(scenario, name, used(0.30))
    assert sorted(store.sessions.due(scenario.now)) == [name, other]


def test_a_restarted_bot_continues_the_count(
    scenario: Scenario, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    sees(scenario, name, used(1.0))
    store.close()
    later = open_store()
    later.observations.record([Observation(session=name, run=1, agent=Agent(run=1))], scenario.now)
    later.observations.record([Observation(session=name, run=1, agent=used(1.25))], scenario.now)
    assert later.facts.get(name).spent.cost_usd == 1.25


def test_tokens_are_unpriced_until_their_price_is_reported(
    scenario: Scenario, store: Store, name: str
) -> None:
    for usage in (Usage(input=9, unpriced=9), Usage(input=12, unpriced=3, cost_usd=0.5)):
        sees(scenario, name, Agent(run=1, usage=usage))
        assert store.facts.get(name).spent.unpriced == usage.unpriced
        assert store.facts.get(name).spent_today.unpriced == usage.unpriced
    assert store.facts.get(name).spent == Spending(tokens=12, unpriced=3, cost_usd=0.5)


def test_usage_is_summed_by_each_group(scenario: Scenario, store: Store, name: str) -> None:
    scenario.clock.now = datetime(2030, 1, 2, 12, tzinfo=UTC)
    sees(scenario, name, used(1.0))
    scenario.decides(name, run=2)
    other = scenario.session(13)
    store.agents.assign(other, "ada", "shell", 1)
    scenario.decides(other)
    scenario.clock.now = datetime(2030, 1, 3, 12, tzinfo=UTC)
    usage = Usage(
        input=1, output=2, cache_read=3, cache_write=4, reasoning=5, cost_usd=2.0, unpriced=6
    )
    sees(scenario, name, Agent(run=2, usage=usage))
    sees(scenario, other, used(4.0))
    costs = {
        by: {each.name: (each.sessions, each.cost_usd) for each in store.usage.totals(by)}
        for by in USAGE_GROUPS
    }
    assert costs == {
        "session": {"widgets-12": (1, 3.0), "widgets-13": (1, 4.0)},
        "run": {"widgets-12_r1": (1, 1.0), "widgets-12_r2": (1, 2.0), "widgets-13_r1": (1, 4.0)},
        "agent": {"": (1, 3.0), "ada": (1, 4.0)},
        "issue": {"acme/widgets#12": (1, 3.0), "acme/widgets#13": (1, 4.0)},
        "repository": {"acme/widgets": (2, 7.0)},
        "person": {"ada": (2, 7.0)},
        "day": {"2030-01-03": (2, 6.0), "2030-01-02": (1, 1.0)},
    }
    assert [each.name for each in store.usage.totals("day")] == ["2030-01-03", "2030-01-02"]
    first, second = store.usage.totals("run", name)
    assert (first.name, second.name) == ("widgets-12_r1", "widgets-12_r2")
    assert second == UsageTotal(
        name="widgets-12_r2",
        sessions=1,
        input=1,
        output=2,
        cache_read=3,
        cache_write=4,
        reasoning=5,
        cost_usd=2.0,
        unpriced=6,
        active_seconds=0.0,
    )


@pytest.mark.parametrize(
    ("among", "days"),
    [
        (UsageFilter(), {"2030-01-02": 1.0, "2030-01-03": 6.0}),
        (UsageFilter(first="2030-01-03"), {"2030-01-03": 6.0}),
        (UsageFilter(last="2030-01-02"), {"2030-01-02": 1.0}),
        (UsageFilter(first="2030-01-03", agent="ada"), {"2030-01-03": 4.0}),
        (UsageFilter(person="ADA", repository="acme/widgets"), {"2030-01-02": 1, "2030-01-03": 6}),
        (UsageFilter(person="bob"), {}),
        (UsageFilter(repository="acme/gears"), {}),
    ],
    ids=repr,
)
def test_usage_is_filtered(
    scenario: Scenario, store: Store, name: str, among: UsageFilter, days: dict[str, float]
) -> None:
    other = scenario.session(13)
    store.agents.assign(other, "ada", "shell", 0)
    scenario.decides(other)
    for day, session, cost in ((2, name, 1.0), (3, name, 3.0), (3, other, 4.0)):
        scenario.clock.now = datetime(2030, 1, day, 12, tzinfo=UTC)
        sees(scenario, session, used(cost))
    assert {one.name: one.cost_usd for one in store.usage.totals("day", among=among)} == days
    found = dict.fromkeys(days, 0.0)
    for row in store.usage.rows(among):
        found[row.day] += row.cost_usd
    assert found == days


def free(usage: Usage) -> Usage:
    """No price is known."""
    return msgspec.structs.replace(usage, unpriced=usage.tokens)


def dear(usage: Usage) -> Usage:
    """One dollar per token."""
    return msgspec.structs.replace(usage, cost_usd=float(usage.tokens))


def proxied(store: Store, session: str, tokens: int, run: int = 1, model: str = "m") -> None:
    used = Usage(input=tokens - 1, output=1, cache_read=2)
    store.usage.record_response(session, run, model, used, free)


def reported(tokens: int, run: int = 1, **more: object) -> Agent:
    usage = Usage(input=tokens - 1, output=1, **more)  # type: ignore[arg-type]
    return Agent(run=run, usage=usage)


def test_the_proxys_count_is_used_if_the_program_reports_none(
    scenario: Scenario, store: Store, name: str
) -> None:
    assert not store.sessions.due(scenario.now)
    proxied(store, name, 10)
    assert store.sessions.due(scenario.now) == [name], "a budget may be used up"
    proxied(store, name, 5, model="n")
    assert store.facts.get(name).spent == Spending(tokens=15, unpriced=15)
    (used,) = store.usage.totals("run", name)
    assert (used.input, used.output, used.cache_read) == (13, 2, 4)


def test_program_and_proxy_count_a_run_once_whichever_is_ahead(
    scenario: Scenario, store: Store, name: str
) -> None:
    for proxy, program, counted in ((10, 10, 10), (10, 15, 20), (0, 25, 25), (10, 25, 30)):
        if proxy:
            proxied(store, name, proxy)
        sees(scenario, name, reported(program))
        assert store.facts.get(name).spent.tokens == counted
    (used,) = store.usage.totals("run", name)
    assert used.input + used.output == 30


def test_the_proxys_count_continues_after_a_resume_and_a_restart(
    scenario: Scenario, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    proxied(store, name, 10)
    sees(scenario, name, reported(10))
    scenario.decides(name, run=2)
    proxied(store, name, 7, run=2)
    proxied(store, name, 1, run=1)  # A late response of the run before.
    store.close()
    later = open_store()
    later.observations.record(
        [Observation(session=name, run=2, agent=reported(7, run=2))], scenario.now
    )
    proxied(later, name, 3, run=2)
    assert [used.output + used.input for used in later.usage.totals("run", name)] == [11, 10]
    assert later.facts.get(name).spent.tokens == 21


def test_a_programs_own_price_is_used_once_it_reports_all_tokens(
    scenario: Scenario, store: Store, name: str
) -> None:
    used = Usage(input=9, output=1)
    store.usage.record_response(name, 1, "m", used, dear)
    assert store.facts.get(name).spent.cost_usd == 10.0
    sees(scenario, name, reported(5, cost_usd=1.0))
    assert store.facts.get(name).spent.cost_usd == 10.0, "of half of it"
    sees(scenario, name, reported(10, cost_usd=2.0))
    assert store.facts.get(name).spent == Spending(cost_usd=2.0, tokens=10)


def test_a_proxy_count_without_prices_removes_no_cost(
    scenario: Scenario, store: Store, name: str
) -> None:
    sees(scenario, name, reported(10, cost_usd=2.0))
    proxied(store, name, 15)
    assert store.facts.get(name).spent == Spending(cost_usd=2.0, tokens=15, unpriced=5)
    sees(scenario, name, reported(15, cost_usd=3.0))
    assert store.facts.get(name).spent == Spending(cost_usd=3.0, tokens=15)


def each_dear(usage: Usage) -> Usage:
    """One dollar per token of each model."""
    models = {name: dear(one) for name, one in usage.models.items()}
    return msgspec.structs.replace(dear(usage), models=models)


def test_a_forged_report_lowers_no_cost_that_the_proxy_counted(
    scenario: Scenario, store: Store, name: str
) -> None:
    """An agent's report that its tokens were free changes nothing, neither before nor after."""

    def requests(tokens: int) -> None:
        store.usage.record_response(name, 1, "dear", Usage(input=tokens), each_dear)

    sees(scenario, name, reported(100, cost_usd=0.0))
    requests(10)
    assert store.facts.get(name).spent == Spending(cost_usd=10.0, tokens=100)
    requests(5)
    sees(scenario, name, reported(200, cost_usd=0.0))
    sees(scenario, name, reported(300, cost_usd=1.0))
    assert store.facts.get(name).spent == Spending(cost_usd=15.0, tokens=300)
    assert sum(step.cost_usd for step in store.usage.steps(name)) == pytest.approx(15.0)
    sees(scenario, name, reported(400, cost_usd=20.0))
    assert store.facts.get(name).spent == Spending(cost_usd=20.0, tokens=400)
    assert sum(step.cost_usd for step in store.usage.steps(name)) == pytest.approx(20.0)
