"""Profiles limit what a run may do. Those that its agent's program cannot enforce are refused."""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest

from bot.system.locations import programs
from bot.system.profiles import NotEnforced, PermissionModes, limits_of_profiles, problems
from config.settings import PermissionMode, Settings
from lifecycle.model.names import PERMISSION_MODES
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


def limits(settings: Settings, mode: str = "") -> RunLimits:
    """Return the limits of a run of the agent `ada` in the project `widgets`.

    `mode` is the permission mode that was chosen for the run's session, or empty.
    """
    tools, adapter = settings.agents["ada"].tools, programs(settings)["x"]
    return limits_of_profiles(settings, settings.projects["widgets"], "x", tools, adapter, mode)


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
    assert (
        "no tool is in all non-empty `tools` lists of the agent and its profiles"
        in refusals(settings).pop()
    )
    with pytest.raises(NotEnforced):
        limits(settings)


def with_mode(settings: Settings, mode: str) -> Settings:
    """The settings with another permission mode of the agent type."""
    kind = msgspec.structs.replace(settings.agent_types["x"], permission_mode=mode)
    return msgspec.structs.replace(settings, agent_types={"x": kind})


def test_the_words_for_permission_modes_are_those_of_the_settings() -> None:
    assert get_args(PermissionMode) == PERMISSION_MODES


@pytest.mark.parametrize(
    ("kind", "profile", "allowed"),
    [
        ("auto", None, PERMISSION_MODES),
        ("confirm", None, ("confirm", "reject")),
        ("reject", None, ("reject",)),
        ("confirm", "", ("confirm", "reject")),
        ("confirm", "auto", PERMISSION_MODES),
        ("auto", "confirm", ("confirm", "reject")),
        ("reject", "confirm", ("confirm", "reject")),
    ],
)
@pytest.mark.parametrize("where", ["project", "kind"])
def test_a_session_runs_in_a_permission_mode_of_its_own_as_far_as_it_is_allowed(
    kind: str, profile: str | None, allowed: tuple[str, ...], where: str
) -> None:
    named = {} if profile is None else {where: "p"}
    settings = with_mode(configured(**named, p={"permission-mode": profile or ""}), kind)
    modes = PermissionModes(settings, programs(settings)).of("widgets")
    assert modes == dict.fromkeys(("ada", "ada x", "x"), allowed)
    for mode in PERMISSION_MODES:
        runs_in = mode if mode in allowed else allowed[0]
        assert limits(settings, mode).permission_mode == runs_in


def test_of_two_profiles_the_stricter_permission_mode_is_the_least_strict_one_allowed() -> None:
    settings = configured(
        project="p", kind="q", p={"permission-mode": "auto"}, q={"permission-mode": "confirm"}
    )
    modes = PermissionModes(settings, programs(settings))
    assert modes.of("widgets")["x"] == ("confirm", "reject")
    assert limits(settings, "auto").permission_mode == "confirm"


def test_a_program_without_permission_modes_allows_none() -> None:
    settings = configured("shell")
    assert set(PermissionModes(settings, programs(settings)).of("widgets").values()) == {()}
    with pytest.raises(NotEnforced, match="x: shell cannot enforce permission-mode"):
        limits(settings, "confirm")


def test_an_agent_named_with_one_of_its_types_is_allowed_the_modes_of_that_type() -> None:
    settings = msgspec.convert(
        {
            "agent-types": {
                "strict": {"program": "claude", "permission-mode": "reject"},
                "free": {"program": "codex"},
            },
            "agents": {"ada": {"types": ["strict", "free"]}},
        },
        Settings,
    )
    modes = PermissionModes(settings, programs(settings)).of("")
    assert modes == {
        "ada": ("reject",),
        "ada free": PERMISSION_MODES,
        "ada strict": ("reject",),
        "free": PERMISSION_MODES,
        "strict": ("reject",),
    }
