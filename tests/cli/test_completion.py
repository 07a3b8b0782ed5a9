"""Completion at a shell: of session IDs and names."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.cli.conftest import CommandLine, Deployment
from tests.cli.results import MERGEWRIGHT

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Press Tab at the end of a line, in fish."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_MERGEWRIGHT_COMPLETE", "complete_fish")
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"mergewright {line}")
        result = mergewright()
        assert (result.code, result.err) == (0, "")
        return result.out.split()

    return complete


def test_sessions_are_completed_those_at_work_first(
    deployment: Deployment, complete: Complete
) -> None:
    for number in (3, 12, 13):
        deployment.has_session(number)
    deployment.has_ended("widgets-13")
    assert sorted(complete("show ")[:2]) == ["widgets-12", "widgets-3"]
    assert complete("show ")[2:] == ["widgets-13"]
    assert sorted(complete("tell widgets-1")) == ["widgets-12", "widgets-13"]
    assert complete("show gears") == []


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("ls --project ", ["widgets"]),
        ("spawn w", ["widgets"]),
        ("freeze --project ", ["widgets"]),
        ("ls --status me", ["mergeable", "merged"]),
        ("agent widgets-12 ", ["shell"]),
        ("agents check ", ["shell"]),
        ("spawn widgets --type s", ["shell"]),
    ],
)
def test_names_are_completed(complete: Complete, line: str, names: list[str]) -> None:
    assert complete(line) == names


def test_another_configuration_is_respected(
    deployment: Deployment, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = deployment.file.with_name("other.toml")
    text = deployment.file.read_text(encoding="utf-8").replace("widgets", "gears")
    other.write_text(text, encoding="utf-8")
    assert complete(f"ls --config {other} --project ") == ["gears"]
    monkeypatch.setenv("MERGEWRIGHT_CONFIG", str(other))
    assert complete("ls --project ") == ["gears"]


@pytest.mark.parametrize("broken", ["configuration", "database", "both missing"])
def test_nothing_is_said_if_names_cannot_be_read(
    deployment: Deployment, complete: Complete, broken: str
) -> None:
    if broken == "configuration":
        deployment.file.write_text("[projects", encoding="utf-8")
    elif broken == "database":
        deployment.paths.database.write_text("no database at all", encoding="utf-8")
    else:
        deployment.file.unlink()
    assert complete("show ") == []


def test_what_a_shell_would_run_is_not_offered(deployment: Deployment, complete: Complete) -> None:
    """The script for zsh passes the choices to `eval`."""
    deployment.has_session(12)
    deployment.has_session(13)
    with closing(sqlite3.connect(deployment.paths.database)) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("UPDATE sessions SET id = 'w$(reboot)' WHERE id = 'widgets-12'")
    assert complete("show ") == ["widgets-13"]


def test_reading_for_a_completion_leaves_no_files(
    deployment: Deployment, complete: Complete
) -> None:
    deployment.file.write_text(
        deployment.file.read_text(encoding="utf-8").replace("data", "nodata"), encoding="utf-8"
    )
    before = sorted(deployment.file.parent.rglob("*"))
    assert complete("show ") == []
    assert sorted(deployment.file.parent.rglob("*")) == before


def test_a_shell_uses_it(deployment: Deployment) -> None:
    deployment.has_session(12)
    script = """
        eval "$(_MERGEWRIGHT_COMPLETE=source_bash "$0")"
        COMP_WORDS=(mergewright show wid) COMP_CWORD=2
        _mergewright_completion "$0"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    shell = subprocess.run(
        ["bash", "--norc", "-c", script, MERGEWRIGHT], capture_output=True, text=True
    )
    assert (shell.stdout, shell.stderr) == ("widgets-12\n", "")


#: Libraries and packages that take longer to import than everything that a completion needs.
HEAVY = {"pydantic", "rich", "litestar", "githubkit", "httpx", "textual", "apprise", "uvicorn"}
HEAVY |= {"markdown_it", "libtmux", "opentelemetry", "bot.store", "bot.web", "bot.show", "runtimes"}


@pytest.mark.parametrize("shell", ["fish", "zsh"])
@pytest.mark.parametrize(
    ("line", "choice"),
    [
        ("", "show"),
        ("token ", "revoke"),
        ("ls --", "--project"),
        ("agents show ", "shell"),
        ("ls --project ", "widgets"),
        ("show ", "widgets-12"),
    ],
)
def test_a_completion_imports_nothing_that_is_slow(
    deployment: Deployment, shell: str, line: str, choice: str
) -> None:
    deployment.has_session(12)
    script = (
        "import sys\nfrom bot.cli import main\nsys.argv = ['mergewright']\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    variables = {
        "_MERGEWRIGHT_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"mergewright {line}",
    }
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert choice in ran.stdout
    assert HEAVY & set(ran.stderr.split()) == set()


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("fish", "--config\tConfiguration file [default: ./mergewright.toml]."),
        ("zsh", r'"--config":"Configuration file [default\\: ./mergewright.toml]."'),
    ],
)
def test_explanations_are_shown_as_they_are_written(
    mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch, shell: str, line: str
) -> None:
    monkeypatch.setenv("_MERGEWRIGHT_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "mergewright ls --c")
    assert line in mergewright().out
