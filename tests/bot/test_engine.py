"""What was written down is judged once more before it is done."""

from typing import Any

import pytest
from msgspec.structs import replace

from bot.decide.reconciler import Reconciler
from bot.system.crash_points import log_crash_point
from lifecycle.model.actions import Action, Comment, Prompt, Start, Stop
from lifecycle.model.facts import Agent, Facts
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from tests.lifecycle.universe import NOW, command, facts

START = Start(key=parse("start:resume#2"), run=2, prompt=Prompt(name="resume"))
ANSWER = Comment(key=parse("command_applied:comment:pause"), number=12, topic="answer")
STARTING = facts(run=2, pending=frozenset({START.key}))


def wanted(given: Facts, action: Action) -> bool:
    nothing: Any = None
    engine = Reconciler(nothing, lambda _: Policy(), lambda: NOW, log_crash_point, lambda: None)
    return engine.still_wanted(given, action)


@pytest.mark.parametrize("kind", ["pause", "stop"])
def test_a_start_is_wanted_until_a_person_holds_or_ends_the_session(kind: str) -> None:
    assert wanted(STARTING, START)
    assert not wanted(replace(STARTING, commands=(command(kind),)), START)


def test_a_start_is_not_wanted_where_its_budget_is_used_up() -> None:
    first = replace(
        facts(run=1, agent=Agent()), done={}, pending=frozenset({parse("start:first#1")})
    )
    start = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    assert wanted(first, start)
    spent = replace(first.spent_today, cost_usd=25.0)
    assert not wanted(replace(first, spent_today=spent), start)


def test_an_answer_was_judged_when_it_was_written_down() -> None:
    assert wanted(facts(), ANSWER)
    assert not wanted(facts(), replace(ANSWER, topic="attention"))


def test_the_end_of_a_paused_program_is_wanted_as_long_as_it_is_paused() -> None:
    stop = Stop(key=parse("park:rest#1"), run=1)
    paused = facts(commands=(command("pause"),), pending=frozenset({stop.key}))
    assert wanted(paused, stop)
    assert not wanted(replace(paused, commands=()), stop)
