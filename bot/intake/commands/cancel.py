"""`cancel`: a person takes a `merge` back."""

from bot.intake.commands.base import CommandSyntax

CANCEL = CommandSyntax(name="cancel", asks="take back a `merge` that has not happened yet")
