"""`tell`: a person has something to say to the agent."""

from bot.intake.commands.base import CommandSyntax, message

TELL = CommandSyntax(
    name="tell",
    takes="TEXT",
    asks="tell the agent the rest of the paragraph at the end of its turn",
    read=message,
    whole=True,
)
