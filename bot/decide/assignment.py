"""Assigns sessions to agents. A session keeps its agent until a person hands it over."""

import re
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from bot.store import Session, Store
from config.settings import AgentSettings, ProjectSettings, Settings, requestable
from lifecycle.judge.capacity import Caps
from lifecycle.model.facts import Issue
from lifecycle.model.names import agent_names

#: A path or a file's name. Each word is tried from its beginning only, because texts may be long.
_FILE = re.compile(r"(?<![\w.-])[\w.-]++(?:/[\w.-]++)+|(?<![\w-])[\w-]++\.[A-Za-z]\w*")
_DOTS = re.compile(r"^(?:\.*/)+")  # As in `./a` and `../a`, but not in `.github/a`.
_NO_CAPS = Caps(sessions=0)


class AssignedAgent(NamedTuple):
    """The name of an agent, and the agent type it runs."""

    agent: str
    agent_type: str


@dataclass(eq=False)
class Assignment:
    """Chooses an agent for each session; people request agents by name or by agent type."""

    store: Store
    agents: Mapping[str, AgentSettings]
    projects: Mapping[str, ProjectSettings]
    caps: Caps = _NO_CAPS

    @property
    def names(self) -> Set[str]:
        """Return what people can request: agents and agent types (see `requestable`)."""
        return requestable(self.agents)

    def system_prompt(self, agent: str) -> str:
        """Return the agent's system prompt; empty if it has none or the agent is not configured."""
        found = self.agents.get(agent)
        return found.system_prompt if found else ""

    def tools(self, agent: str) -> tuple[str, ...]:
        """Return the kinds of tools to which an agent is limited; empty if it may use all."""
        found = self.agents.get(agent)
        return found.tools if found else ()

    def choose(self, name: str, project: str, requester: str, about: str = "") -> AssignedAgent:
        """Choose the agent and agent type for a session.

        `name` is an agent, an agent type, or both, separated by a space. An agent alone gets its
        first type. For a type alone, the agent with the fewest open sessions is chosen, unless the
        project's setting `affinity` prefers another: with "last", the agent of the requester's last
        session in the project; with "area", the agent whose merged sessions most often changed the
        files and directories that the text `about` names.
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
        knows = self._experience(project, about) if len(able) > 1 else {}
        able.sort(key=lambda agent: (-knows.get(agent, 0), busy.get(agent, 0), agent))
        return AssignedAgent(able[0], name)

    def _experience(self, project: str, about: str) -> Mapping[str, int]:
        """Return how many of each agent's merged sessions changed files that `about` names.

        Empty if the project's `affinity` is not "area".
        """
        if self.projects[project].affinity != "area":
            return {}
        named = {_DOTS.sub("", found[0]).rstrip("./") for found in _FILE.finditer(about)}
        agents = self.store.agents
        return Counter(
            agent
            for agent, session in agents.merged(project)
            if any(_is_in(path, named) for path in agents.paths(session))
        )

    def _successor(self, session: Session, name: str) -> AssignedAgent:
        about = "\n".join((describe(session.issue), *self.store.agents.paths(session.id)))
        return self.choose(name, session.project, session.requester, about)

    def handover_blocker(self, session: Session, name: str) -> str:
        """Return which limit bars a session from moving to this agent or type now; empty if none.

        Also empty if the session has that agent or type already.
        """
        if name in agent_names(session.agent_name, session.agent_type):
            return ""
        chosen = self._successor(session, name)
        return self.store.slots.handover_blocker(
            session.id, chosen.agent, chosen.agent_type, self.caps
        )

    def hand_over(self, session: Session, name: str, run: int) -> Session:
        """Assign the session to the agent or agent type `name`, from run `run` on.

        Returns the changed session. Idempotent: a session that has this agent or type already does
        not change.
        """
        if name in agent_names(session.agent_name, session.agent_type):
            return session
        chosen = self._successor(session, name)
        self.store.agents.assign(session.id, chosen.agent, chosen.agent_type, run)
        return replace(session, agent_name=chosen.agent, agent_type=chosen.agent_type)


def describe(issue: Issue) -> str:
    """Return the title and body of an issue as one text, for the argument `about` of `choose`."""
    return f"{issue.title}\n{issue.body}"


def _is_in(path: str, named: Set[str]) -> bool:
    """Whether the path, an end of the path, or one of its directories is among `named`."""
    parts = path.split("/")
    ends = ("/".join(parts[place:]) for place in range(len(parts)))
    directories = ("/".join(parts[:place]) for place in range(1, len(parts)))
    return not named.isdisjoint((*ends, *directories))


def caps(settings: Settings) -> Caps:
    """Return the configured limits on how many sessions may run an agent at the same time."""
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
