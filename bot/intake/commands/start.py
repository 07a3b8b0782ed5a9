"""`start`: a person wants an agent on the issue, as the label would."""

from bot.intake.commands.base import CommandSyntax, agent_name

START = CommandSyntax(
    name="start",
    takes="[AGENT]",
    asks="have an agent work on this issue, as the label does",
    read=agent_name,
)
