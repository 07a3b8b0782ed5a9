"""`answer`: a person answers what the agent asked."""

from bot.intake.commands.base import CommandSyntax, message

ANSWER = CommandSyntax(
    name="answer",
    takes="TEXT",
    asks="answer the agent's question with the rest of the paragraph",
    read=message,
    whole=True,
)
