"""What agents used is counted once, on its day, and comes to sums that budgets are held to."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from bot.store import GROUPS, Observation, Store, UsageTotal
from lifecycle.model.facts import Agent, Ended, Spending, Usage
from lifecycle.model.status import Activity, Reason, Status
from tests.store.conftest import Room


@pytest.fixture
def name(room: Room) -> str:
    """A session in its first run, with nothing due."""
    name = room.session(12)
    room.decides(name, recheck_at=None)
    return name


def used(cost: float, run: int = 1, **more: object) -> Agent:
    """What an agent counts of its run so far: 100 tokens for each dollar."""
    usage = Usage(input=round(cost * 60), output=round(cost * 40), cost_usd=cost)
    return Agent(run=run, usage=usage, **more)  # type: ignore[arg-type]


def sees(room: Room, session: str, agent: Agent) -> None:
    room.store.observations.record(
        [Observation(session=session, run=agent.run, agent=agent)], room.now
    )


def test_usage_that_grows_is_spent(room: Room, store: Store, name: str) -> None:
    for cost in (1.0, 1.0, 3.5):
        sees(room, name, used(cost))
    spent = Spending(cost_usd=3.5, tokens=350)
    facts = store.facts.get(name)
    assert (facts.spent, facts.spent_ever, facts.spent_today) == (spent, spent, spent)
    session = store.sessions.get(name)
    assert session is not None
    assert (session.spent, session.spent_ever) == (spent, spent)


def test_what_was_read_from_a_cache_is_no_new_work(room: Room, store: Store, name: str) -> None:
    usage = Usage(input=1, output=2, cache_read=1000, cache_write=4, reasoning=8)
    sees(room, name, Agent(run=1, usage=usage))
    assert store.facts.get(name).spent == Spending(tokens=15)


def test_a_reader_that_begins_anew_counts_nothing_twice(
    room: Room, store: Store, name: str
) -> None:
    for cost in (2.0, 0.0, 1.0, 2.0, 2.5):
        sees(room, name, used(cost))
    assert store.facts.get(name).spent.cost_usd == 2.5


def test_usage_goes_to_the_day_it_was_seen_on(room: Room, store: Store, name: str) -> None:
    room.clock.now = datetime(2030, 1, 2, 23, 59, tzinfo=UTC)
    sees(room, name, used(1.0))
    assert store.facts.get(name).spent_today.cost_usd == 1.0
    room.clock.now = datetime(2030, 1, 3, 0, 0, tzinfo=UTC)
    assert store.facts.get(name).spent_today == Spending()
    sees(room, name, used(3.0))
    facts = store.facts.get(name)
    assert (facts.spent.cost_usd, facts.spent_today.cost_usd) == (3.0, 2.0)


def test_a_day_is_of_all_sessions_of_the_repository(room: Room, store: Store, name: str) -> None:
    other = room.session(13)
    sees(room, name, used(1.0))
    room.decides(other)
    sees(room, other, used(2.0))
    facts = store.facts.get(name)
    assert (facts.spent.cost_usd, facts.spent_today.cost_usd) == (1.0, 3.0)


@pytest.mark.parametrize(
    "after",
    [Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED],
)
def test_a_turn_that_ends_is_active_time(
    room: Room, store: Store, name: str, after: Activity
) -> None:
    begun = room.now
    sees(room, name, Agent(run=1, activity=Activity.ACTIVE, since=begun))
    room.clock.passes(30)
    assert store.facts.get(name).spent.active_seconds == 0, "it is under way"
    ended = Agent(run=1, activity=after, since=begun + timedelta(seconds=25))
    sees(room, name, ended)
    sees(room, name, ended)
    sees(room, name, used(1.0, activity=after, since=ended.since))
    assert store.facts.get(name).spent.active_seconds == 25


def test_a_turn_whose_end_nobody_saw_lasted_until_the_next(
    room: Room, store: Store, name: str
) -> None:
    begun = room.now
    sees(room, name, Agent(run=1, activity=Activity.ACTIVE, since=begun))
    room.clock.passes(60)
    again = begun + timedelta(seconds=40)
    sees(room, name, Agent(run=1, activity=Activity.ACTIVE, since=again))
    assert store.facts.get(name).spent.active_seconds == 40


def test_a_turn_cut_off_by_a_stop_lasted_until_then(room: Room, store: Store, name: str) -> None:
    active = Agent(run=1, activity=Activity.ACTIVE, since=room.now)
    sees(room, name, active)
    room.clock.passes(60)
    sees(room, name, msgspec.structs.replace(active, activity=Activity.EXITED))
    assert store.facts.get(name).spent.active_seconds == 60


def test_the_first_look_at_a_new_run_ends_no_turn(room: Room, store: Store, name: str) -> None:
    sees(room, name, Agent(run=1, activity=Activity.ACTIVE, since=room.now))
    room.decides(name, run=2)
    room.clock.passes(3600)
    sees(room, name, Agent(run=2, since=room.now))
    assert store.facts.get(name).spent.active_seconds == 0


def test_a_restore_begins_a_new_budget(room: Room, store: Store, name: str) -> None:
    sees(room, name, used(1.0))
    ended = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="", at=room.now)
    room.decides(name, status="killed", ended=ended)
    assert store.facts.get(name).restored_at is None
    restored = room.clock.passes(60)
    room.decides(name, status="queued", ended=None)
    assert store.facts.get(name).spent == Spending()
    room.decides(name, run=2)
    sees(room, name, used(0.5, run=2))
    facts = store.facts.get(name)
    assert (facts.spent.cost_usd, facts.spent_ever.cost_usd) == (0.5, 1.5)
    assert facts.restored_at == restored


def test_others_of_the_repository_hear_of_a_day_that_costs_noticeably_more(
    room: Room, store: Store, name: str
) -> None:
    other = room.session(13)
    room.decides(other, recheck_at=None)
    sees(room, name, used(0.10))
    sees(room, name, used(0.20))
    assert store.sessions.due(room.now) == [name]
    sees(room, name, used(0.30))
    assert sorted(store.sessions.due(room.now)) == [name, other]


def test_a_later_bot_goes_on_counting(
    room: Room, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    sees(room, name, used(1.0))
    store.close()
    later = open_store()
    later.observations.record([Observation(session=name, run=1, agent=Agent(run=1))], room.now)
    later.observations.record([Observation(session=name, run=1, agent=used(1.25))], room.now)
    assert later.facts.get(name).spent.cost_usd == 1.25


def test_tokens_whose_price_is_told_later_were_without_one_until_then(
    room: Room, store: Store, name: str
) -> None:
    for usage in (Usage(input=9, unpriced=9), Usage(input=12, unpriced=3, cost_usd=0.5)):
        sees(room, name, Agent(run=1, usage=usage))
        assert store.facts.get(name).spent.unpriced == usage.unpriced
        assert store.facts.get(name).spent_today.unpriced == usage.unpriced
    assert store.facts.get(name).spent == Spending(tokens=12, unpriced=3, cost_usd=0.5)


def test_what_was_used_is_summed_up_as_people_ask_for_it(
    room: Room, store: Store, name: str
) -> None:
    room.clock.now = datetime(2030, 1, 2, 12, tzinfo=UTC)
    sees(room, name, used(1.0))
    room.decides(name, run=2)
    other = room.session(13)
    store.agents.assign(other, "ada", "shell", 1)
    room.decides(other)
    room.clock.now = datetime(2030, 1, 3, 12, tzinfo=UTC)
    usage = Usage(
        input=1, output=2, cache_read=3, cache_write=4, reasoning=5, cost_usd=2.0, unpriced=6
    )
    sees(room, name, Agent(run=2, usage=usage))
    sees(room, other, used(4.0))
    costs = {
        by: {each.name: (each.sessions, each.cost_usd) for each in store.usage.totals(by)}
        for by in GROUPS
    }
    assert costs == {
        "session": {"widgets-12": (1, 3.0), "widgets-13": (1, 4.0)},
        "run": {"widgets-12_r1": (1, 1.0), "widgets-12_r2": (1, 2.0), "widgets-13_r1": (1, 4.0)},
        "agent": {"": (1, 3.0), "ada": (1, 4.0)},
        "issue": {"acme/widgets#12": (1, 3.0), "acme/widgets#13": (1, 4.0)},
        "repository": {"acme/widgets": (2, 7.0)},
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


def free(usage: Usage) -> Usage:
    """Nobody knows a price."""
    return msgspec.structs.replace(usage, unpriced=usage.tokens)


def dear(usage: Usage) -> Usage:
    """Each token is a dollar."""
    return msgspec.structs.replace(usage, cost_usd=float(usage.tokens))


def heard(store: Store, session: str, tokens: int, run: int = 1, model: str = "m") -> None:
    used = Usage(input=tokens - 1, output=1, cache_read=2)
    store.usage.record_response(session, run, model, used, free)


def told(tokens: int, run: int = 1, **more: object) -> Agent:
    usage = Usage(input=tokens - 1, output=1, **more)  # type: ignore[arg-type]
    return Agent(run=run, usage=usage)


def test_what_the_door_hears_counts_where_a_program_tells_nothing(
    room: Room, store: Store, name: str
) -> None:
    assert not store.sessions.due(room.now)
    heard(store, name, 10)
    assert store.sessions.due(room.now) == [name], "a budget may be used up"
    heard(store, name, 5, model="n")
    assert store.facts.get(name).spent == Spending(tokens=15, unpriced=15)
    (used,) = store.usage.totals("run", name)
    assert (used.input, used.output, used.cache_read) == (13, 2, 4)


def test_program_and_door_count_a_run_once_whoever_is_ahead(
    room: Room, store: Store, name: str
) -> None:
    for door, program, counted in ((10, 10, 10), (10, 15, 20), (0, 25, 25), (10, 25, 30)):
        if door:
            heard(store, name, door)
        sees(room, name, told(program))
        assert store.facts.get(name).spent.tokens == counted
    (used,) = store.usage.totals("run", name)
    assert used.input + used.output == 30


def test_a_resumed_run_and_a_later_bot_count_on(
    room: Room, store: Store, name: str, open_store: Callable[[], Store]
) -> None:
    heard(store, name, 10)
    sees(room, name, told(10))
    room.decides(name, run=2)
    heard(store, name, 7, run=2)
    heard(store, name, 1, run=1)  # An answer of the run before that ended late.
    store.close()
    later = open_store()
    later.observations.record([Observation(session=name, run=2, agent=told(7, run=2))], room.now)
    heard(later, name, 3, run=2)
    assert [used.output + used.input for used in later.usage.totals("run", name)] == [11, 10]
    assert later.facts.get(name).spent.tokens == 21


def test_a_programs_own_price_stands_once_it_has_told_all(
    room: Room, store: Store, name: str
) -> None:
    used = Usage(input=9, output=1)
    store.usage.record_response(name, 1, "m", used, dear)
    assert store.facts.get(name).spent.cost_usd == 10.0
    sees(room, name, told(5, cost_usd=1.0))
    assert store.facts.get(name).spent.cost_usd == 10.0, "of half of it"
    sees(room, name, told(10, cost_usd=2.0))
    assert store.facts.get(name).spent == Spending(cost_usd=2.0, tokens=10)


def test_a_door_that_knows_no_price_takes_none_away(room: Room, store: Store, name: str) -> None:
    sees(room, name, told(10, cost_usd=2.0))
    heard(store, name, 15)
    assert store.facts.get(name).spent == Spending(cost_usd=2.0, tokens=15, unpriced=5)
    sees(room, name, told(15, cost_usd=3.0))
    assert store.facts.get(name).spent == Spending(cost_usd=3.0, tokens=15)
