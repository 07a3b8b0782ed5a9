"""Facts under a policy at one instant, and what only the clock and the past decide.

Every comparison with the clock goes through `Moment.passed`, which notes the instant at which the
answer will change; the earliest of them is when the session must be judged again.
"""

from datetime import datetime, timedelta
from functools import lru_cache

from lifecycle.model.facts import Command, Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import Probe
from lifecycle.read.action_history import ActionHistory

# Looked up once: a member of an enumeration costs a search each time it is named.
_ALIVE = Probe.ALIVE


@lru_cache(maxsize=1024)
def _span(seconds: float) -> timedelta:
    """A length of time. Most are thresholds of a policy, the same at every visit."""
    return timedelta(seconds=seconds)


class Moment:
    """What every question about a session starts from. Lives for one decision."""

    def __init__(
        self, facts: Facts, policy: Policy, now: datetime, due: list[datetime] | None = None
    ) -> None:
        """`due` collects when answers will change; views of one decision share it."""
        self.facts = facts
        self.policy = policy
        self.now = now
        self._due: list[datetime] = [] if due is None else due
        self.past = ActionHistory(facts.done)
        #: When this run was last given something to do; None: it was not started.
        self.given = self.past.given(facts.run)
        #: Whether runtime and program were both seen to live.
        self.alive = facts.agent.runtime is _ALIVE and facts.agent.program is _ALIVE

    def awaits_receipt(self) -> bool:
        """Whether something sent to this run may still show up where the agent reads.

        Where nobody can look it counts as lost a while after it was expected: every wait ends.
        """
        return any(
            not sent.missing
            and key.run == self.facts.run
            and not self.passed(sent.until, self.policy.recent_activity_seconds)
            for key, sent in self.facts.sent.items()
        )

    def passed(self, since: datetime, seconds: float) -> bool:
        """Whether so many seconds have gone by; if not, be asked again when they have."""
        due = since + _span(seconds)
        if self.now >= due:
            return True
        self._due.append(due)
        return False

    @property
    def recheck_at(self) -> datetime | None:
        """The first instant at which an answer given so far will change; None: never."""
        return min(self._due) if self._due else None

    def command(self, kind: str) -> Command | None:
        """The newest command of a kind."""
        if not self.facts.commands:
            return None
        commands = [command for command in self.facts.commands if command.kind == kind]
        return max(commands, key=lambda command: command.at, default=None)

    def commanded_since(self, at: datetime, *kinds: str) -> bool:
        """Whether a person asked for one of these after then."""
        return any(command.kind in kinds and command.at > at for command in self.facts.commands)
