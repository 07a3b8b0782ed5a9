"""The files of Aider: an analytics log, which is the run's spool, and chat histories."""

from pathlib import Path

from msgspec import Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Dollars, Seconds


class AiderProperties(Struct, frozen=True):
    """The usage of one request, by Aider's own estimate while it streams."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Dollars = 0.0
    exception: str = ""

    def usage(self) -> Usage:
        """Return it as usage. Aider reports a cost of 0 if it knows no price."""
        return Usage(
            input=self.prompt_tokens,
            output=self.completion_tokens,
            cost_usd=self.cost or None,
        )


class AiderEvent(Struct, frozen=True):
    """One line of the analytics log: https://aider.chat/docs/more/analytics.html."""

    event: str
    time: Seconds
    properties: AiderProperties = AiderProperties()


def folder(files: RunFiles) -> Path:
    """The adapter's folder for Aider's files."""
    return files.home / ".aider"


def history(files: RunFiles, native: str) -> Path:
    """The chat history of a conversation, which Aider appends to."""
    return folder(files) / f"{native}.chat.md"
