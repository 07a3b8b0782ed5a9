"""`allow`: a person lets a commit out that changes protected paths."""

import re

from bot.intake.commands.base import CommandSyntax, Unfit

_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def commit(text: str) -> str:
    """The commit's name, or how it begins."""
    if not _COMMIT.fullmatch(text.lower()):
        raise Unfit("needs the commit it is about, at least its first seven characters")
    return text.lower()


ALLOW = CommandSyntax(
    name="allow",
    takes="COMMIT",
    asks="push that commit although it changes protected paths",
    read=commit,
)
