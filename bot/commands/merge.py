"""`merge`: a person decides that the pull request lands."""

from bot.commands.base import Command

MERGE = Command(
    name="merge",
    asks="merge the pull request as it stands now, as soon as nothing stands in the way",
)
