"""`status`: a person asks how far it is."""

from bot.intake.commands.base import CommandSyntax

STATUS = CommandSyntax(name="status", asks="say how far the session is")
