"""An agent that is held to some kinds of tools has no others; questions to people it may ask."""

import json
from collections.abc import Callable, Collection, Mapping

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Command, RunFiles, Terms


def of_claude(files: RunFiles, command: Command) -> Collection[str] | None:
    if "--tools" not in command.argv:
        return None
    return command.argv[command.argv.index("--tools") + 1].split(",")


def of_gemini(files: RunFiles, command: Command) -> Collection[str] | None:
    told = json.loads((files.home / ".gemini" / "settings.json").read_text())
    core: Collection[str] | None = told.get("tools", {}).get("core")
    return core


def of_opencode(files: RunFiles, command: Command) -> Collection[str] | None:
    told = json.loads(command.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    if told["*"] != "deny":
        return None
    return [name for name, leave in told.items() if leave == "allow"]


#: What each has besides questions, held to reading and running.
HELD: Mapping[str, tuple[Callable[[RunFiles, Command], Collection[str] | None], str, set[str]]] = {
    "claude": (of_claude, "AskUserQuestion", {"Read", "Glob", "Grep", "Bash"}),
    "gemini": (of_gemini, "ask_user", {"read_file", "grep_search", "run_shell_command"}),
    "opencode": (of_opencode, "question", {"read", "glob", "grep", "bash"}),
}


@pytest.mark.parametrize("name", [name for name, program in AGENTS.items() if program.tools])
def test_it_has_the_tools_it_is_held_to_and_no_others(name: str, files: RunFiles) -> None:
    seen, question, held = HELD[name]
    program = AGENTS[name](AgentType(program=name))
    assert set(program.tools) == {"read", "edit", "run", "web"}
    command = program.prepare(files, "Do it.", "", Terms(tools=("read", "run")))
    told = seen(files, command)
    assert told is not None
    assert {*held, question} <= set(told)
    assert not set(told) & {*program.tools["edit"], *program.tools["web"]}
    assert seen(files, program.prepare(files, "Do it.", "")) is None
