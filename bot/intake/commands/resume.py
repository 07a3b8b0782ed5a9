"""`resume`: a person lets a paused agent go on."""

from bot.intake.commands.base import CommandSyntax

RESUME = CommandSyntax(name="resume", asks="let a paused session go on where it was")
