"""Commits not pushed for what their messages say: the agent rewords them, or people see."""

import pytest

from lifecycle.model.status import Reason, Status
from tests.lifecycle.life import Life


@pytest.fixture
def life() -> Life:
    """A session whose commits are not pushed, until what keeps them is taken away."""
    life = Life()
    life.refused, life.refusal = {"push:"}, Reason.COMMIT_MESSAGES
    return life.agent_commits().agent_rests()


def test_messages_that_keep_commits_back_go_to_the_agent_and_reworded_they_are_pushed(
    life: Life,
) -> None:
    assert life.received() == ["start", "reword"]
    assert "attention" not in life.comments()
    life.refused.clear()
    life.agent_commits().agent_rests()
    assert len(life.sent("push:")) == 1
    assert life.facts.pulls


def test_an_agent_that_rewords_nothing_is_told_once_and_then_people_are(life: Life) -> None:
    life.agent_works().agent_rests().reads(Status.NEEDS_INPUT)
    assert life.received() == ["start", "reword"]
    assert life.decision.reason is Reason.COMMIT_MESSAGES
    assert life.comments() == ["attention"]


def test_after_so_many_messages_that_keep_commits_back_people_are_told(life: Life) -> None:
    for _ in range(3):
        assert life.comments() == []
        life.agent_commits().agent_rests()
    assert life.received() == ["start", "reword", "reword", "reword"]
    assert life.comments() == ["attention"]


def test_an_agent_that_ended_goes_on_to_reword() -> None:
    life = Life()
    life.refused, life.refusal = {"push:"}, Reason.COMMIT_MESSAGES
    life.agent_commits().agent_exits()
    assert life.received() == ["start", "reword"]
    assert life.facts.run == 2
