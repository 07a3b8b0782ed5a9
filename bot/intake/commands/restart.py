"""`restart`: a person wants the agent's program started anew."""

from bot.intake.commands.base import CommandSyntax

RESTART = CommandSyntax(name="restart", asks="end the agent's program and start it anew at once")
