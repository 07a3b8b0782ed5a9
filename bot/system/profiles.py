"""Combines the profiles of a project and of an agent type into the limits of a run.

People may choose another permission mode for a session. It must be at least as strict as the modes
of these profiles or, if they have none, as the mode of the agent type.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from config.settings import ProfileSettings, ProjectDefaults, Settings, requestable
from lifecycle.model.names import PERMISSION_MODES
from runtimes.agents.base import RunLimits
from runtimes.agents.shared.adapter import AgentAdapter


class NotEnforced(Exception):
    """An agent cannot be limited as its profiles require; the message says why and what to do."""


def limits_of_profiles(
    settings: Settings,
    project: ProjectDefaults | None,
    agent_type: str,
    tools: Collection[str],
    adapter: AgentAdapter,
    permission_mode: str = "",
) -> RunLimits:
    """Return the limits of a run, which combine those of its profiles and the agent's `tools`.

    `permission_mode` is the mode that was chosen for the session, or empty. If it is less strict
    than required, the required mode is used.

    Raises `NotEnforced` if no tool is left, or if the agent's program cannot enforce a limit.
    """
    kind = settings.agent_types[agent_type]
    profiles = _profiles(settings, project.profile if project else "", agent_type)
    if not profiles and not permission_mode:
        return RunLimits(tools=tuple(tools))
    where = f"{agent_type} with profile {' and '.join(profiles)}" if profiles else agent_type
    limited_mode = permission_mode or any(one.permission_mode for one in profiles.values())
    least = _least_strict(kind.permission_mode, profiles)
    servers = [one.mcp_servers for one in profiles.values() if one.mcp_servers != "repository"]
    limited = [one for one in (tools, *(one.tools for one in profiles.values())) if one]
    allowed = (
        [tool for tool in limited[0] if all(tool in one for one in limited)] if limited else []
    )
    if limited and not allowed:
        raise NotEnforced(
            f"{where}: no tool is in all non-empty `tools` lists of the agent and its profiles;"
            " add a tool to those of these lists that lack it"
        )
    limits = RunLimits(
        tools=tuple(allowed),
        permission_mode=_stricter(permission_mode or kind.permission_mode, least)
        if limited_mode
        else "",
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
    """Yield why agents cannot be limited as the profiles of agent types and projects require.

    `adapters` are by agent type.
    """
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


@dataclass(frozen=True)
class PermissionModes:
    """The permission modes that people may choose for sessions."""

    settings: Settings
    adapters: Mapping[str, AgentAdapter]  #: By agent type.
    _by_profile: dict[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict, init=False)

    def of(self, project: str) -> Mapping[str, tuple[str, ...]]:
        """Return the permission modes that a person may choose in a project, for each agent.

        A key is the name of an agent or type, or both (see `requestable`). Its value is empty if
        the agent's program has no permission modes.
        """
        known = self.settings.projects.get(project)
        profile = known.profile if known else ""
        if profile not in self._by_profile:
            names = sorted(requestable(self.settings.identities))
            self._by_profile[profile] = {name: self._of(name, profile) for name in names}
        return self._by_profile[profile]

    def _of(self, name: str, profile: str) -> tuple[str, ...]:
        kind = name
        if name not in self.settings.agent_types:
            agent, _, named = name.partition(" ")
            kind = named or self.settings.identities[agent].types[0]
        if not self.adapters[kind].permission_modes:
            return ()
        default = self.settings.agent_types[kind].permission_mode
        least = _least_strict(default, _profiles(self.settings, profile, kind))
        return PERMISSION_MODES[PERMISSION_MODES.index(least) :]


def _profiles(settings: Settings, of_project: str, agent_type: str) -> dict[str, ProfileSettings]:
    """Return the profiles of an agent type and of its project, by name.

    `of_project` is the name of the project's profile, or empty.
    """
    names = (of_project, settings.agent_types[agent_type].profile)
    return {name: settings.profiles[name] for name in names if name}


def _least_strict(default: str, profiles: Mapping[str, ProfileSettings]) -> str:
    """Return the least strict mode that all profiles allow; `default` if none sets a mode.

    A profile allows the permission mode that it sets, and all stricter ones.
    """
    modes = [one.permission_mode for one in profiles.values() if one.permission_mode]
    return _stricter(*modes) if modes else default


def _stricter(*modes: str) -> str:
    return max(modes, key=PERMISSION_MODES.index)
