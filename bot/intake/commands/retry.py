"""`retry`: a person mended what stood in the way."""

from bot.intake.commands.base import CommandSyntax

RETRY = CommandSyntax(name="retry", asks="try again what was given up")
