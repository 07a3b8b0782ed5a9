"""What a command says while a person waits at a terminal."""

import os
import re
from pathlib import Path

import pytest

from bot.cli import progress
from bot.cli.help_groups import GROUPS
from tests.cli.conftest import CommandLine, Deployment
from tests.cli.terminals import at_a_terminal


def test_help_lists_each_command_in_one_group(mergewright: CommandLine) -> None:
    shown = mergewright("--help").out
    assert max(map(len, shown.splitlines())) <= 80
    grouped = [name for names in GROUPS.values() for name in names]
    listed = re.findall(r"^  ([a-z-]+)  +\S", shown, re.MULTILINE)
    assert [one for one in listed if one in grouped] == grouped
    assert "Commands:" not in shown
    assert "Allow the push of a commit that is held, e.g. for protected paths" in " ".join(
        shown.split()
    )


def test_a_person_at_a_terminal_learns_what_a_command_waits_for(deployment: Deployment) -> None:
    session = deployment.has_session(12)
    words = ("wait", session, "--for", "needs_input", "--timeout", "3", "--json")
    with at_a_terminal(*words, folder=Path.cwd(), code=1) as terminal:
        terminal.reads(f"Waiting until {session} needs a person ...")


def test_programs_get_no_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_AFTER_SECONDS", 0.0)
    with progress.progress("Waiting ..."):
        os.sched_yield()
    assert capsys.readouterr().err == ""
