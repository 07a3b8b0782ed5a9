"""`review`: a person wants the pull request read over once more."""

from bot.intake.commands.base import CommandSyntax, agent_name

REVIEW = CommandSyntax(
    name="review",
    takes="[AGENT]",
    asks="have the agent read the pull request over and mend what it finds; "
    "another one that is named takes over for it",
    read=agent_name,
)
