"""`help`: a person wants to know what can be said."""

from bot.intake.commands.base import CommandSyntax

HELP = CommandSyntax(name="help", asks="show this list")
