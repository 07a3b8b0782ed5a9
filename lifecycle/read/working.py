"""What the facts say of the agent and its work, whatever its pull requests are."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from lifecycle.model import keys
from lifecycle.model.facts import Command, Facts
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.policy import Policy
from lifecycle.read.availability import Availability, availability_of, last_availability
from lifecycle.read.moment import Moment

# Looked up once: a member of an enumeration costs a search each time it is named.
_AT_REST: Final = (Availability.QUIET, Availability.ENDED)
#: What the world asks of the agent: all messages but reminders of uncommitted work.
_REQUESTS: Final = keys.MESSAGES - {KeyKind.COMMIT_WORK}
#: Commands that may name who is to work on it from then on.
_NAMES_AGENT: Final = ("agent", "review", "start")


class Working(Moment):
    """Facts under a policy at an instant, with what its agent is at, and how far its work is."""

    def __init__(
        self, facts: Facts, policy: Policy, now: datetime, due: list[datetime] | None = None
    ) -> None:
        super().__init__(facts, policy, now, due)
        work = facts.work
        self.availability = availability_of(self)
        #: The same as far as a failed look contradicts nothing: what a status is read by, while
        #: nothing is said to an agent that cannot be seen.
        self.stands = last_availability(self, self.availability)
        #: Whether the agent is done with everything it was told: its turn or its program ended.
        self.at_rest = self.stands in _AT_REST
        #: Whether GitHub has the agent's commit, and whether there is one that it lacks.
        shown = [pull.head for pull in facts.pulls]
        self.pushed = work.head in shown or work.head in self.past.pushes
        self.unpushed = bool(work.head) and work.head != work.base and not self.pushed

    @property
    def pushes_full(self) -> datetime | None:
        """When the first of so many pushes went out that none is left this hour; None: one is."""
        most = self.policy.pushes_per_hour
        newest = sorted(self.past.pushes.values(), reverse=True) if most else []
        first = newest[most - 1 :][:1]
        return first[0] if first and not self.passed(first[0], 3600) else None

    @property
    def handing_over(self) -> Command | None:
        """Who named another agent last, until that agent has the session."""
        facts = self.facts
        named = [
            command for command in facts.commands if command.kind in _NAMES_AGENT and command.text
        ]
        last = max(named, key=lambda command: command.at, default=None)
        return last if last and last.text not in (facts.agent_name, facts.agent_type) else None

    def in_vain(self, told: datetime) -> bool:
        """Whether the agent came to rest without a commit after it was told something."""
        return self.at_rest and not self.unpushed and not self.past.pushed_since(told)

    @property
    def crashes(self) -> int:
        """Runs that failed by themselves since the session last came further; see `_in_a_row`."""
        return self._in_a_row(self.past.crashes)

    @property
    def losses(self) -> int:
        """Runs that were lost with what they ran on since then: no fault of the agent's."""
        return self._in_a_row(self.past.losses)

    def _in_a_row(self, runs: Mapping[int, datetime]) -> int:
        """How many of these there were since the session last came further, whatever they pushed.

        It comes further with a pull request, with green checks, with a person's push, and with a
        new request to it.
        """
        opened = self.facts.done.get(keys.open_pull(self.facts.branch))
        marks = list(self._requests.values())
        marks += [opened.at] if opened else []
        for pull in self.facts.pulls:
            marks += [pull.green_since] if pull.green_since else []
            marks += [pull.person.at] if pull.person else []
        since = max(marks, default=None)
        return sum(since is None or at > since for at in runs.values())

    @property
    def _requests(self) -> dict[Key, datetime]:
        """What the world asked of the agent after its issue, with when it was first told."""
        return self.past.told(_REQUESTS)
