"""Combines the profiles of a project and an agent type into the limits of a run."""

from collections.abc import Collection, Iterator

from config.settings import ProjectDefaults, Settings
from runtimes.agents.base import RunLimits
from runtimes.agents.shared.adapter import AgentAdapter

_MODES = ("auto", "confirm", "reject")  #: From the least strict one.


class NotEnforced(Exception):
    """An agent cannot be limited as its profiles say; the message says why and what to do."""


def limits_of_profiles(
    settings: Settings,
    project: ProjectDefaults | None,
    agent_type: str,
    tools: Collection[str],
    adapter: AgentAdapter,
) -> RunLimits:
    """Return what a run may use: what all its profiles and the agent's own `tools` allow.

    Raises `NotEnforced`, also if its program cannot be limited so: nothing is left out silently.
    """
    kind = settings.agent_types[agent_type]
    names = dict.fromkeys((project.profile if project else "", kind.profile))
    profiles = {name: settings.profiles[name] for name in names if name}
    if not profiles:
        return RunLimits(tools=tuple(tools))
    where = f"{agent_type} with profile {' and '.join(profiles)}"
    modes = [one.permission_mode for one in profiles.values() if one.permission_mode]
    servers = [one.mcp_servers for one in profiles.values() if one.mcp_servers != "repository"]
    limited = [one for one in (tools, *(one.tools for one in profiles.values())) if one]
    allowed = (
        [tool for tool in limited[0] if all(tool in one for one in limited)] if limited else []
    )
    if limited and not allowed:
        raise NotEnforced(f"{where}: no tool is in all their `tools`; allow one in common")
    limits = RunLimits(
        tools=tuple(allowed),
        permission_mode=max((kind.permission_mode, *modes), key=_MODES.index) if modes else "",
        mcp_servers={
            name: command
            for name, command in servers[0].items()
            if all(one.get(name) == command for one in servers)
        }
        if servers
        else None,
        hooks=all(one.hooks for one in profiles.values()),
    )
    if lacking := adapter.unenforceable(limits):
        raise NotEnforced(
            f"{where}: {kind.program} cannot enforce {', '.join(lacking)}; remove that from the"
            " profile, or use another profile or agent"
        )
    return limits


def problems(settings: Settings, adapters: dict[str, AgentAdapter]) -> Iterator[str]:
    """Yield why agents of the configured projects cannot be limited. `adapters`: by agent type."""
    shared = settings.installation.project
    projects = [*settings.projects.values(), *([shared] if shared else [])]
    cases = [*((None, name) for name in adapters), *((one, one.agent) for one in projects)]
    for project, name in cases:
        own = [agent.tools for agent in settings.identities.values() if name in agent.types]
        for tools in dict.fromkeys(own):
            try:
                limits_of_profiles(settings, project, name, tools, adapters[name])
            except NotEnforced as problem:
                yield str(problem)
