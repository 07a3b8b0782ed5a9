"""Commit messages that prevent a push: the agent is asked to reword them."""

import pytest

from lifecycle.model.status import Reason, Status
from tests.lifecycle.life import Life


@pytest.fixture
def life() -> Life:
    """A session whose pushes fail because of commit messages."""
    life = Life()
    life.failing, life.failure_reason = {"push:"}, Reason.COMMIT_MESSAGES
    return life.agent_commits().agent_rests()


def test_refused_commit_messages_go_to_the_agent_and_are_pushed_when_reworded(
    life: Life,
) -> None:
    assert life.received() == ["start", "reword"]
    assert "attention" not in life.comments()
    life.failing.clear()
    life.agent_commits().agent_rests()
    assert len(life.sent("push:")) == 1
    assert life.facts.pulls


def test_refused_commit_messages_escalate_when_the_agent_does_not_reword(life: Life) -> None:
    life.agent_works().agent_rests().reads(Status.NEEDS_INPUT)
    assert life.received() == ["start", "reword"]
    assert life.decision.reason is Reason.COMMIT_MESSAGES
    assert life.comments() == ["attention"]


def test_refused_commit_messages_escalate_after_three_tries(life: Life) -> None:
    for _ in range(3):
        assert life.comments() == []
        life.agent_commits().agent_rests()
    assert life.received() == ["start", "reword", "reword", "reword"]
    assert life.comments() == ["attention"]


def test_an_exited_agent_resumes_to_reword() -> None:
    life = Life()
    life.failing, life.failure_reason = {"push:"}, Reason.COMMIT_MESSAGES
    life.agent_commits().agent_exits()
    assert life.received() == ["start", "reword"]
    assert life.facts.run == 2
