"""Queries over the commands that people gave to a session."""

from datetime import datetime
from typing import Final

from lifecycle.model.facts import Command, Facts

#: Commands that may name the agent that continues the session.
_NAMES_AGENT: Final = ("agent", "review", "start")


class CommandQueries:
    """The part of a session's view that reads its commands."""

    __slots__ = ()
    facts: Facts

    def command(self, kind: str) -> Command | None:
        """The newest command of a kind."""
        if not self.facts.commands:
            return None
        commands = [command for command in self.facts.commands if command.kind == kind]
        return max(commands, key=lambda command: command.at, default=None)

    def commanded_since(self, at: datetime, *kinds: str) -> bool:
        """Whether a person gave one of these commands after `at`."""
        return any(command.kind in kinds and command.at > at for command in self.facts.commands)

    @property
    def requested_agent(self) -> Command | None:
        """The command that last named another agent, until that agent has the session."""
        facts = self.facts
        named = [one for one in facts.commands if one.kind in _NAMES_AGENT and one.text]
        last = max(named, key=lambda command: command.at, default=None)
        return last if last and last.text not in (facts.agent_name, facts.agent_type) else None

    @property
    def merge_cancelled(self) -> bool:
        """Whether a person cancelled the merge, and nobody has requested it since."""
        merge, cancel = self.command("merge"), self.command("cancel")
        return cancel is not None and (merge is None or cancel.at > merge.at)
