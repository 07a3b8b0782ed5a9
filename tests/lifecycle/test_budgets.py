"""Budgets: people are warned at 80 %; at 100 % the session is paused until a raise."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Facts, Spending
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Reason, Status
from lifecycle.read.availability import Availability
from lifecycle.read.budgets import BUDGETS, raised, spending_line
from tests.lifecycle.life import Life
from tests.lifecycle.universe import NOW, agent, ago, command, done, ended, facts, in_key

TODAY = NOW.date().isoformat()
#: Of each budget: facts that exhaust it, a policy with its limit, and the reported sentence.
SPENT: dict[str, tuple[dict[str, Any], dict[str, float], str]] = {}
_MIDNIGHT = "; at midnight UTC a new one begins, and the session continues by itself"
for _name, _facts, _whose, _end in (
    ("session", "spent", "this session's budget of {}", ""),
    ("issue", "spent_ever", "this issue's budget of {}", ""),
    ("day", "spent_today", "this repository's daily budget of {}", _MIDNIGHT),
    (
        "person",
        "spent_by_person",
        "the daily budget of {} of the person who requested this session",
        _MIDNIGHT,
    ),
    ("agent", "spent_by_agent", "this agent's daily budget of {}", _MIDNIGHT),
):
    _prefix = "" if _name == "session" else f"{_name}-"
    SPENT[_name] = (
        {_facts: Spending(cost_usd=5.0)},
        {f"{_name}_usd": 5.0},
        f"{_whose.format('5.00 USD')} is used up{_end}",
    )
    SPENT[f"{_prefix}hours"] = (
        {_facts: Spending(active_seconds=7200.0)},
        {f"{_name}_hours": 2.0},
        f"{_whose.format('2 h of work')} is used up{_end}",
    )
    SPENT[f"{_prefix}tokens"] = (
        {_facts: Spending(tokens=1000)},
        {f"{_name}_tokens": 1000},
        f"{_whose.format('1,000 tokens')} is used up{_end}",
    )
#: A policy without limits.
NO_LIMITS = {"session_usd": 0.0, "session_hours": 0.0, "session_tokens": 0, "day_usd": 0.0}


def decision(session: Facts, **policy: Any) -> Decision:
    return decide(session, Policy(**{"public_cost": True, **NO_LIMITS, **policy}), NOW)


def budget_notices(session: Decision) -> dict[str, str]:
    """The posted sentences about budgets, by key."""
    return {
        str(action.key): action.values["because"]
        for action in session.actions
        if isinstance(action, do.Comment) and "budget:" in str(action.key)
    }


def test_every_budget_has_an_example() -> None:
    assert [row.name for row in BUDGETS] == list(SPENT)


@pytest.mark.parametrize(("spent", "limit", "why"), SPENT.values(), ids=SPENT.keys())
def test_public_repositories_show_no_amounts(
    spent: dict[str, Any], limit: dict[str, float], why: str
) -> None:
    ((name, amount),) = limit.items()
    public = facts(agent=agent(Activity.ACTIVE, 5), **spent)
    found = decision(public, **limit, public_cost=False)
    nearly = decision(public, **{name: amount / 0.8}, public_cost=False)
    sentence = (found.because, *budget_notices(found).values(), *budget_notices(nearly).values())
    assert len(sentence) == 3
    if not name.endswith("_hours"):
        assert not any(
            sign.isdecimal() for text in sentence for sign in text.removeprefix("at least 80%")
        )
    private = replace(public, issue=replace(public.issue, private=True))
    assert decision(private, **limit, public_cost=False).because == why


@pytest.mark.parametrize(("spent", "limit", "why"), SPENT.values(), ids=SPENT.keys())
def test_an_exhausted_budget_pauses_the_session_and_is_reported_once(
    spent: dict[str, Any], limit: dict[str, float], why: str
) -> None:
    session = facts(agent=agent(Activity.ACTIVE, 5), **spent)
    found = decision(session, **limit)
    assert (found.status, found.reason) == (Status.PAUSED, Reason.BUDGET_EXHAUSTED)
    assert found.because == why
    ((key, sentence),) = budget_notices(found).items()
    assert sentence == why
    assert (
        budget_notices(decision(replace(session, pending=frozenset({parse(key)})), **limit)) == {}
    )
    assert decision(session).status is Status.WORKING


@pytest.mark.parametrize(("spent", "limit", "why"), SPENT.values(), ids=SPENT.keys())
def test_at_80_percent_of_a_budget_people_are_warned_once_and_the_session_continues(
    spent: dict[str, Any], limit: dict[str, float], why: str
) -> None:
    ((name, amount),) = limit.items()
    session = facts(agent=agent(Activity.ACTIVE, 5), **spent)
    found = decision(session, **{name: amount / 0.8})
    assert found.status is Status.WORKING
    ((key, sentence),) = budget_notices(found).items()
    assert sentence.startswith("at least 80% of ")
    assert key.startswith("warning:budget:")
    assert (
        budget_notices(
            decision(replace(session, pending=frozenset({parse(key)})), **{name: amount / 0.8})
        )
        == {}
    )
    assert budget_notices(decision(session, **{name: amount / 0.79})) == {}
    other = decision(session, **{name: amount / 0.5}, budget_warning=0.5)
    assert next(iter(budget_notices(other).values())).startswith("at least 50% of ")


@pytest.mark.parametrize("name", SPENT)
def test_each_budget_limit_is_reported_under_its_own_key(name: str) -> None:
    spent, limit, why = SPENT[name]
    of_day = why.endswith(_MIDNIGHT)
    (amount,) = limit.values()
    cause = f"budget:{name}:{amount:g}:{TODAY if of_day else ''}"
    session = facts(agent=agent(Activity.ACTIVE, 5), **spent)
    assert list(budget_notices(decision(session, **limit))) == [f"notice:{cause}"]
    again = replace(session, restored_at=ago(3600))
    life = cause if of_day else f"{cause}{in_key(ago(3600))}"
    assert list(budget_notices(decision(again, **limit))) == [f"notice:{life}"]


def test_a_session_without_budget_is_queued_and_requests_no_slot() -> None:
    session = replace(facts(run=0, agent=Agent(), spent_today=Spending(cost_usd=25)), done={})
    for slot in (True, False):
        found = decision(replace(session, slot=slot), day_usd=25)
        assert (found.status, found.reason) == (Status.QUEUED, Reason.BUDGET_EXHAUSTED)
        assert found.because.startswith("this repository's daily budget of 25.00 USD")
        assert not found.wants_slot
        assert not found.holds_slot
    assert decision(replace(session, slot=False)).wants_slot


def test_a_daily_budget_is_rechecked_at_midnight() -> None:
    midnight = NOW.replace(hour=0) + timedelta(days=1)
    session = facts(agent=ended(0), spent_today=Spending(cost_usd=25))
    assert decision(session, day_usd=25).recheck_at == midnight
    assert decision(replace(session, slot=False, run=0), day_usd=25).recheck_at == midnight


def test_the_current_turn_counts_towards_the_hours_while_the_agent_is_active() -> None:
    active = agent(Activity.ACTIVE, 1800, seen=ago(5))
    session = facts(agent=active, spent=Spending(active_seconds=5400.0))
    assert decision(session, session_hours=2.0).status is Status.PAUSED
    found = decision(session, session_hours=3.0)
    assert found.status is Status.WORKING
    rests = replace(session, agent=agent(seconds_ago=1800))
    assert decision(rests, session_hours=2.0).status is not Status.PAUSED
    assert decision(
        replace(session, agent=replace(active, since=None)), session_hours=2
    ).status is (Status.WORKING)


def test_idle_time_before_a_new_message_does_not_count_as_work() -> None:
    session = facts(
        agent=agent(Activity.IDLE, 90_000), done=done("address_review:x#1", seconds_ago=5)
    )
    found = decision(session, session_hours=2.0)
    assert found.signals.availability is Availability.ACTIVE
    assert found.status is Status.WORKING


def test_a_later_threshold_of_another_budget_delays_no_recheck() -> None:
    active, spent = agent(Activity.ACTIVE, 60, seen=ago(0)), Spending(active_seconds=7000.0)
    found = decision(facts(agent=active, spent=spent), session_hours=2.0, person_hours=5.0)
    assert found.recheck_at == ago(60) + timedelta(seconds=200)


@pytest.mark.parametrize("name", [name for name in SPENT if not name.endswith("hours")])
def test_a_long_turn_counts_only_towards_the_hours(name: str) -> None:
    spent, limit, _ = SPENT[name]
    ((field, amount),) = limit.items()
    session = facts(agent=agent(Activity.ACTIVE, 90_000, seen=ago(5)), **spent)
    assert decision(session, **{field: amount + 1}).status is Status.WORKING


@pytest.mark.parametrize("name", [name for name in SPENT if name.endswith("hours")])
def test_the_turn_in_progress_counts_and_the_hours_run_out_during_it(name: str) -> None:
    ((whose, _),), ((field, _),) = SPENT[name][0].items(), SPENT[name][1].items()
    active = agent(Activity.ACTIVE, 60, seen=ago(0))
    session = facts(agent=active, **{whose: Spending(active_seconds=7000.0)})
    found = decision(session, **{field: 2.0})
    assert found.status is Status.WORKING
    assert found.recheck_at == ago(60) + timedelta(seconds=200)


@pytest.mark.parametrize("name", SPENT)
def test_a_raise_in_dollars_raises_the_other_budgets_in_proportion(name: str) -> None:
    spent, limit, _ = SPENT[name]
    ((field, amount),) = limit.items()
    most = amount + 2.5 if field.endswith("_usd") else amount * 1.5
    more = command("budget", text="+2.5", comment=None)
    extra = {"session_usd": 5.0}
    allowed = facts(agent=agent(Activity.ACTIVE, 5), commands=(more,), **spent)
    assert decision(allowed, **{**extra, **limit}).status is Status.WORKING
    whose = next(iter(spent))
    ((of, value),) = (
        (name, getattr(spent[whose], name))
        for name in ("cost_usd", "tokens", "active_seconds")
        if getattr(spent[whose], name)
    )
    up_to = replace(allowed, **{whose: Spending(**{of: type(value)(value * most / amount)})})
    assert decision(up_to, **{**extra, **limit}).status is Status.PAUSED


def test_a_raise_of_the_daily_budget_expires_at_midnight() -> None:
    spent, limit, _ = SPENT["day"]
    early = command("budget", text="+5", comment=None, at=ago(13 * 3600))
    session = facts(agent=agent(Activity.ACTIVE, 5), created=ago(86400), commands=(early,), **spent)
    assert decision(session, **limit).status is Status.PAUSED
    today = replace(session, commands=(replace(early, at=ago(11 * 3600)),))
    assert decision(today, **limit).status is Status.WORKING


def test_without_a_dollar_limit_a_raise_grants_the_hours_once_more() -> None:
    more = command("budget", text="+1", comment=None)
    session = facts(
        agent=agent(Activity.ACTIVE, 5),
        commands=(more,),
        spent=Spending(active_seconds=7200.0),
    )
    assert decision(session, session_hours=2.0).status is Status.WORKING
    twice = replace(session, spent=Spending(active_seconds=14400.0))
    assert decision(twice, session_hours=2.0).status is Status.PAUSED


@pytest.mark.parametrize("text", ["", "lots", "-3", "+0", "nan", "inf"])
def test_an_invalid_amount_raises_nothing(text: str) -> None:
    asked = command("budget", text=text)
    assert raised(asked) == 0
    session = facts(
        agent=agent(Activity.ACTIVE, 5), commands=(asked,), spent=Spending(cost_usd=5.0)
    )
    assert decision(session, session_usd=5.0).status is Status.PAUSED


def test_spending_is_summarised_in_one_line() -> None:
    spent = Spending(cost_usd=1.25, tokens=1200, active_seconds=1800)
    session = facts(spent=spent)
    assert (
        spending_line(session, Policy(), NOW)
        == "spent: 1.25 of 5.00 USD, 1200 tokens, 0.5 hours of work"
    )
    some = spending_line(facts(spent=replace(spent, unpriced=200)), Policy(), NOW)
    assert some.startswith("spent: 1.25 of 5.00 USD, 1200 tokens (200 without a price), ")
    free = spending_line(session, Policy(session_usd=0), NOW)
    assert free == "spent: 1.25 USD, 1200 tokens, 0.5 hours of work"


def test_a_session_resumes_when_its_exhausted_budget_is_raised() -> None:
    life = Life().agent_works()
    life.facts = replace(life.facts, spent=Spending(cost_usd=5.2))
    life.reconcile()
    life.reads(Status.PAUSED)
    assert life.sent("park:") == ["park:work#1"]
    assert not life.facts.slot
    assert life.comments() == ["paused"]
    life.person_commands("resume").reads(Status.PAUSED)
    assert life.answers()[-1].startswith("The session stays paused: this session's dollar budget")
    life.person_commands("budget", "+5").reads(Status.WORKING)
    assert life.received() == ["start", "resume"]
    life.waits(60)
    assert life.comments() == ["paused"]


DOLLARS = [name for name, (_, limit, _) in SPENT.items() if next(iter(limit)).endswith("_usd")]


@pytest.mark.parametrize("name", DOLLARS)
def test_tokens_without_a_price_count_in_every_budget_of_dollars(name: str) -> None:
    (field,) = SPENT[name][0]

    def status(unpriced: int, **policy: float) -> Status:
        spent = {field: Spending(cost_usd=1.0, tokens=unpriced, unpriced=unpriced)}
        session = facts(agent=agent(Activity.ACTIVE, 5), **spent)
        limits = {f"{name}_usd": 2.0, "unpriced_usd": 10.0, **policy}
        return decision(session, **limits).status

    assert status(99_999) is Status.WORKING
    assert status(100_000) is Status.PAUSED
    assert status(900_000_000) is Status.PAUSED
    assert status(100_000, unpriced_usd=9.0) is Status.WORKING
    assert status(900_000_000, unpriced_usd=0.0) is Status.WORKING


def test_all_sessions_of_an_issue_use_its_budget() -> None:
    half = Spending(cost_usd=2.5)
    found = decision(facts(spent_ever=half, spent_beside=half), issue_usd=5.0)
    assert (found.status, found.reason) == (Status.PAUSED, Reason.BUDGET_EXHAUSTED)
    assert decision(facts(spent_ever=half), issue_usd=5.0).status is Status.WORKING
