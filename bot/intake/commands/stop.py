"""`stop`: a person ends the session."""

from bot.intake.commands.base import CommandSyntax

STOP = CommandSyntax(
    name="stop", asks="end the session; its work is kept, the pull request stays open"
)
