"""Assigns sessions to agents. An agent keeps the sessions it is assigned."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from bot.store import Session, Store
from config.settings import AgentSettings, ProjectSettings, Settings, requestable
from lifecycle.judge.capacity import Caps
from lifecycle.model.names import agent_names

_NO_CAPS = Caps(sessions=0)


class AssignedAgent(NamedTuple):
    """The name of an agent, and the agent type it runs."""

    agent: str
    agent_type: str


@dataclass(eq=False)
class Assignment:
    """Chooses among the configured agents, which are requested by name or by agent type."""

    store: Store
    agents: Mapping[str, AgentSettings]
    projects: Mapping[str, ProjectSettings]
    caps: Caps = _NO_CAPS

    @property
    def names(self) -> Set[str]:
        """What can be requested: see `requestable`."""
        return requestable(self.agents)

    def system_prompt(self, agent: str) -> str:
        """The agent's configured system prompt; empty if it is no longer configured."""
        found = self.agents.get(agent)
        return found.system_prompt if found else ""

    def tools(self, agent: str) -> tuple[str, ...]:
        """The kinds of tools that an agent is limited to; empty for all."""
        found = self.agents.get(agent)
        return found.tools if found else ()

    def choose(self, name: str, project: str, requester: str) -> AssignedAgent:
        """Choose the agent for a new session: by name, maybe with a type, or by an agent type.

        An agent named alone has its first type. Of an agent type the least busy agent is chosen.

        With `affinity = "last"` the agent of the requester's last session in the project comes
        first.
        """
        able = [agent for agent, one in self.agents.items() if name in one.types]
        if not able:
            agent, _, kind = name.partition(" ")
            return AssignedAgent(agent, kind or self.agents[agent].types[0])
        if self.projects[project].affinity == "last":
            last = self.store.agents.last(project, requester)
            if last in able:
                return AssignedAgent(last, name)
        busy = self.store.agents.open_sessions()
        return AssignedAgent(min(able, key=lambda agent: (busy.get(agent, 0), agent)), name)

    def handover_blocker(self, session: Session, name: str) -> str:
        """Why the agent of this name or type cannot take over a session now; empty if it can."""
        if name in agent_names(session.agent_name, session.agent_type):
            return ""
        chosen = self.choose(name, session.project, session.requester)
        return self.store.slots.handover_blocker(
            session.id, chosen.agent, chosen.agent_type, self.caps
        )

    def hand_over(self, session: Session, name: str, run: int) -> Session:
        """Assign the session to the agent of this name or type from `run` on.

        Returns the changed session. Idempotent: the agent chosen first keeps the session.
        """
        if name in agent_names(session.agent_name, session.agent_type):
            return session
        chosen = self.choose(name, session.project, session.requester)
        self.store.agents.assign(session.id, chosen.agent, chosen.agent_type, run)
        return replace(session, agent_name=chosen.agent, agent_type=chosen.agent_type)


def caps(settings: Settings) -> Caps:
    """How many sessions may run a program at the same time, from the settings."""
    limits = settings.limits
    return Caps(
        sessions=limits.sessions,
        per_person=limits.per_person,
        reserved=limits.reserved_for_people,
        projects={name: one.max_parallel for name, one in settings.projects.items()},
        agent_types={name: one.max_parallel for name, one in settings.agent_types.items()},
        agents={name: one.max_parallel for name, one in settings.identities.items()},
        priority_seconds=limits.priority_seconds,
        session_mb=limits.memory_per_session_mb,
        reserve_mb=limits.memory_reserve_mb,
    )
