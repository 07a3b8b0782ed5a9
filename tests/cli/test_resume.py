"""`mergewright start --resume`: continuing a conversation in a new session."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bot.store import NewCommand, Store
from tests.cli.conftest import CommandLine, Deployment

NATIVE = "4bb28834-d7d9-428f-9c9f-9179ca24a4f5"
PLACE = Path("projects", "-home-ada-widgets", f"{NATIVE}.jsonl")
START = ("start", "widgets-13", "claude", "--resume", NATIVE)


@pytest.fixture(autouse=True)
def conversation(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conversation of Claude Code, in an installation with a session."""
    deployment.has_session()
    with deployment.file.open("a") as file:
        file.write('[agent-types.claude]\nprogram = "claude"\n')
    theirs = deployment.file.parent / "ada"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(theirs))
    transcript = theirs / PLACE
    transcript.parent.mkdir(parents=True)
    transcript.write_text(f'{{"sessionId":"{NATIVE}"}}\n')
    return transcript


def new_commands(deployment: Deployment) -> list[NewCommand]:
    with closing(Store(deployment.paths.database)) as store:
        return store.commands.new()


def copy(deployment: Deployment) -> Path:
    return deployment.paths.home("widgets-13") / ".claude" / PLACE


def test_the_conversation_is_copied_before_the_start_is_submitted(
    mergewright: CommandLine, deployment: Deployment, conversation: Path
) -> None:
    assert mergewright(*START).code == 0
    (command,) = new_commands(deployment)
    assert (command.kind, command.text, command.resume) == ("start", "claude", NATIVE)
    assert copy(deployment).read_text() == conversation.read_text()
    assert deployment.paths.home("widgets-13").stat().st_mode & 0o777 == 0o700


def test_resume_uses_the_projects_agent_by_default(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    result = mergewright("start", "widgets-13", "--resume", NATIVE)
    assert (result.code, "a command has no conversation" in result.err) == (1, True)


def test_a_conversation_that_cannot_be_adopted_leaves_nothing(
    mergewright: CommandLine, deployment: Deployment, conversation: Path
) -> None:
    conversation.unlink()
    result = mergewright(*START)
    assert (result.code, f"you have no conversation {NATIVE}" in result.err) == (1, True)
    assert (new_commands(deployment), deployment.paths.home("widgets-13").exists()) == ([], False)


def test_leftovers_of_an_earlier_try_are_refused(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.paths.home("widgets-13").mkdir(parents=True)
    result = mergewright(*START)
    assert (result.code, "run `mergewright cleanup` to remove it" in result.err) == (1, True)
    assert new_commands(deployment) == []


def test_resume_is_refused_for_an_existing_session(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    result = mergewright("start", "widgets-12", "--resume", NATIVE)
    assert (result.code, "already exists; --resume" in result.err) == (2, True)


def test_resume_is_refused_for_other_users(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    result = mergewright(*START)
    assert (result.code, "only as the user that runs the server" in result.err) == (2, True)
    assert new_commands(deployment) == []


def test_a_refused_start_removes_the_copied_conversation(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    a_bot(
        lambda opened: opened.commands.refuse(opened.commands.new()[0].key, "the issue is closed")
    )
    result = mergewright(*START)
    assert (result.code, "the issue is closed" in result.err) == (1, True)
    assert not deployment.paths.home("widgets-13").exists()
