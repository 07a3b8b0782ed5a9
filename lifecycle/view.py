"""What the facts say when they are read together: the questions rules and reactions ask.

Every comparison with the clock goes through `View.passed`, which notes the instant at which the
answer will change; the earliest of them is when the session must be judged again.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cached_property

from lifecycle import keys
from lifecycle.facts import Check, Done, Facts, Pull, Remark, Thread, Wish
from lifecycle.names import addresses_bot
from lifecycle.policy import Policy
from lifecycle.status import CheckState, PullState

_BAD = frozenset({CheckState.FAILED})
_HELD = frozenset({CheckState.CANCELLED, CheckState.ACTION_REQUIRED, CheckState.STALE})


class View:
    """Facts under a policy at an instant. Lives for one decision."""

    def __init__(self, facts: Facts, policy: Policy, now: datetime) -> None:
        self.facts = facts
        self.policy = policy
        self.now = now
        self.recheck_at: datetime | None = None

    def passed(self, since: datetime, seconds: float) -> bool:
        """Whether so many seconds have gone by; if not, be asked again when they have."""
        due = since + timedelta(seconds=seconds)
        if self.now >= due:
            return True
        if self.recheck_at is None or due < self.recheck_at:
            self.recheck_at = due
        return False

    # -- what was done ---------------------------------------------------------------------------

    def is_done(self, key: str) -> bool:
        return key in self.facts.done

    @cached_property
    def lost_runs(self) -> frozenset[int]:
        """Runs that broke off, so that what they were told may be lost with them."""
        return frozenset(
            keys.run_of(key) - 1
            for key in (*self.facts.done, *self.facts.pending)
            if key.startswith("start:crash:")
        )

    @cached_property
    def pushes(self) -> dict[str, datetime]:
        """Every commit pushed, with when."""
        return {
            key.removeprefix("push:"): done.at
            for key, done in self.facts.done.items()
            if key.startswith("push:")
        }

    @cached_property
    def last_push(self) -> datetime | None:
        return max(self.pushes.values(), default=None)

    def heard(self, cause: str) -> Done | None:
        """When the agent was told of a cause, unless the run that heard it broke off unfinished."""
        best = None
        for key, done in self.facts.done.items():
            if keys.cause_of(key) != cause:
                continue
            unfinished = self.last_push is None or self.last_push < done.at
            if keys.run_of(key) in self.lost_runs and unfinished:
                continue
            if best is None or done.at > best.at:
                best = done
        return best

    def pushed_since(self, at: datetime) -> bool:
        return self.last_push is not None and self.last_push > at

    @cached_property
    def last_message(self) -> datetime | None:
        """When this run was last given something to do."""
        mine = (
            done.at
            for key, done in self.facts.done.items()
            if keys.run_of(key) == self.facts.run and key.startswith(("tell:", "start:"))
        )
        return max(mine, default=None)

    def turn_over_since(self, at: datetime) -> bool:
        """Whether the agent has come to rest after `at`."""
        agent = self.facts.agent
        ended = agent.exit.at if agent.exit else agent.since
        return ended is not None and ended > at

    @cached_property
    def crashes(self) -> int:
        """Runs in a row that broke off without anything pushed since."""
        return sum(
            key.startswith("start:crash:")
            for key, done in self.facts.done.items()
            if self.last_push is None or done.at > self.last_push
        )

    # -- the pull request ------------------------------------------------------------------------

    @cached_property
    def pull(self) -> Pull | None:
        """The pull request that matters: the newest open one, else the newest."""
        live = [pull for pull in self.facts.pulls if pull.state is PullState.OPEN]
        return max(live or self.facts.pulls, key=lambda pull: pull.number, default=None)

    @cached_property
    def counted_checks(self) -> tuple[Check, ...]:
        """The checks readiness depends on: the required ones, or all where none is required."""
        checks = self.pull.checks if self.pull else ()
        return tuple(check for check in checks if check.required) or checks

    @cached_property
    def failed_checks(self) -> tuple[Check, ...]:
        return tuple(check for check in self.counted_checks if check.state in _BAD)

    @cached_property
    def held_checks(self) -> tuple[Check, ...]:
        """Checks that only people can move: cancelled, stale, or asking for an action."""
        return tuple(check for check in self.counted_checks if check.state in _HELD)

    @cached_property
    def pending_checks(self) -> tuple[Check, ...]:
        checks = self.pull.checks if self.pull else ()
        return tuple(check for check in checks if check.state is CheckState.PENDING)

    @cached_property
    def failing_cause(self) -> str:
        """Names this head with this set of failed checks."""
        head = self.pull.head if self.pull else ""
        return f"tell:ci:{head}:{keys.fingerprint(check.id for check in self.failed_checks)}"

    @cached_property
    def repairs(self) -> int:
        """Messages about failed checks since they were last green, whatever the commit or run."""
        since = self.pull.green_since if self.pull else None
        told = {
            keys.cause_of(key)
            for key, done in self.facts.done.items()
            if key.startswith("tell:ci:") and (since is None or done.at > since)
        }
        return len(told)

    # -- what people said ------------------------------------------------------------------------

    def _counts(self, remark: Remark) -> bool:
        return (
            remark.allowed and not remark.own and not remark.bot and not addresses_bot(remark.body)
        )

    @cached_property
    def open_threads(self) -> tuple[Thread, ...]:
        """Threads that wait for the agent: unresolved, not outdated, last word not our own."""
        if self.pull is None:
            return ()
        return tuple(
            thread
            for thread in self.pull.threads
            if not thread.resolved
            and not thread.outdated
            and thread.remarks
            and not thread.remarks[-1].own
            and any(self._counts(remark) for remark in thread.remarks)
        )

    def _remarks(self) -> Iterator[Remark]:
        if self.pull is None:
            return
        for thread in self.open_threads:
            yield from thread.remarks
        for verdict in self.pull.verdicts:
            if verdict.remark is not None and not verdict.approved:
                yield verdict.remark
        yield from self.pull.comments

    @cached_property
    def unheard(self) -> tuple[Remark, ...]:
        """What people with write access asked for and the agent was not told yet."""
        asked = (remark for remark in self._remarks() if self._counts(remark))
        return tuple(remark for remark in asked if self.heard(f"heard:{remark.id}") is None)

    @cached_property
    def review_rounds(self) -> int:
        return len(
            {keys.cause_of(key) for key in self.facts.done if key.startswith("tell:review:")}
        )

    @cached_property
    def last_review_told(self) -> datetime | None:
        told = (done.at for key, done in self.facts.done.items() if key.startswith("tell:review:"))
        return max(told, default=None)

    def wish(self, kind: str) -> Wish | None:
        """The newest wish of a kind."""
        wishes = (wish for wish in self.facts.wishes if wish.kind == kind)
        return max(wishes, key=lambda wish: wish.at, default=None)
