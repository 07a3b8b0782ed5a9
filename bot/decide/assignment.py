"""Who takes a new session: agents have names, and keep what they begin."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from bot.store import AgentRecord, Session, Store
from config.settings import AgentSettings, ProjectSettings
from lifecycle.judge.capacity import Caps

_NO_CAPS = Caps(sessions=0)


class Chosen(NamedTuple):
    """An agent by name, and the agent type it runs."""

    agent: str
    agent_type: str


class Assignment:
    """Every agent of the configuration."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, AgentSettings],
        projects: Mapping[str, ProjectSettings],
        caps: Caps = _NO_CAPS,
    ) -> None:
        self._store = store
        self._caps = caps
        self._agents = agents
        self._projects = projects

    @property
    def words(self) -> Collection[str]:
        """What may be asked for: the name of an agent, or of an agent type."""
        return {*self._agents, *(kind for one in self._agents.values() for kind in one.types)}

    def system_prompt(self, agent: str) -> str:
        """What an agent is told before anything else; empty for one that is configured no more."""
        found = self._agents.get(agent)
        return found.system_prompt if found else ""

    def tools(self, agent: str) -> tuple[str, ...]:
        """The kinds of tools an agent is held to; empty: all."""
        found = self._agents.get(agent)
        return found.tools if found else ()

    def choose(self, word: str, project: str, requester: str) -> Chosen:
        """The agent for a new session: by name, or of those that run a type who is least busy.

        Where the project gives work back to who had it last, that is who had the requester's last
        session.
        """
        able = [name for name, agent in self._agents.items() if word in agent.types]
        if not able:
            return Chosen(word, self._agents[word].types[0])
        if self._projects[project].affinity == "last":
            last = self._store.agents.last(project, requester)
            if last in able:
                return Chosen(last, word)
        busy = self._store.agents.open_sessions()
        return Chosen(min(able, key=lambda name: (busy.get(name, 0), name)), word)

    def no_room(self, session: Session, word: str) -> str:
        """Why the agent asked for by this word cannot take a session over now; empty: it can."""
        if word in (session.agent_name, session.agent_type):
            return ""
        chosen = self.choose(word, session.project, session.requester)
        return self._store.slots.handover_blocker(
            session.id, chosen.agent, chosen.agent_type, self._caps
        )

    def hand_over(self, session: Session, word: str, run: int) -> Session:
        """The session with the agent that is asked for by this word, also in the store.

        From `run` on it is that agent's. Safe to repeat: who has been chosen for it keeps it.
        """
        if word in (session.agent_name, session.agent_type):
            return session
        chosen = self.choose(word, session.project, session.requester)
        self._store.agents.assign(session.id, chosen.agent, chosen.agent_type, run)
        return replace(session, agent_name=chosen.agent, agent_type=chosen.agent_type)


def known(
    ledgers: Sequence[AgentRecord], identities: Mapping[str, AgentSettings]
) -> list[AgentRecord]:
    """The records of all agents, those too that had no session yet or are configured no more."""
    kept = {one.agent: one for one in ledgers}
    return [kept.get(name) or AgentRecord(agent=name) for name in sorted({*kept, *identities})]
