"""`help`: a person wants to know what can be said."""

from bot.intake.commands.base import Command

HELP = Command(name="help", asks="show this list")
