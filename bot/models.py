"""Where an agent's model is, and with which key: the agent's own, its project's, its type's."""

from collections.abc import Mapping

from bot.store import Session
from config.settings import Settings
from runtimes.agents.base import Endpoint


class Models:
    """Every endpoint and key of the configuration."""

    def __init__(self, settings: Settings, keys: Mapping[str, str]) -> None:
        """`keys` by the variables that `settings` name."""
        self._settings = settings
        self._keys = keys

    def endpoint(self, session: Session) -> Endpoint:
        """Where the model of a session's agent is, with the real key for it."""
        kind = self._settings.agent_types[session.agent_type]
        variable, _ = key_source(
            self._settings, session.agent_type, session.agent_name, session.project
        )
        return Endpoint(url=kind.endpoint.rstrip("/"), key=self._keys.get(variable, ""))


def key_source(
    settings: Settings, agent_type: str, agent: str = "", project: str = ""
) -> tuple[str, str]:
    """The variable with the model key of a type, and who names it; both empty: nobody does.

    An agent's own comes first, then its project's, then the type's, which is the server's.
    """
    for place, owners in (("agent", settings.agents), ("project", settings.projects)):
        owner = owners.get(agent if place == "agent" else project)
        if owner and (variable := owner.model_keys.get(agent_type)):
            return variable, place
    variable = settings.agent_types[agent_type].key
    return variable, "server" if variable else ""
