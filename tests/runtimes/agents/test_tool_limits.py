"""Limiting an agent's tools, and disabling its subagents."""

import json
from collections.abc import Callable, Collection, Mapping

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, LaunchSpec, RunFiles, RunLimits


def of_claude(files: RunFiles, launch: LaunchSpec) -> Collection[str] | None:
    if "--tools" not in launch.argv:
        return None
    return launch.argv[launch.argv.index("--tools") + 1].split(",")


def of_gemini(files: RunFiles, launch: LaunchSpec) -> Collection[str] | None:
    configured = json.loads((files.home / ".gemini" / "settings.json").read_text())
    core: Collection[str] | None = configured.get("tools", {}).get("core")
    return core


def of_opencode(files: RunFiles, launch: LaunchSpec) -> Collection[str] | None:
    configured = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    if configured["*"] != "deny":
        return None
    return [name for name, permission in configured.items() if permission == "allow"]


#: The arguments that limit each agent to reading and running.
HELD: Mapping[
    str, tuple[Callable[[RunFiles, LaunchSpec], Collection[str] | None], str, set[str]]
] = {
    "claude": (of_claude, "AskUserQuestion", {"Read", "Glob", "Grep", "Bash"}),
    "gemini": (of_gemini, "ask_user", {"read_file", "grep_search", "run_shell_command"}),
    "opencode": (of_opencode, "question", {"read", "glob", "grep", "bash"}),
}


@pytest.mark.parametrize("name", [name for name, adapter in AGENTS.items() if adapter.tools])
def test_an_agent_gets_only_the_configured_tools(name: str, files: RunFiles) -> None:
    seen, question, held = HELD[name]
    adapter = AGENTS[name](AgentType(program=name))
    assert set(adapter.tools) == {"read", "edit", "run", "web"}
    launch = adapter.prepare(files, "Do it.", "", RunLimits(tools=("read", "run")))
    configured = seen(files, launch)
    assert configured is not None
    assert {*held, question} <= set(configured)
    assert not set(configured) & {*adapter.tools["edit"], *adapter.tools["web"]}
    assert seen(files, adapter.prepare(files, "Do it.", "")) is None


def refused_by_claude(files: RunFiles, launch: LaunchSpec) -> bool:
    words = launch.argv
    refused = words[words.index("--disallowedTools") + 1] if "--disallowedTools" in words else ""
    return {"Agent", "Task", "Workflow"} <= set(refused.split(","))


def refused_by_codex(files: RunFiles, launch: LaunchSpec) -> bool:
    configured = [word for word in launch.argv if word.endswith("=false") and "agent" in word]
    alone = {"agents.enabled", "features.multi_agent", "features.multi_agent_v2"}
    return alone <= {word.removesuffix("=false") for word in configured}


def refused_by_gemini(files: RunFiles, launch: LaunchSpec) -> bool:
    configured = json.loads((files.home / ".gemini" / "settings.json").read_text())
    return bool(configured.get("tools") == {"exclude": ["invoke_agent"]})


def refused_by_opencode(files: RunFiles, launch: LaunchSpec) -> bool:
    configured = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])["permission"]
    return bool(configured.get("task") == "deny")


#: How subagents are disabled: measured with the real programs, whose requests then lack the tools.
ALONE: Mapping[str, Callable[[RunFiles, LaunchSpec], bool]] = {
    "claude": refused_by_claude,
    "codex": refused_by_codex,
    "gemini": refused_by_gemini,
    "opencode": refused_by_opencode,
}


@pytest.mark.parametrize(
    "name", [name for name, adapter in AGENTS.items() if adapter.supports_subagents]
)
def test_subagents_are_available_unless_disabled(name: str, files: RunFiles) -> None:
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps({"permission": {"task": "allow"}})}
    for allowed in (True, False):
        kind = AgentType(program=name, subagents=allowed, env=env)
        launch = AGENTS[name](kind).prepare(files, "Do it.", "")
        assert ALONE[name](files, launch) is not allowed


def test_codex_gets_the_number_of_concurrent_subagents(files: RunFiles) -> None:
    for allowed, configured in (
        (2, ["agents.max_threads=2"]),
        (1, ["agents.max_threads=1"]),
        (True, []),
    ):
        launch = AGENTS["codex"](AgentType(program="codex", subagents=allowed)).prepare(
            files, "Do it.", ""
        )
        assert [word for word in launch.argv if "agents." in word] == configured
