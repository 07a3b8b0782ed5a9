"""The outcomes of commands that act on no session: refused commands, and starts, which open one."""

import pytest

from bot.show.command_outcome import CommandOutcome, command_outcome
from bot.store import NewCommand
from config.settings import ProjectSettings
from lifecycle.model.policy import Policy
from tests.harness.fixtures import Scenario

PROJECTS = {"widgets": ProjectSettings(repository="acme/widgets", agent="shell")}


def outcome(scenario: Scenario) -> CommandOutcome:
    found = command_outcome(
        scenario.store, "comment-1", PROJECTS, lambda _: Policy(), scenario.clock()
    )
    assert found is not None
    return found


def given(scenario: Scenario, kind: str) -> None:
    """Add a command on issue 12."""
    scenario.store.commands.add(
        NewCommand(
            key="comment-1",
            kind=kind,
            actor="mallory",
            at=scenario.clock(),
            repository="acme/widgets",
            number=12,
        )
    )


@pytest.mark.parametrize("kind", ["stop", "start"])
def test_a_refused_command_on_an_issue_with_a_session_is_not_accepted(
    scenario: Scenario, kind: str
) -> None:
    scenario.session(12)
    given(scenario, kind)
    assert outcome(scenario).accepted is None
    scenario.store.commands.refuse("comment-1", "@mallory has no write access")
    found = outcome(scenario)
    assert (found.session, found.accepted) == ("widgets-12", False)
    assert found.reason == "@mallory has no write access"


def test_the_command_that_opened_a_session_is_accepted(scenario: Scenario) -> None:
    given(scenario, "start")
    scenario.session(12, "comment-1")
    found = outcome(scenario)
    assert (found.session, found.accepted, found.reason) == ("widgets-12", True, "")
