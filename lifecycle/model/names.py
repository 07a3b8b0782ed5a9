"""The bot's name as people write it, and the labels that carry it."""

NAME = "mergewright"
#: The label that calls people to an issue.
CALLS_PEOPLE = f"{NAME}:needs-input"
#: The label that stops every effect on an issue's session.
FREEZES = f"{NAME}:freeze"
#: How the labels begin that show a status.
SHOWS_STATUS = f"{NAME}/"


def agent_names(agent: str, agent_type: str) -> tuple[str, str, str]:
    """Return how commands may name an agent of this type: by name, by type, or by both."""
    return agent, agent_type, f"{agent} {agent_type}"
