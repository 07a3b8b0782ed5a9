"""`why`: a person asks what stands in the way."""

from bot.intake.commands.base import CommandSyntax

WHY = CommandSyntax(
    name="why", asks="say why it is where it is, and what stands between it and its merge"
)
