"""`update`: a person wants the base branch brought into the pull request."""

from bot.intake.commands.base import CommandSyntax

UPDATE = CommandSyntax(name="update", asks="bring the base branch into the pull request's branch")
