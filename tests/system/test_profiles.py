"""Profiles: the limits of a run, and what an agent's program cannot enforce."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from bot.system.locations import programs
from bot.system.profiles import NotEnforced, limits_of_profiles, problems
from config.settings import Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import RunLimits

#: Each setting of a profile, with a value that limits something.
LIMITS: Mapping[str, Any] = {
    "tools": ["read"],
    "permission-mode": "confirm",
    "mcp-servers": {},
    "hooks": False,
}
#: What each program enforces.
ENFORCES = {
    "claude": {"tools", "permission-mode", "mcp-servers", "hooks"},
    "codex": {"permission-mode"},
    "gemini": {"tools", "permission-mode"},
    "opencode": {"tools", "permission-mode"},
    "aider": {"permission-mode", "mcp-servers", "hooks"},
    "shell": set[str](),
}


def configured(
    program: str = "claude", project: str = "", kind: str = "", **profiles: Any
) -> Settings:
    """An agent type and a project with profiles."""
    return msgspec.convert(
        {
            "projects": {"widgets": {"repository": "a/w", "agent": "x", "profile": project}},
            "agent-types": {"x": {"program": program, "profile": kind}},
            "agents": {"ada": {"types": ["x"], "tools": profiles.pop("agent", [])}},
            "profiles": profiles,
        },
        Settings,
    )


def limits(settings: Settings) -> RunLimits:
    """The limits of a run in the project."""
    tools, adapter = settings.agents["ada"].tools, programs(settings)["x"]
    return limits_of_profiles(settings, settings.projects["widgets"], "x", tools, adapter)


def refusals(settings: Settings) -> set[str]:
    return set(problems(settings, programs(settings)))


def test_every_program_says_what_it_enforces() -> None:
    assert ENFORCES.keys() == AGENTS.keys()


@pytest.mark.parametrize("program", AGENTS)
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("where", ["project", "kind"])
def test_what_a_program_cannot_enforce_is_refused(program: str, name: str, where: str) -> None:
    settings = configured(program, p={name: LIMITS[name]}, **{where: "p"})
    if name in ENFORCES[program]:
        assert refusals(settings) == set()
        assert limits(settings) != RunLimits()
    else:
        says = f"x with profile p: {program} cannot enforce {name}"
        assert [says in problem for problem in refusals(settings)] == [True]
        with pytest.raises(NotEnforced, match=says):
            limits(settings)


@pytest.mark.parametrize("program", AGENTS)
def test_a_profile_without_limits_is_enforced_by_all(program: str) -> None:
    settings = configured(program, "p", "p", p={})
    assert (refusals(settings), limits(settings)) == (set(), RunLimits())
    assert limits(configured(program)) == RunLimits()


def test_the_profiles_of_project_and_agent_type_both_apply() -> None:
    one, other = ["first", "--stdio"], ["other"]
    settings = configured(
        project="p",
        kind="q",
        agent=["read", "run", "web"],
        p={"tools": ["read", "run"], "permission-mode": "reject", "hooks": False},
        q={"tools": ["run", "edit", "web"], "permission-mode": "confirm"},
    )
    assert limits(settings) == RunLimits(tools=("run",), permission_mode="reject", hooks=False)
    servers = configured(
        project="p",
        kind="q",
        p={"mcp-servers": {"a": one, "b": one}},
        q={"mcp-servers": {"a": one, "b": other}},
    )
    assert limits(servers).mcp_servers == {"a": tuple(one)}


def test_a_profile_never_loosens_the_permission_mode_of_the_agent_type() -> None:
    settings = configured(kind="p", p={"permission-mode": "auto"})
    kind = msgspec.structs.replace(settings.agent_types["x"], permission_mode="reject")
    stricter = msgspec.structs.replace(settings, agent_types={"x": kind})
    assert limits(stricter).permission_mode == "reject"


def test_profiles_without_a_common_tool_are_refused() -> None:
    settings = configured(project="p", kind="q", p={"tools": ["read"]}, q={"tools": ["web"]})
    assert "no tool is in all their `tools`" in refusals(settings).pop()
    with pytest.raises(NotEnforced):
        limits(settings)
