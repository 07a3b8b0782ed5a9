"""`agent`: a person wants another agent to go on with it."""

from bot.intake.commands.base import CommandSyntax, Unfit, agent_name


def name(text: str) -> str:
    """Which agent."""
    if not text:
        raise Unfit("needs the name of an agent after it")
    return agent_name(text)


AGENT = CommandSyntax(
    name="agent", takes="NAME", asks="have another agent take over, in a new run", read=name
)
