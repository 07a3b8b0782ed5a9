"""Queries over a session's commands."""

from datetime import datetime
from typing import Final

from lifecycle.model.facts import Command, Facts, Pull
from lifecycle.model.names import agent_names, agent_of, mode_of
from lifecycle.model.status import PullState

#: Commands that may name the agent that continues the session.
_NAMES_AGENT: Final = ("agent", "review", "start")
#: Commands that may give the session a permission mode.
_GIVES_MODE: Final = ("agent", "restart", "start")


class CommandQueries:
    """The part of a session's view that reads its commands."""

    __slots__ = ()
    facts: Facts
    pull: Pull | None

    def command(self, kind: str) -> Command | None:
        """Return the newest command of this kind, or None."""
        if not self.facts.commands:
            return None
        commands = [command for command in self.facts.commands if command.kind == kind]
        return max(commands, key=lambda command: command.at, default=None)

    def commanded_since(self, at: datetime, *kinds: str) -> bool:
        """Whether a person gave one of these commands after `at`."""
        return any(command.kind in kinds and command.at > at for command in self.facts.commands)

    @property
    def requested_agent(self) -> Command | None:
        """The newest command that names an agent; None if none does or it names the current one."""
        facts = self.facts
        named = [one for one in facts.commands if one.kind in _NAMES_AGENT and agent_of(one.text)]
        last = max(named, key=lambda command: command.at, default=None)
        current = agent_names(facts.agent_name, facts.agent_type)
        return last if last and agent_of(last.text) not in current else None

    @property
    def permission_mode(self) -> str:
        """The mode of the newest command that names one, or else the session's own, if any."""
        giving = [one for one in self.facts.commands if one.kind in _GIVES_MODE]
        given = [one for one in giving if mode_of(one.text)]
        last = max(given, key=lambda command: command.at, default=None)
        return mode_of(last.text) if last else self.facts.permission_mode

    @property
    def merge_command(self) -> Command | None:
        """The newest command to merge this head into this base branch, or None.

        A command for an earlier head counts too, if only the base was merged into it since.
        """
        pull = self.pull
        if pull is None or not self.facts.commands:
            return None
        merges = [one for one in self._merges() if one.head in (pull.head, *pull.carried)]
        if pull.base_since is not None:
            merges = [one for one in merges if one.at >= pull.base_since]
        return max(merges, key=lambda command: command.at, default=None)

    @property
    def merge_cancelled(self) -> bool:
        """Whether a person gave `cancel` after every command to merge this pull request."""
        cancel = self.command("cancel")
        return cancel is not None and all(cancel.at > merge.at for merge in self._merges())

    def _merges(self) -> list[Command]:
        """Return the `merge` commands that may be for the pull request of this view.

        Omits commands that are bound to a commit of another open pull request of the session,
        unless it is also one of this pull request. Only the commits `head` and `carried` count.
        """
        pull, merges = self.pull, [one for one in self.facts.commands if one.kind == "merge"]
        if len(self.facts.pulls) < 2 or pull is None:
            return merges
        opened = [one for one in self.facts.pulls if one.state is PullState.OPEN]
        others = {head for one in opened if one is not pull for head in (one.head, *one.carried)}
        return [one for one in merges if one.head not in others - {pull.head, *pull.carried}]
