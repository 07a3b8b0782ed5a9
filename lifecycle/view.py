"""What the facts say when they are read together: the questions rules and reactions ask.

Every comparison with the clock goes through `View.passed`, which notes the instant at which the
answer will change; the earliest of them is when the session must be judged again.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from lifecycle import keys
from lifecycle.facts import Check, Facts, Pull, Remark, Thread, Wish
from lifecycle.names import addresses_bot
from lifecycle.past import Past
from lifecycle.policy import Policy
from lifecycle.signals import Talk
from lifecycle.status import Activity, CheckState, Merge, Probe, PullState

_HELD: Final = (CheckState.CANCELLED, CheckState.ACTION_REQUIRED, CheckState.STALE)
_WEIGHT: Final = (PullState.CLOSED, PullState.MERGED, PullState.OPEN)
_REMINDER: Final = "tell:dirty:"


class View:
    """Facts under a policy at an instant. Lives for one decision."""

    def __init__(self, facts: Facts, policy: Policy, now: datetime) -> None:
        self.facts = facts
        self.policy = policy
        self.now = now
        self.recheck_at: datetime | None = None
        self.past = Past(facts.done)
        #: The pull request that matters: the newest open one, else merged one, else the newest.
        self.pull: Pull | None = None
        if facts.pulls:
            self.pull = max(facts.pulls, key=lambda pull: (_WEIGHT.index(pull.state), pull.number))
        self.talk = self._talk()

    def passed(self, since: datetime, seconds: float) -> bool:
        """Whether so many seconds have gone by; if not, be asked again when they have."""
        due = since + timedelta(seconds=seconds)
        if self.now >= due:
            return True
        if self.recheck_at is None or due < self.recheck_at:
            self.recheck_at = due
        return False

    # -- the agent -------------------------------------------------------------------------------

    def _talk(self) -> Talk:
        """What can be said to the agent; a run's own evidence alone counts."""
        facts, agent, policy = self.facts, self.facts.agent, self.policy
        if agent.run != facts.run:
            return Talk.NONE
        if agent.exit is not None:
            return Talk.ENDED if agent.exit.code == 0 else Talk.CRASHED
        if agent.runtime is Probe.DEAD and agent.program is Probe.DEAD:
            return Talk.CRASHED
        if not self.alive:
            return Talk.UNSURE
        if agent.activity is Activity.READY or agent.activity is Activity.IDLE:
            told = self.past.given.get(facts.run)
            if told is None or (agent.since is not None and agent.since > told):
                return Talk.QUIET
            # A message that has just gone in is being read, whatever the last evidence says.
            return Talk.QUIET if self.passed(told, policy.hearing_seconds) else Talk.ACTIVE
        if agent.activity is Activity.ACTIVE:
            seen = agent.seen or agent.since
            stale = seen is None or self.passed(seen, policy.fresh_seconds)
            return Talk.UNSURE if stale else Talk.ACTIVE
        if agent.activity is Activity.WAITING_INPUT:
            return Talk.WAITING
        if agent.activity is Activity.BLOCKED:
            return Talk.BLOCKED
        return Talk.UNSURE if agent.activity is Activity.EXITED else Talk.NONE

    @property
    def alive(self) -> bool:
        """Whether runtime and program were both seen to live."""
        agent = self.facts.agent
        return agent.runtime is Probe.ALIVE and agent.program is Probe.ALIVE

    @property
    def at_rest(self) -> bool:
        """Whether the agent is done with everything it was told: its turn or its program ended."""
        return self.talk is Talk.QUIET or self.talk is Talk.ENDED

    @property
    def unpushed(self) -> bool:
        """Whether the branch is at a commit of the agent that GitHub does not have."""
        work = self.facts.work
        return bool(work.head) and work.head != work.base and work.head not in self.past.pushes

    @property
    def current(self) -> bool:
        """Whether the pull request, as read, shows what is in the workspace."""
        return self.pull is not None and self.pull.head == self.facts.work.head

    def in_vain(self, told: datetime) -> bool:
        """Whether the agent came to rest without a commit after it was told something."""
        return self.at_rest and not self.unpushed and not self.past.pushed_since(told)

    @cached_property
    def crashes(self) -> int:
        """Runs that broke off since the session last came further, whatever they pushed.

        It comes further with a pull request, with green checks, and with a new request to it.
        """
        opened = self.facts.done.get(f"pull:{self.facts.branch}")
        marks = list(self._requests.values())
        marks += [opened.at] if opened else []
        marks += [self.pull.green_since] if self.pull and self.pull.green_since else []
        since = max(marks, default=None)
        return sum(since is None or at > since for at in self.past.crashes.values())

    @property
    def _requests(self) -> dict[str, datetime]:
        """What the world asked of the agent after its issue, with when it was first told."""
        told = self.past.told("tell:")
        return {cause: at for cause, at in told.items() if not cause.startswith(_REMINDER)}

    # -- the pull request ------------------------------------------------------------------------

    @cached_property
    def counted_checks(self) -> tuple[Check, ...]:
        """The checks readiness depends on: the required ones, or all where none is required."""
        checks = self.pull.checks if self.pull else ()
        return tuple([check for check in checks if check.required]) or checks

    @cached_property
    def failed_checks(self) -> list[Check]:
        return [check for check in self.counted_checks if check.state is CheckState.FAILED]

    @cached_property
    def held_checks(self) -> list[Check]:
        """Checks that only people can move: cancelled, stale, or asking for an action."""
        return [check for check in self.counted_checks if check.state in _HELD]

    @cached_property
    def pending_checks(self) -> list[Check]:
        return [check for check in self.counted_checks if check.state is CheckState.PENDING]

    # -- causes for a message: each a key without its run, empty while it does not stand -----------

    @cached_property
    def ci_cause(self) -> str:
        """This head with this set of failed checks, once nothing runs any more."""
        if self.pull is None or not self.current or not self.failed_checks or self.pending_checks:
            return ""
        return f"tell:ci:{self.pull.head}:{keys.fingerprint(c.id for c in self.failed_checks)}"

    @cached_property
    def conflict_cause(self) -> str:
        """This head in conflict with this base."""
        if self.pull is None or self.pull.merge is not Merge.CONFLICT or not self.current:
            return ""
        return f"tell:conflict:{self.pull.base}:{self.pull.head}"

    @cached_property
    def review_cause(self) -> str:
        """What people asked for and the agent was not told."""
        if not self.unheard:
            return ""
        return f"tell:review:{keys.fingerprint(remark.id for remark in self.unheard)}"

    @cached_property
    def dirty_cause(self) -> str:
        """Work left uncommitted after one request: it does not matter at which commit."""
        if not self.facts.work.dirty:
            return ""
        return f"{_REMINDER}{len(self._requests) + len(self.past.crashes)}"

    @property
    def repairs(self) -> dict[str, datetime]:
        """What was told of failed checks since they were last green, whatever the commit or run."""
        return self.past.told("tell:ci:", self.pull.green_since if self.pull else None)

    @property
    def merges(self) -> dict[str, datetime]:
        """What was told of a conflict with this very base."""
        return self.past.told(f"tell:conflict:{self.pull.base if self.pull else ''}:")

    @property
    def rounds(self) -> dict[str, datetime]:
        """What was told of reviews and comments."""
        return self.past.told("tell:review:")

    def spent(self, cause: str, tries: dict[str, datetime], most: int) -> bool:
        """Whether a cause comes after the last try; one that a crash made unheard does not."""
        return bool(cause) and cause not in tries and len(tries) >= most

    # -- what people said ------------------------------------------------------------------------

    @cached_property
    def threads(self) -> list[Thread]:
        """Threads that wait for an answer: unresolved, and the last word is not our own.

        A commit that changes the line makes a thread outdated, and answers it just then.
        """
        return [
            thread
            for thread in (self.pull.threads if self.pull else ())
            if not thread.resolved
            and thread.remarks
            and not thread.remarks[-1].own
            and any(_counts(remark) for remark in thread.remarks)
        ]

    @property
    def open_threads(self) -> list[Thread]:
        """Those of them that count as changes requested."""
        return [thread for thread in self.threads if not thread.outdated]

    @cached_property
    def approved(self) -> bool:
        """Whether this head was approved by someone who may and did not ask for it."""
        if self.pull is None:
            return False
        return any(
            verdict.approved
            and verdict.allowed
            and verdict.sha == self.pull.head
            and verdict.author != self.facts.requester
            for verdict in self.pull.verdicts
        )

    @cached_property
    def objectors(self) -> list[str]:
        """Who asks for changes in a review, and may."""
        verdicts = self.pull.verdicts if self.pull else ()
        return [v.author for v in verdicts if v.allowed and not v.approved]

    @cached_property
    def unheard(self) -> list[Remark]:
        """What people with write access asked for and the agent was not told yet."""
        return [
            remark
            for remark in self._remarks()
            if self.past.heard(f"heard:{remark.id}") is None and _counts(remark)
        ]

    def _remarks(self) -> Iterator[Remark]:
        if self.pull is None:
            return
        for thread in self.threads:
            yield from thread.remarks
        for verdict in self.pull.verdicts:
            if verdict.remark is not None and not verdict.approved:
                yield verdict.remark
        yield from self.pull.comments

    def wish(self, kind: str) -> Wish | None:
        """The newest wish of a kind."""
        wishes = [wish for wish in self.facts.wishes if wish.kind == kind]
        return max(wishes, key=lambda wish: wish.at, default=None)


def _counts(remark: Remark) -> bool:
    """Whether a remark is for the agent: of a person who may write, and not said to the bot."""
    return remark.allowed and not remark.own and not remark.bot and not addresses_bot(remark.body)
