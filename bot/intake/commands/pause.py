"""`pause`: a person wants the agent to rest."""

from bot.intake.commands.base import CommandSyntax

PAUSE = CommandSyntax(name="pause", asks="end the agent's program, keeping its conversation")
