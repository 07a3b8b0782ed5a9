"""Names as people write them: of the bot, its labels, agents and permission modes."""

NAME = "mergewright"
#: The label that calls people to an issue, or to the pull request of a session without an issue.
CALLS_PEOPLE = f"{NAME}:needs-input"
#: The label on an issue or a pull request that freezes its session.
FREEZES = f"{NAME}:freeze"
#: The name of the blocker that a frozen session has.
FROZEN = "frozen"
#: The prefix of the labels that show a status.
SHOWS_STATUS = f"{NAME}/"

#: Actors without a login: a user of the server, whose name follows `cli:`, and the page token's.
CLI, API, PAGE = "cli:", "api:client", "page:visitor"

#: The modes that say what happens when agents need a permission, the least strict first.
PERMISSION_MODES = ("auto", "confirm", "reject")
#: The command that turns a chat into a pull request.
MAKES_PULL = "pull-request"
#: The permission mode of a chat for which the person chose none, if its agent may run in it.
CHAT_MODE = "confirm"
#: The prefix of the permission mode with which the argument of a command may end.
MODE = "permission-mode="


def agent_names(agent: str, agent_type: str) -> tuple[str, str, str]:
    """Return how commands may name an agent of this type: by name, by type, or by both."""
    return agent, agent_type, f"{agent} {agent_type}"


def agent_of(argument: str) -> str:
    """Return the agent that a command's argument names, known or not; empty if it names none."""
    return argument.partition(MODE)[0].strip()


def mode_of(argument: str) -> str:
    """Return the permission mode at the end of a command's argument; empty if there is none."""
    return argument.partition(MODE)[2]
