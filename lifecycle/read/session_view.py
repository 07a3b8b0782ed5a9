"""Queries over one session's facts, policy and time, which rules and reactions use.

No query has a side effect. If the passing of time alone will change the result of a query, the
query says when, by a `Recheck` or in `SessionView.changes_at`; the session is judged again at the
earliest of these times.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, final

from msgspec import Struct

from lifecycle.model import keys
from lifecycle.model.facts import Check, Dequeued, Facts, Pull, Remark, Thread
from lifecycle.model.key import KeyKind
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, CheckState, Merge, Mover, Origin, PullState
from lifecycle.model.times import shifted, span
from lifecycle.read.action_history import ActionHistory
from lifecycle.read.approvals import fault
from lifecycle.read.availability import (
    Availability,
    availability_of,
    is_alive,
    living,
    receipt_until,
)
from lifecycle.read.budgets import budget_state
from lifecycle.read.command_queries import CommandQueries
from lifecycle.read.pulls import foremost, landing_key

_PASSED, _FAILED, _PENDING = CheckState.PASSED, CheckState.FAILED, CheckState.PENDING
_CANCELLED: Final = CheckState.CANCELLED
_HELD: Final = (_CANCELLED, CheckState.ACTION_REQUIRED, CheckState.STALE)
_CONFLICT, _QUEUED, _OPEN = Merge.CONFLICT, Merge.QUEUED, PullState.OPEN
_ACTIVE, _UNKNOWN, _PROCESSING = Availability.ACTIVE, Availability.UNKNOWN, Activity.ACTIVE
_AT_REST: Final = (Availability.IDLE, Availability.EXITED)
_MERGE, _PARK = KeyKind.MERGE, KeyKind.PARK
_CHAT: Final = Origin.CHAT
_HOUR: Final = span(3600)
#: The kinds of messages that count as requests: all but reminders of uncommitted work.
REQUESTS: Final = keys.MESSAGES - {KeyKind.COMMIT_WORK}
_REVIEW: Final = frozenset({KeyKind.ADDRESS_REVIEW})
#: The result of merging remote commits that conflict with the agent's.
CLASH: Final = "conflict"
#: Commands that resume the agent after a pause, and on a branch that a person pushed to.
RESUMING: Final = ("resume", "restart", "tell", "answer", MAKES_PULL)


@final
class Recheck(Struct, frozen=True, gc=False):
    """The result of a query that is to be repeated later, because time alone may change it."""

    at: datetime  #: When to repeat it.


def earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the earlier of two times; if one is None, the other; None if both are."""
    if one is None or other is None:
        return one or other
    return one if one < other else other


class SessionView(CommandQueries):
    """A session's facts, policy and time, with queries over them, about one pull request.

    It is for one decision. If several pull requests are open, use their views (`several`) instead.
    """

    #: Slots, because Python shares the keys of attributes among instances only for up to 30.
    __slots__ = (
        *("facts", "policy", "now", "history", "instructed_at", "parked", "is_chat"),
        *("availability", "last_availability", "receipt_until", "changes_at", "at_rest", "budgets"),
        *("pushed", "unpushed", "pull", "several", "dequeued"),
        *("passes", "failed_checks", "pending_checks", "held_checks"),
        *("threads", "open_threads", "objectors", "approved", "ignored"),
        *("unsent_remarks", "discussion", "current", "has_remote_commits", "handed_to_human"),
    )

    def __init__(
        self, facts: Facts, policy: Policy, now: datetime, pull: Pull | None = None
    ) -> None:
        """Read the facts. `pull`: the pull request to read about, by default `foremost`."""
        self.facts = facts
        self.policy = policy
        self.now = now
        self.history = ActionHistory(facts.done)
        #: When this run was started or last sent a message. None if it was not started.
        self.instructed_at = self.history.instructed_at(facts.run)
        #: Whether the bot stopped this run's program, so that it needs no slot. A stop that failed
        #: for good counts too.
        self.parked = facts.run in self.history.ended
        if facts.failures and not self.parked:
            parks = [key.run for key in facts.failures if key.kind is _PARK]
            self.parked = facts.run in parks
        #: Whether the session is a chat, which it is until its agent was asked to finish the work
        #: as a pull request. Nothing of a chat is pushed, and only the person gives its agent work.
        self.is_chat = facts.origin is _CHAT and not facts.pulls and not self._asked_for_pull()
        self._read_agent()
        self._read_work()
        #: The pull request that this view is about. None if the session has no pull request.
        self.pull = pull or foremost(facts.pulls)
        #: The views of all open pull requests if there are several; else empty.
        self.several: tuple[SessionView, ...] = ()
        if pull is None and len(facts.pulls) > 1:
            opened = [one for one in facts.pulls if one.state is _OPEN]
            if len(opened) > 1:
                self.several = tuple([SessionView(facts, policy, now, one) for one in opened])
                for view in self.several:
                    view.several = self.several
        if not self.several:
            #: The merge queue's removal of this head, unless it is obsolete; else None.
            self.dequeued = self._dequeued() if self.pull and self.pull.dequeued else None
            self._read_checks()
            self._read_review()
            self._read_branch()

    def wait(self, since: datetime, seconds: float) -> Recheck | None:
        """Return the wait until `seconds` after `since`; None if it is over."""
        try:
            end = since + span(seconds)
        except OverflowError:
            end = shifted(since, span(seconds))
        return Recheck(end) if self.now < end else None

    def pace(self, times: Iterable[datetime], most: int) -> Recheck | None:
        """Return the wait until fewer than `most` of these times lie within the last hour.

        None if fewer do now.
        """
        newest = sorted(times, reverse=True)
        return self.wait(newest[most - 1], 3600.0) if len(newest) >= most else None

    def _asked_for_pull(self) -> bool:
        """Whether a request for a pull request was sent to the chat's agent, or could not be sent.

        If the session was restored after the request, the request counts as sent.
        """
        command, restored_at = self.command(MAKES_PULL), self.facts.restored_at
        if command is None:
            return False
        if restored_at is not None and command.at < restored_at:
            return True
        cause = keys.forward(command.key)
        lost = cause.of_run(self.facts.run) in self.facts.failures
        return lost or self.history.last_sent(cause) is not None

    # -- the agent and its work --------------------------------------------------------------------

    def _read_agent(self) -> None:
        facts, policy, history, now = self.facts, self.policy, self.history, self.now
        self.availability, changes_at = availability_of(facts, policy, history, now)
        #: `availability` as if failed probes had found the agent alive. The status depends on it;
        #: messages depend on `availability`: an agent in an unknown state gets none.
        self.last_availability = self.availability
        if self.availability is _UNKNOWN and not is_alive(facts.agent):
            self.last_availability, again = living(facts, policy, history, now)
            changes_at = earliest(changes_at, again)
        #: Until when this run's receipt of a message is awaited. None if no receipt is awaited.
        self.receipt_until: datetime | None = None
        if facts.sent:
            self.receipt_until = receipt_until(facts, policy, now)
            changes_at = earliest(changes_at, self.receipt_until)
        #: When `receipt_until` or either availability may change without new facts; else None.
        self.changes_at = changes_at
        #: Whether the agent has nothing left to do, because its turn or its program has ended.
        self.at_rest = self.last_availability in _AT_REST
        at_work = self.last_availability is _ACTIVE and facts.agent.activity is _PROCESSING
        turn = facts.agent.since if at_work else None
        #: The budgets that are used up, or nearly, counting the turn in progress.
        self.budgets = budget_state(facts, policy, now, turn)

    def _read_work(self) -> None:
        facts, work, pulls = self.facts, self.facts.work, self.facts.pulls
        #: Whether the head of the workspace's branch was pushed.
        self.pushed = work.head in self.history.pushed or (
            # Not while the push is pending: once recorded, it would seem to answer messages of now.
            work.head in [one.head for one in pulls] and keys.push(work.head) not in facts.pending
        )
        ahead = bool(work.head) and work.head != work.base and not self.pushed
        #: Whether the agent has commits that were not pushed, on the session's branch or off it.
        self.unpushed = ahead or work.off_branch is not None

    @property
    def next_push_at(self) -> datetime | None:
        """When `Policy.pushes_per_hour` allows the next push or update; None if it does now."""
        most = self.policy.pushes_per_hour
        newest = sorted(self.history.branch_moves, reverse=True) if most else []
        allowed = [shifted(first, _HOUR) for first in newest[most - 1 :][:1]]
        return allowed[0] if allowed and self.now < allowed[0] else None

    def without_commit_since(self, sent: datetime) -> bool:
        """Whether the agent rests with nothing to push, and nothing was pushed since `sent`."""
        return self.at_rest and not self.unpushed and not self.history.pushed_since(sent)

    # -- the pull request: checks ------------------------------------------------------------------

    def _dequeued(self) -> Dequeued | None:
        """Return the removal of this head from the merge queue after the bot had added it.

        https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
        None if the bot never queued this head, if the head was queued again, if a person cancelled
        the merge, or if a person has given `merge` for this head since the removal.
        """
        pull, done = self.pull, self.facts.done
        if pull is None or pull.dequeued is None:
            return None
        if pull.merge is _QUEUED or self.merge_cancelled or landing_key(pull) in done:
            return None
        if not any(key.kind is _MERGE and key.cause[0] == pull.head for key in done):
            return None
        command = self.merge_command
        if command and command.head == pull.head and command.at > pull.dequeued.at:
            return None
        return pull.dequeued

    def _read_checks(self) -> None:
        """Read the checks that decide readiness: the required ones, or all if none is required.

        https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches/about-protected-branches#require-status-checks-before-merging
        """
        checks: Sequence[Check] = self.pull.checks if self.pull else ()
        if self.dequeued is not None:
            checks = (*checks, *self.dequeued.checks)
        # If all have passed it does not matter which of them are required.
        others = [check for check in checks if check.state is not _PASSED]
        required = [check for check in checks if check.required] if others else []
        if required:
            others = [check for check in others if check.required]
        #: Whether at least one check passes or is required. GitHub accepts a required check that
        #: was skipped.
        self.passes = len(others) < len(checks) or bool(required)
        self.failed_checks = _those(others, _FAILED) if others else []
        self.pending_checks = _those(others, _PENDING) if others else []
        #: Cancelled and stale checks, and those that wait for people.
        self.held_checks = _those(others, *_HELD) if others else []

    @property
    def checks_to_fix(self) -> list[Check]:
        """The failed checks that the agent has to fix: those that do not fail on the base."""
        return [check for check in self.failed_checks if not check.red_on_base]

    @property
    def rerunnable_checks(self) -> list[Check]:
        """All cancelled checks and all `checks_to_fix`, without commit statuses.

        Empty if one of `checks_to_fix` is not flaky, or if checks failed in the merge queue.
        """
        failed = self.checks_to_fix
        in_queue = self.dequeued is not None and self.dequeued.checks
        if in_queue or not all(check.flaky for check in failed):
            return []
        cancelled = [check for check in self.held_checks if check.state is _CANCELLED]
        return [check for check in (*failed, *cancelled) if check.run_id is not None]

    @property
    def rerun_until(self) -> datetime | None:
        """The time by which a requested rerun of checks should begin; None if none is awaited."""
        if self.pull is None or not self.rerunnable_checks:
            return None
        ordered = self.facts.done.get(keys.rerun(self.pull.head))
        wait = self.wait(ordered.at, self.policy.settle_seconds) if ordered else None
        return wait.at if wait else None

    @property
    def rerunning(self) -> bool:
        """Whether a rerun of checks is due, or was ordered and is awaited (`rerun_until`)."""
        if self.pull is None or not self.rerunnable_checks:
            return False
        key = keys.rerun(self.pull.head)
        if key in self.facts.done:
            return self.rerun_until is not None
        return key not in self.facts.failures

    # -- the pull request: reviews and comments ----------------------------------------------------

    def _read_review(self) -> None:
        """Read the reviews and comments that count."""
        #: Threads that await an answer, including outdated ones, which block no merge.
        self.threads: list[Thread] = []
        self.open_threads: list[Thread] = []  #: `threads` without the outdated ones.
        #: Allowed reviewers whose latest review requests changes.
        self.objectors: list[str] = []
        #: Whether this head has an approval that counts.
        self.approved = False
        #: The author of each approval that does not count, with the reason.
        self.ignored: list[tuple[str, str]] = []
        #: Remarks for the agent, as `counts` decides, that were not sent to it yet.
        self.unsent_remarks: list[Remark] = []
        #: All remarks on the issue that are for the agent.
        self.discussion: list[Remark] = []
        pull, remarks = self.pull, self.unsent_remarks
        if self.facts.issue.remarks:
            self.discussion = [one for one in self.facts.issue.remarks if self.counts(one)]
            if pull is None or pull is foremost(self.facts.pulls):
                remarks += self.discussion
        if pull is not None:
            if pull.threads:
                self.threads = [thread for thread in pull.threads if self._awaits_answer(thread)]
                self.open_threads = [thread for thread in self.threads if not thread.outdated]
                remarks += [remark for thread in self.threads for remark in thread.remarks]
            for verdict in pull.verdicts:
                if verdict.approved:
                    if why := fault(verdict, pull, self.facts.requester, self.policy):
                        self.ignored.append((verdict.author, why))
                    else:
                        self.approved = True
                elif verdict.allowed:
                    self.objectors.append(verdict.author)
                if not verdict.approved and verdict.remark is not None:
                    remarks.append(verdict.remark)
            remarks += pull.comments
        if remarks:
            self.unsent_remarks = [remark for remark in remarks if self._is_unsent(remark)]

    def _is_unsent(self, remark: Remark) -> bool:
        return self.counts(remark) and self.history.last_sent(keys.remark(remark.id)) is None

    def _awaits_answer(self, thread: Thread) -> bool:
        """Whether a review thread is unresolved and still needs an answer from the agent."""
        if thread.resolved or not thread.remarks or thread.remarks[-1].own:
            return False
        return any(self.counts(remark) for remark in thread.remarks)

    def counts(self, remark: Remark) -> bool:
        """Whether a remark is for the agent: it is allowed, and neither by nor to Mergewright.

        Remarks of another bot count only if `Policy.bots` lists that bot.
        """
        if remark.own or remark.to_bot or not remark.allowed:
            return False
        return not remark.bot or self.policy.lists(remark.author)

    def may_have_findings(self) -> bool:
        """Whether an escalation other than `question` and `nothing_to_show` is possible."""
        facts, pull = self.facts, self.pull
        work = facts.work
        if facts.failures or self.unpushed or work.dirty or work.unreadable or self.dequeued:
            return True
        wrong = self.failed_checks or self.held_checks or not self.passes
        if wrong or (pull is not None and pull.merge is _CONFLICT):
            return True
        if self.pending_checks and pull is not None and pull.clean_since is not None:
            return True
        return bool(self.unsent_remarks or self.open_threads or self.objectors)

    # -- the pull request: its branch --------------------------------------------------------------

    @property
    def parent(self) -> Pull | None:
        """The session's open pull request whose branch is the base of this one, or None."""
        if self.pull is None or not self.several:
            return None
        base = self.pull.base_branch
        others = (one.pull for one in self.several if one.pull and one.pull is not self.pull)
        return next((pull for pull in others if pull.branch == base), None)

    def _read_branch(self) -> None:
        """Compare GitHub's head with the workspace's; note whether a person took over."""
        pull, work = self.pull, self.facts.work
        own = pull is not None and pull.branch in ("", self.facts.branch)
        #: Whether the pull request's head is the workspace's, or its branch is not the session's.
        self.current = pull is not None and (not own or pull.head == work.head)
        #: Whether GitHub's branch has commits of others to merge, or to ask the agent to merge.
        self.has_remote_commits = (
            not self.current
            and pull is not None
            and pull.state is _OPEN
            and (pull.head not in self.history.pushed or pull.head_by is Mover.PERSON)
            and bool(work.head)
            and not self._merged_remote(pull)
        )
        #: Whether a person pushed to the branch and nobody has made the agent a request since.
        #: If so, `lifecycle.read.causes` holds back failed checks, reviews and conflicts.
        self.handed_to_human = (
            pull is not None and pull.person is not None and not self._resumed_after(pull.person.at)
        )

    def _merged_remote(self, pull: Pull) -> bool:
        """Whether the head was merged into the workspace, or the agent was asked to merge it."""
        merged = self.facts.done.get(keys.merge_remote(pull.head))
        if merged is None:
            return False
        asked = self.history.last_sent(keys.merge_branch(pull.head))
        return merged.result != CLASH or asked is not None

    def _resumed_after(self, push: datetime) -> bool:
        """Whether somebody made the agent a request after a person's push at the time `push`."""
        second = push.replace(microsecond=0)  # GitHub's times are whole seconds.
        return (
            any(command.kind in RESUMING and command.at >= push for command in self.facts.commands)
            or any(remark.at >= second for remark in self.unsent_remarks)
            or bool(self.history.first_sent(_REVIEW, push))
        )


def _those(checks: Sequence[Check], *states: CheckState) -> list[Check]:
    return [check for check in checks if check.state in states]
