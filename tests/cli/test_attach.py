"""`mergewright attach`."""

import os
from collections.abc import Callable

import pytest

from tests.cli.conftest import CommandLine, Deployment


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The command lines that would have replaced this process."""
    command_lines: list[tuple[str, ...]] = []
    monkeypatch.setattr(os, "execvp", lambda _, argv: command_lines.append(argv))
    return command_lines


def test_attach_executes_the_runtimes_command_only_while_the_program_runs(
    mergewright: CommandLine,
    deployment: Deployment,
    became: list[tuple[str, ...]],
    runs: Callable[[str], None],
) -> None:
    session = deployment.has_session()
    runs("widgets-13_r1")
    refused = mergewright("attach", session)
    assert (refused.code, became) == (1, [])
    assert "widgets-12 has no terminal, because its agent is not running" in refused.err
    assert "`mergewright why widgets-12`" in refused.err

    runs("widgets-12_r1")
    assert mergewright("attach", session).code == 0
    ((program, *words),) = became
    assert program == "tmux"
    assert words[2].startswith(f"{deployment.paths.runtime}/t")
    assert words[-1] == "=widgets-12_r1"


def test_attach_is_refused_in_an_ended_session(
    mergewright: CommandLine, deployment: Deployment, became: list[tuple[str, ...]]
) -> None:
    session = deployment.has_session()
    deployment.has_ended(session)
    result = mergewright("attach", session)
    assert result.code == 1
    assert "widgets-12 has ended (stopped) and has no terminal; use `mergewright logs" in result.err
    assert became == []
