"""Tests that an agent gets only the MCP servers, hooks and permission mode that profiles allow.

A profile is a section `[profiles.NAME]` of the configuration. Adapters get its settings in
`RunLimits`.
"""

import json
from pathlib import Path

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles, RunLimits


def option(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1] if name in argv else ""


def test_claude_gets_only_the_named_mcp_servers(files: RunFiles) -> None:
    adapter = AGENTS["claude"](AgentType(program="claude"))
    assert "--strict-mcp-config" not in adapter.prepare(files, "Do it.", "").argv
    servers = {"docs": ("docs-mcp", "--stdio")}
    argv = adapter.prepare(files, "Do it.", "", RunLimits(mcp_servers=servers)).argv
    assert "--strict-mcp-config" in argv
    written = json.loads(Path(option(argv, "--mcp-config")).read_text())
    assert written == {"mcpServers": {"docs": {"command": "docs-mcp", "args": ["--stdio"]}}}
    argv = adapter.prepare(files, "Do it.", "", RunLimits(mcp_servers={})).argv
    assert json.loads(Path(option(argv, "--mcp-config")).read_text()) == {"mcpServers": {}}


def test_claude_runs_no_hooks_but_our_own(files: RunFiles) -> None:
    adapter = AGENTS["claude"](AgentType(program="claude"))
    own = files.home / ".claude" / "settings.json"
    assert "--setting-sources" not in adapter.prepare(files, "Do it.", "").argv
    own.write_text('{"hooks": {"Stop": []}}')  # By the agent, for its next run.
    argv = adapter.prepare(files, "Do it.", "", RunLimits(hooks=False)).argv
    assert option(argv, "--setting-sources") == "user"
    assert own.read_text() == "{}"
    assert "UserPromptSubmit" in Path(option(argv, "--settings")).read_text()


@pytest.mark.parametrize(
    "name", [name for name, adapter in AGENTS.items() if adapter.permission_modes]
)
def test_the_permission_mode_of_a_run_takes_precedence(name: str, files: RunFiles) -> None:
    def started(mode: str, limits: RunLimits) -> object:
        made = AGENTS[name](AgentType(program=name, permission_mode=mode))
        launch = made.prepare(files, "Do it.", "", limits)
        return launch.argv, launch.env.get("OPENCODE_CONFIG_CONTENT")

    confirmed = started("confirm", RunLimits())
    assert started("auto", RunLimits(permission_mode="confirm")) == confirmed
    assert started("auto", RunLimits()) != confirmed
