"""Sessions without an issue: reports, labels and notices go to the pull request, or nowhere."""

from typing import Any

import pytest

from lifecycle.model import actions as do
from lifecycle.model.facts import Spending
from lifecycle.model.key import KeyKind, parse
from lifecycle.model.policy import Mode
from lifecycle.model.status import Origin, Status
from tests.lifecycle.decisions import decision
from tests.lifecycle.life import Life
from tests.lifecycle.universe import command, facts


def with_pull(**policy: Any) -> Life:
    """A session without an issue whose pull request waits for its review."""
    return Life(issue=0, **policy).agent_commits().agent_rests().ci_passes()


def labels(life: Life) -> list[tuple[int, bool]]:
    return [(a.number, a.on) for _, a in life.out if isinstance(a, do.Label)]


def test_a_prompt_becomes_a_merged_pull_request() -> None:
    life = with_pull(mode=Mode.MERGE).reviewer_approves().reads(Status.MERGED)
    kinds = [parse(key).kind for key in life.sent()]
    assert KeyKind.CLOSE_ISSUE not in kinds
    assert kinds[-3:] == [KeyKind.MERGE, KeyKind.DELETE_BRANCH, KeyKind.RELEASE]
    assert life.reported(0) == []
    assert life.reported(34)


def test_people_are_called_to_the_pull_request() -> None:
    life = Life(issue=0).agent_works().agent_asks().reads(Status.NEEDS_INPUT)
    assert labels(life) == [], "there is nothing to label yet"
    life = with_pull(state_labels=True).agent_asks().reads(Status.NEEDS_INPUT)
    assert labels(life) == [(34, True)]
    life.agent_works()
    assert labels(life) == [(34, True), (34, False)]
    assert not [action for _, action in life.out if isinstance(action, do.ShowStatus)]


def test_its_end_is_posted_on_the_pull_request_if_there_is_one() -> None:
    ends = [
        action.number
        for life in (Life(issue=0), with_pull())
        for _, action in life.person_commands("stop").out
        if isinstance(action, do.Comment) and action.topic == "ended"
    ]
    assert ends == [0, 34]


@pytest.mark.parametrize(
    ("budget", "raises", "status"),
    [(8.0, (), Status.WORKING), (2.0, (), Status.PAUSED), (2.0, ("+3",), Status.WORKING)],
)
def test_a_budget_of_its_own_replaces_that_of_the_policy(
    budget: float, raises: tuple[str, ...], status: Status
) -> None:
    commands = tuple(command("budget", text=amount) for amount in raises)
    session = facts(budget_usd=budget, spent=Spending(cost_usd=4.0), commands=commands)
    for usd in (0.0, 3.0, 100.0):
        assert decision(session, session_usd=usd).status is status, usd


def test_an_adopted_branch_is_the_persons_after_the_merge_too() -> None:
    life = with_pull(origin=Origin.PULL, mode=Mode.MERGE).reviewer_approves().reads(Status.MERGED)
    assert life.received() == ["adopt"]
    kinds = [parse(key).kind for key in life.sent()]
    assert kinds[-2:] == [KeyKind.MERGE, KeyKind.RELEASE]
