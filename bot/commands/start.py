"""`start`: a person wants an agent on the issue, as the label would."""

import re

from bot.commands.base import Command, Unfit

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,38}")


def agent(text: str) -> str:
    """Which agent; empty: as the configuration says."""
    if text and not _NAME.fullmatch(text):
        raise Unfit("takes nothing or the name of one agent after it")
    return text


START = Command(
    name="start",
    takes="[AGENT]",
    asks="have an agent work on this issue, as the label does",
    read=agent,
)
