"""What the facts say when they are read together: the questions rules and reactions ask."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from lifecycle import keys
from lifecycle.facts import Facts, Pull, Remark, Thread
from lifecycle.moment import Moment
from lifecycle.names import addresses_bot
from lifecycle.policy import Policy
from lifecycle.signals import Talk
from lifecycle.status import CheckState, Merge, PullState
from lifecycle.talk import talk_of

# Looked up once: a member of an enumeration costs a search each time it is named.
_AT_REST: Final = (Talk.QUIET, Talk.ENDED)
_FAILED, _PENDING = CheckState.FAILED, CheckState.PENDING
_HELD: Final = (CheckState.CANCELLED, CheckState.ACTION_REQUIRED, CheckState.STALE)
_CONFLICT: Final = Merge.CONFLICT
_WEIGHT: Final = (PullState.CLOSED, PullState.MERGED, PullState.OPEN)
_REMINDER: Final = "tell:dirty:"


class View(Moment):
    """Facts under a policy at an instant, read once when it is made. Lives for one decision."""

    def __init__(self, facts: Facts, policy: Policy, now: datetime) -> None:
        super().__init__(facts, policy, now)
        #: The pull request that matters: the newest open one, else merged one, else the newest.
        self.pull = max(facts.pulls, key=_weight, default=None)
        self._read_agent()
        self._read_checks()
        self._read_review()

    # -- the agent and its work ------------------------------------------------------------------

    def _read_agent(self) -> None:
        work = self.facts.work
        self.talk = talk_of(self)
        #: Whether the agent is done with everything it was told: its turn or its program ended.
        self.at_rest = self.talk in _AT_REST
        #: Whether GitHub has the agent's commit, and whether there is one that it lacks.
        self.pushed = work.head in self.past.pushes
        self.unpushed = bool(work.head) and work.head != work.base and not self.pushed
        #: Whether the pull request, as read, shows what is in the workspace.
        self.current = self.pull is not None and self.pull.head == work.head

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

        It comes further with a pull request, with green checks, and with a new request to it.
        """
        opened = self.facts.done.get(f"pull:{self.facts.branch}")
        marks = list(self._requests.values())
        marks += [opened.at] if opened else []
        marks += [self.pull.green_since] if self.pull and self.pull.green_since else []
        since = max(marks, default=None)
        return sum(since is None or at > since for at in runs.values())

    @property
    def _requests(self) -> dict[str, datetime]:
        """What the world asked of the agent after its issue, with when it was first told."""
        told = self.past.told("tell:")
        return {cause: at for cause, at in told.items() if not cause.startswith(_REMINDER)}

    # -- the pull request ------------------------------------------------------------------------

    def _read_checks(self) -> None:
        """What the checks say that readiness depends on: the required ones, or all if none is."""
        checks = self.pull.checks if self.pull else ()
        self.counted_checks = [check for check in checks if check.required] or list(checks)
        self.failed_checks = [c for c in self.counted_checks if c.state is _FAILED]
        self.pending_checks = [c for c in self.counted_checks if c.state is _PENDING]
        #: Those that only people can move.
        self.held_checks = [c for c in self.counted_checks if c.state in _HELD]

    def _read_review(self) -> None:
        """What reviewers and others said, as far as it counts."""
        pull = self.pull
        verdicts, threads = (pull.verdicts, pull.threads) if pull else ((), ())
        #: Threads that wait for an answer. A commit that changes the line makes one outdated: it
        #: does not stand in the way any more, and is heard and answered all the same.
        self.threads = [thread for thread in threads if _waits(thread)]
        self.open_threads = [thread for thread in self.threads if not thread.outdated]
        #: Who asks for changes in a review, and may.
        self.objectors = [each.author for each in verdicts if each.allowed and not each.approved]
        #: Whether this head was approved by someone who may and did not ask for it.
        self.approved = pull is not None and any(
            verdict.approved
            and verdict.allowed
            and verdict.sha == pull.head
            and verdict.author != self.facts.requester
            for verdict in verdicts
        )
        #: What people with write access asked for and the agent was not told yet.
        self.unheard = [
            remark
            for remark in self._remarks()
            if self.past.heard(f"heard:{remark.id}") is None and _counts(remark)
        ]

    def _remarks(self) -> Iterator[Remark]:
        """Everything that may ask for something."""
        if self.pull is None:
            return
        for thread in self.threads:
            yield from thread.remarks
        for verdict in self.pull.verdicts:
            if verdict.remark is not None and not verdict.approved:
                yield verdict.remark
        yield from self.pull.comments

    # -- causes for a message: each a key without its run, empty while it does not stand -----------

    @property
    def ci_cause(self) -> str:
        """This head with this set of failed checks, once nothing runs any more."""
        if not self.failed_checks or self.pending_checks or not self.current:
            return ""
        failed = keys.fingerprint(check.id for check in self.failed_checks)
        return f"tell:ci:{self.facts.work.head}:{failed}"

    @property
    def conflict_cause(self) -> str:
        """This head in conflict with this base."""
        if self.pull is None or self.pull.merge is not _CONFLICT or not self.current:
            return ""
        return f"tell:conflict:{self.pull.base}:{self.pull.head}"

    @property
    def review_cause(self) -> str:
        """What people asked for and the agent was not told."""
        if not self.unheard:
            return ""
        return f"tell:review:{keys.fingerprint(remark.id for remark in self.unheard)}"

    @property
    def dirty_cause(self) -> str:
        """Work left uncommitted after one request: it does not matter at which commit."""
        if not self.facts.work.dirty:
            return ""
        return f"{_REMINDER}{len(self._requests) + len(self.past.broke_off)}"

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


def spent(cause: str, tries: dict[str, datetime], most: int) -> bool:
    """Whether a cause comes after the last try; one that a crash made unheard does not."""
    return cause not in tries and len(tries) >= most


def _weight(pull: Pull) -> tuple[int, int]:
    return _WEIGHT.index(pull.state), pull.number


def _counts(remark: Remark) -> bool:
    """Whether a remark is for the agent: of a person who may write, and not said to the bot."""
    return remark.allowed and not remark.own and not remark.bot and not addresses_bot(remark.body)


def _waits(thread: Thread) -> bool:
    """Whether a thread is unresolved, and somebody but us has the last word."""
    if thread.resolved or not thread.remarks or thread.remarks[-1].own:
        return False
    return any(_counts(remark) for remark in thread.remarks)
