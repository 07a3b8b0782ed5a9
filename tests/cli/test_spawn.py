"""`mergewright spawn`: sessions for issues and prompts."""

import io
import json
import sys
from collections.abc import Callable
from contextlib import closing

import pytest

from bot.store import NewCommand, NewSession, Store
from lifecycle.model.candidates import Spawn
from lifecycle.model.facts import Issue
from lifecycle.model.status import Origin
from tests.cli.conftest import CommandLine, Deployment
from tests.world.databases import empty_database


@pytest.fixture(autouse=True)
def database(deployment: Deployment) -> None:
    Store(empty_database(deployment.paths.database)).close()


def requested(deployment: Deployment) -> NewCommand:
    with closing(Store(deployment.paths.database)) as store:
        (command,) = store.commands.new()
    return command


def opens(store: Store) -> None:
    """What the bot does for a request."""
    for command in store.commands.new():
        spawn = command.spawn
        assert spawn is not None
        new = NewSession(
            id=spawn.session,
            project="widgets",
            repository=command.repository,
            created=store.clock(),
            issue=Issue(number=0, title=spawn.prompt),
            branch="mergewright/p1",
            origin=Origin.PROMPT,
            requester=command.actor,
            agent_type="shell",
        )
        assert store.sessions.create(new, command.key)


def test_all_that_is_given_is_submitted(mergewright: CommandLine, deployment: Deployment) -> None:
    options = (
        *("--prompt", "Add a flag", "--agent", "ada", "--type", "codex", "--branch", "ann/flags"),
        *("--permission-mode", "confirm", "--budget", "2.5", "--meta", "a=1", "--meta", "b=x=y"),
    )
    result = mergewright("spawn", "widgets", *options)
    assert result.code == 0, result.err
    assert result.out.startswith("widgets-p1: start submitted; no bot is running")
    command = requested(deployment)
    assert (command.repository, command.number) == ("acme/widgets", 0)
    assert command.text == "ada codex permission-mode=confirm"
    assert command.actor.startswith("cli:")
    assert command.spawn == Spawn(
        session="widgets-p1",
        prompt="Add a flag",
        branch="ann/flags",
        budget_usd=2.5,
        metadata={"a": "1", "b": "x=y"},
    )


def test_a_prompt_is_read_from_standard_input(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO("Add a flag\n\nNämed -v.\n".encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert mergewright("spawn", "widgets", "--prompt-file", "-").code == 0
    spawn = requested(deployment).spawn
    assert spawn is not None
    assert spawn.prompt == "Add a flag\n\nNämed -v."


def test_the_new_session_is_printed(
    mergewright: CommandLine, a_bot: Callable[[Callable[[Store], None]], None]
) -> None:
    a_bot(opens)
    outcome = json.loads(mergewright("spawn", "widgets", "--prompt", "Add a flag", "--json").out)
    assert (outcome["session"], outcome["accepted"]) == ("widgets-p1", True)
    assert outcome["status"] == "queued"
    assert "Add a flag" in mergewright("show", "widgets-p1").out


def test_a_refusal_is_an_error(
    mergewright: CommandLine, a_bot: Callable[[Callable[[Store], None]], None]
) -> None:
    def refuses(store: Store) -> None:
        for command in store.commands.new():
            store.commands.refuse(command.key, "there is no agent `ada` here")

    a_bot(refuses)
    result = mergewright("spawn", "widgets", "--prompt", "x", "--agent", "ada")
    assert result.code == 1
    assert result.err == "mergewright: widgets-p1: start refused: there is no agent `ada` here\n"


def test_a_second_session_of_an_issue_has_to_be_asked_for(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session()
    result = mergewright("spawn", "widgets", "--issue", "12")
    assert result.code == 2
    assert (
        "issue #12 already has the session widgets-12; --another opens one more session"
        in result.err
    )
    assert mergewright("spawn", "widgets", "--issue", "12", "--another").code == 0
    spawn = requested(deployment).spawn
    assert spawn is not None
    assert spawn.session == "widgets-12b"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("gears", "--prompt", "x"), "no project 'gears'; known: widgets"),
        (("widgets",), "give exactly one of --issue, --prompt and --prompt-file"),
        (("widgets", "--prompt", "x", "--issue", "1"), "give exactly one of"),
        (("widgets", "--prompt", " "), "a session needs either an issue or a prompt"),
        (("widgets", "--prompt", "x", "--branch", "a b"), "'a b' is not a branch name"),
        (("widgets", "--prompt", "x", "--meta", "a"), "'a': expected KEY=VALUE"),
        (("widgets", "--prompt", "x", "--permission-mode", "yolo"), "start takes one of"),
    ],
)
def test_an_invalid_request_is_a_usage_error(
    mergewright: CommandLine, deployment: Deployment, words: tuple[str, ...], why: str
) -> None:
    result = mergewright("spawn", *words)
    assert (result.code, why in result.err) == (2, True), result.err
    with closing(Store(deployment.paths.database)) as store:
        assert store.commands.new() == []
