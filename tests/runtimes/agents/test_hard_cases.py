"""The cases in which agents are easily misread, and what holds each of them for every agent type.

A row says for each agent: the recording of it (`ACTIVITY/CASE`), the test that is about it
(`FILE::TEST`), or, as a sentence, why it cannot occur there.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from runtimes.agents import AGENTS
from tests.runtimes.agents.recordings import RECORDINGS

_HERE = Path(__file__).parent
_TELLS_ALL = "What a command of one's own does is known by the lines it prints alone."


def _every(test: str, **but: str) -> dict[str, str]:
    """A manner of reading: the same test for all agents but these."""
    return {**dict.fromkeys(AGENTS, f"test_troubled_files.py::{test}"), **but}


def _only(agent: str, test: str, others: str) -> dict[str, str]:
    """What one agent alone does."""
    return {**dict.fromkeys(AGENTS, others), agent: test}


HARD: Mapping[str, Mapping[str, str]] = {
    "permission prompt": {
        "aider": "waiting_input/command",
        "claude": "waiting_input/permission",
        "codex": "waiting_input/permission",
        "gemini": "waiting_input/permission",
        "opencode": "waiting_input/permission",
        "shell": "waiting_input/asks",
    },
    "question to the user": {
        "aider": "waiting_input/new_file",
        "claude": "waiting_input/question",
        "codex": "waiting_input/question",
        "gemini": "waiting_input/question",
        "opencode": "waiting_input/question",
        "shell": "waiting_input/asks",
    },
    "interrupted turn": {
        "aider": "ready/interrupted",
        "claude": "ready/interrupted",
        "codex": "ready/interrupted",
        "gemini": "ready/interrupted",
        "opencode": "ready/interrupted",
        "shell": _TELLS_ALL,
    },
    "API error": {
        "aider": "blocked/unauthorised",
        "claude": "blocked/server_error",
        "codex": "blocked/server_error",
        "gemini": "blocked/error",
        "opencode": "blocked/unauthorised",
        "shell": "blocked/says_so",
    },
    "silent retries on 429": {
        "aider": "active/retries",
        "claude": "active/retries",
        "codex": "active/retries",
        "gemini": "active/retries",
        "opencode": "blocked/retries",
        "shell": _TELLS_ALL,
    },
    "usage limit with a reset time": {
        "aider": "blocked/usage_limit",
        "claude": "blocked/usage_limit",
        "codex": "blocked/usage_limit",
        "gemini": "blocked/usage_limit",
        "opencode": "blocked/usage_limit",
        "shell": "blocked/says_so",
    },
    "long tool call": {
        "aider": "active/command_runs",
        "claude": "active/long_call",
        "codex": "active/long_call",
        "gemini": "active/tool_runs",
        "opencode": "active/tool_runs",
        "shell": "active/says_so",
    },
    "trust or onboarding dialog": {
        "aider": "waiting_input/gitignore",
        "claude": "waiting_input/trust",
        "codex": "waiting_input/trust",
        "gemini": "waiting_input/trust",
        "opencode": "It asks nothing at its first start: it has a provider of its own.",
        "shell": _TELLS_ALL,
    },
    "program gone but shell alive": _every(
        "test_a_program_that_is_gone_has_exited_though_its_terminal_lives"
    ),
    "transcript rotated": _every(
        "test_files_that_begin_anew_are_read_on_from_their_beginning",
        opencode="test_opencode.py::test_a_database_that_cannot_be_read_changes_nothing",
    ),
    "transcript truncated": _every(
        "test_files_that_begin_anew_are_read_on_from_their_beginning",
        opencode="test_opencode.py::test_a_database_that_cannot_be_read_changes_nothing",
    ),
    "transcript with a half-written line": _every(
        "test_half_a_line_says_nothing_until_it_is_whole",
        opencode="Its database shows whole transactions only.",
    ),
    "transcript of megabytes": _every(
        "test_megabytes_of_earlier_lines_change_nothing",
        opencode="test_databases.py::test_a_look_that_takes_long_is_broken_off",
    ),
    "hooks of an earlier run arriving late": _every(
        "test_late_hooks_of_an_earlier_run_change_nothing",
        aider="It has no hooks: what it counts stands in a file of the run.",
        opencode="It has no hooks: its port and its database tell of the present.",
        shell="It has no hooks: its lines stand in the output of the run.",
    ),
    "two sessions of an agent in sibling worktrees": _every(
        "test_two_sessions_side_by_side_do_not_read_each_other"
    ),
    "Codex's background daemon": _only(
        "codex",
        "test_codex.py::test_it_is_started_without_its_daemon_and_with_the_prompt_last",
        "It starts no daemon.",
    ),
    "Gemini deletes a session": _only(
        "gemini",
        "test_gemini.py::test_its_settings_sign_it_in_and_let_nothing_change_or_vanish_by_itself",
        "It deletes no session.",
    ),
    "OpenCode's port": _only(
        "opencode",
        "test_opencode.py::test_it_is_started_with_its_prompt_and_a_port_behind_a_password",
        "It has no port.",
    ),
    "Aider has no state of its own": _only(
        "aider",
        "test_aider.py::test_after_a_call_the_screen_decides_and_without_one_nothing_is_known",
        "It says what it does.",
    ),
}


@pytest.mark.parametrize("case", HARD)
def test_every_hard_case_is_held_for_every_agent_or_cannot_occur_there(case: str) -> None:
    assert HARD[case].keys() == AGENTS.keys()
    for agent, held in HARD[case].items():
        file, _, test = held.partition("::")
        if test:
            assert f"\ndef {test}(" in (_HERE / file).read_text(), held
        elif not held.endswith("."):
            assert (RECORDINGS / agent / held / "moment.json").exists(), f"{agent}/{held}"
