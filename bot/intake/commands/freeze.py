"""`freeze`: a person wants everything to hold still."""

from bot.intake.commands.base import CommandSyntax

FREEZE = CommandSyntax(
    name="freeze", asks="let nothing happen any more, neither on GitHub nor to the agent"
)
