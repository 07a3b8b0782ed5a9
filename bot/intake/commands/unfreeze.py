"""`unfreeze`: a person lets things happen again."""

from bot.intake.commands.base import CommandSyntax

UNFREEZE = CommandSyntax(name="unfreeze", asks="let things happen again, those that were held too")
