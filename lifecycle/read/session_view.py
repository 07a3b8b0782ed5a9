"""What the facts say when they are read together: the questions rules and reactions ask."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from lifecycle.model import keys
from lifecycle.model.facts import Check, Command, Facts, Pull, Remark, Thread
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.policy import Policy
from lifecycle.model.status import CheckState, Merge, Mover, PullState, Reason
from lifecycle.read.merge_queue import dequeued
from lifecycle.read.working import Working

# Looked up once: a member of an enumeration costs a search each time it is named.
_PASSED, _FAILED, _PENDING = CheckState.PASSED, CheckState.FAILED, CheckState.PENDING
_CANCELLED, _ALL_PASSED = CheckState.CANCELLED, {_PASSED}
_HELD: Final = (_CANCELLED, CheckState.ACTION_REQUIRED, CheckState.STALE)
_CONFLICT, _BEHIND, _OPEN = Merge.CONFLICT, Merge.BEHIND, PullState.OPEN
_WEIGHT: Final = (PullState.CLOSED, PullState.MERGED, PullState.OPEN)
_CI, _REVIEW = frozenset({KeyKind.FIX_CI}), frozenset({KeyKind.ADDRESS_REVIEW})
_CONFLICTS: Final = frozenset({KeyKind.RESOLVE_CONFLICT})
#: What a taking in comes to where the commits of others and the agent's own do not go together.
CLASH: Final = "conflict"
#: Commands by which a person has the agent resume: after a pause, and on a branch they pushed to.
GOES_ON: Final = ("resume", "restart", "tell", "answer")
#: Commands that hold something to say to the agent.
_WORDS: Final = ("tell", "answer", "review")


class View(Working):
    """Facts under a policy at an instant, with one pull request in the middle.

    Lives for one decision. Where several are open there is a view of each, of the same instant.
    """

    def __init__(
        self,
        facts: Facts,
        policy: Policy,
        now: datetime,
        pull: Pull | None = None,
        due: list[datetime] | None = None,
    ) -> None:
        """`pull` is the one in the middle; None: it is worked out."""
        super().__init__(facts, policy, now, due)
        #: The pull request that matters: an open one, else the newest merged, else the newest.
        self.pull = pull or _foremost(facts.pulls)
        #: Views of all open pull requests, where there are several.
        self.several: tuple[View, ...] = ()
        if pull is None and len(facts.pulls) > 1:
            self._read_several()
        if not self.several:
            #: That the merge queue put this head out, as long as nobody has it queued again.
            self.dequeued = dequeued(self, self.pull) if self.pull else None
            self._read_checks()
            self._read_review()
            self._read_branch()

    def _read_several(self) -> None:
        opened = [pull for pull in self.facts.pulls if pull.state is _OPEN]
        if len(opened) > 1:
            several = [View(self.facts, self.policy, self.now, one, self._due) for one in opened]
            self.several = tuple(several)
            for view in several:
                view.several = self.several

    # -- the pull request ------------------------------------------------------------------------

    def _read_checks(self) -> None:
        """What the checks say that readiness depends on: the required ones, or all if none is."""
        checks: Sequence[Check] = self.pull.checks if self.pull else ()
        if self.dequeued is not None:
            checks = (*checks, *self.dequeued.checks)
        states = {check.state for check in checks}
        required: list[Check] = []
        # Where all have passed it does not matter which of them are required.
        if states and states != _ALL_PASSED:
            required = [check for check in checks if check.required]
            checks = required or checks
            states = {check.state for check in checks}
        #: Whether any of them does; a required one that was skipped is no hindrance to GitHub.
        self.passes = _PASSED in states or bool(required)
        self.failed_checks = _those(checks, _FAILED) if _FAILED in states else []
        self.pending_checks = _those(checks, _PENDING) if _PENDING in states else []
        #: Those that only people can move, or another run.
        self.held_checks = [] if states.isdisjoint(_HELD) else _those(checks, *_HELD)

    def _read_review(self) -> None:
        """What reviewers and others said, as far as it counts."""
        #: Threads that wait for an answer. A commit that changes the line makes one outdated: it
        #: does not stand in the way any more, and is heard and answered all the same.
        self.threads: list[Thread] = []
        self.open_threads: list[Thread] = []
        #: Who asks for changes in a review, and may.
        self.objectors: list[str] = []
        #: Whether this head was approved by someone who may and did not ask for it.
        self.approved = False
        #: What people with write access asked for and the agent was not told yet.
        self.unheard: list[Remark] = []
        pull, said = self.pull, []
        if pull is None:
            return
        if pull.threads:
            self.threads = [thread for thread in pull.threads if self._waits(thread)]
            self.open_threads = [thread for thread in self.threads if not thread.outdated]
            said = [remark for thread in self.threads for remark in thread.remarks]
        for verdict in pull.verdicts:
            if not verdict.approved and verdict.remark is not None:
                said.append(verdict.remark)
            if verdict.allowed and not verdict.approved:
                self.objectors.append(verdict.author)
            elif verdict.allowed and verdict.author != self.facts.requester:
                self.approved |= verdict.sha == pull.head or verdict.sha in pull.carried
        said += pull.comments
        if said:
            self.unheard = [remark for remark in said if self._is_unheard(remark)]

    def _is_unheard(self, remark: Remark) -> bool:
        return self.past.heard(keys.remark(remark.id)) is None and self.counts(remark)

    def _waits(self, thread: Thread) -> bool:
        """Whether a thread is unresolved, and somebody but us has the last word."""
        if thread.resolved or not thread.remarks or thread.remarks[-1].own:
            return False
        return any(self.counts(remark) for remark in thread.remarks)

    def counts(self, remark: Remark) -> bool:
        """Whether a remark is for the agent: of someone who may, and not said to the bot."""
        if remark.own or remark.to_bot or not remark.allowed:
            return False
        return not remark.bot or self.policy.lists(remark.author)

    @property
    def troubled(self) -> bool:
        """Whether something is in the way that the agent may not be able to clear by itself."""
        facts, pull = self.facts, self.pull
        if facts.failures or self.unpushed or facts.work.dirty or self.dequeued:
            return True
        if self.failed_checks or self.held_checks or (pull and pull.merge is _CONFLICT):
            return True
        return bool(self.unheard or self.open_threads or self.objectors)

    @property
    def parent(self) -> Pull | None:
        """The open pull request on whose branch this one stands."""
        if self.pull is None or not self.several:
            return None
        base = self.pull.base_branch
        others = (one.pull for one in self.several if one.pull and one.pull is not self.pull)
        return next((pull for pull in others if pull.branch == base), None)

    def _read_branch(self) -> None:
        """Where the branch on GitHub is, seen from the workspace."""
        pull, work = self.pull, self.facts.work
        mine = pull is not None and pull.branch in ("", self.facts.branch)
        #: Whether the pull request, as read, shows what is in the workspace.
        self.current = pull is not None and (not mine or pull.head == work.head)
        #: Whether GitHub's branch has commits of others that are still to be brought in.
        self.foreign = (
            not self.current
            and pull is not None
            and pull.state is _OPEN
            and (pull.head not in self.past.pushes or pull.head_by is Mover.PERSON)
            and bool(work.head)
            and not self._taken_in(pull)
        )
        #: Whether the agent leaves the branch to the person who pushed to it last.
        self.handed_to_human = (
            pull is not None and pull.person is not None and not self._given_back(pull)
        )

    def _taken_in(self, pull: Pull) -> bool:
        """Whether its head was brought into the workspace, or the agent was told to do it."""
        taken = self.facts.done.get(keys.merge_remote(pull.head))
        if taken is None:
            return False
        heard = self.past.heard(keys.merge_branch(pull.head))
        return taken.result != CLASH or heard is not None

    def _given_back(self, pull: Pull) -> bool:
        """Whether somebody asked the agent for something after a person's push."""
        if pull.person is None:
            return True
        at = pull.person.at
        second = at.replace(microsecond=0)  # GitHub's times are whole seconds.
        return (
            any(command.kind in GOES_ON and command.at >= at for command in self.facts.commands)
            or any(remark.at >= second for remark in self.unheard)
            or bool(self.past.told(_REVIEW, at))
        )

    # -- runs of checks that prove nothing yet -----------------------------------------------------

    @property
    def own_failures(self) -> list[Check]:
        """Failed checks that are the agent's to mend: those that pass on the base."""
        return [check for check in self.failed_checks if not check.red_on_base]

    @property
    def doubtful_checks(self) -> list[Check]:
        """Checks that another run may turn green, where nothing else failed.

        What failed in the merge queue stays as it is: that commit is tried no more.
        """
        failed = self.own_failures
        in_queue = self.dequeued is not None and self.dequeued.checks
        if in_queue or not all(check.flaky for check in failed):
            return []
        cancelled = [check for check in self.held_checks if check.state is _CANCELLED]
        return [check for check in (*failed, *cancelled) if check.run_id is not None]

    @property
    def rerunning(self) -> bool:
        """Whether another run of doubtful checks is still to be ordered, or to be seen."""
        if self.pull is None or not self.doubtful_checks:
            return False
        key = keys.rerun(self.pull.head)
        ordered = self.facts.done.get(key)
        if ordered is not None:
            return not self.passed(ordered.at, self.policy.settle_seconds)
        return key not in self.facts.failures

    # -- causes for a message: each a key without its run, None while it does not stand -----------

    @property
    def ci_cause(self) -> Key | None:
        """This head with this set of failed checks, once nothing runs any more."""
        if (
            not self.failed_checks
            or self.pending_checks
            or self.handed_to_human
            or not self.current
        ):
            return None
        failed = self.own_failures
        if self.pull is None or not failed or self.rerunning:
            return None
        return keys.fix_ci(self.pull.head, (check.id for check in failed))

    @property
    def conflict_cause(self) -> Key | None:
        """This head in conflict with this base, or behind it and not to be updated by GitHub."""
        pull = self.pull
        if pull is None or self.handed_to_human or not self.current:
            return None
        behind = (
            pull.merge is _BEHIND
            and keys.update_branch(pull.base, pull.head) in self.facts.failures
        )
        if pull.merge is not _CONFLICT and not behind:
            return None
        return keys.resolve_conflict(pull.base, pull.head)

    @property
    def branch_cause(self) -> Key | None:
        """A commit of others that does not go together with the agent's own."""
        return keys.merge_branch(self.pull.head) if self.pull else None

    @property
    def review_cause(self) -> Key | None:
        """What people asked for and the agent was not told."""
        if not self.unheard or self.handed_to_human:
            return None
        return keys.address_review(remark.id for remark in self.unheard)

    @property
    def words_causes(self) -> dict[Key, Command]:
        """What people have to say to the agent and it was not told yet, each with its command."""
        said = [command for command in self.facts.commands if command.kind in _WORDS]
        causes = {keys.forward(command.key): command for command in said}
        return {
            cause: command for cause, command in causes.items() if self.past.heard(cause) is None
        }

    @property
    def dirty_cause(self) -> Key | None:
        """Work left uncommitted after one request: it does not matter at which commit."""
        if not self.facts.work.dirty:
            return None
        return keys.commit_work(len(self._requests) + len(self.past.broke_off))

    @property
    def messages_cause(self) -> Key | None:
        """Commits that were not pushed for what their messages say."""
        head = self.facts.work.head
        refused = self.facts.failures.get(keys.push(head))
        worded = refused is not None and refused.reason is Reason.COMMIT_MESSAGES
        return keys.reword(head) if worded else None

    # -- tries, counted until a person pushes ------------------------------------------------------

    def _since_person(self, since: datetime | None = None) -> datetime | None:
        person = self.pull.person if self.pull else None
        return max(filter(None, (since, person.at if person else None)), default=None)

    @property
    def repairs(self) -> dict[Key, datetime]:
        """What was told of failed checks since they were last green, whatever the commit or run."""
        green = self.pull.green_since if self.pull else None
        return self.past.told(_CI, self._since_person(green))

    @property
    def merges(self) -> dict[Key, datetime]:
        """What was told of a conflict with this very base."""
        base = self.pull.base if self.pull else ""
        told = self.past.told(_CONFLICTS, self._since_person())
        return {cause: at for cause, at in told.items() if cause.cause[0] == base}

    @property
    def rounds(self) -> dict[Key, datetime]:
        """What was told of reviews and comments."""
        return self.past.told(_REVIEW, self._since_person())


def spent(cause: Key, tries: dict[Key, datetime], most: int) -> bool:
    """Whether a cause comes after the last try; one that a crash made unheard does not."""
    return cause not in tries and len(tries) >= most


def _those(checks: Iterable[Check], *states: CheckState) -> list[Check]:
    return [check for check in checks if check.state in states]


def _foremost(pulls: Sequence[Pull]) -> Pull | None:
    if len(pulls) == 1:  # As in nearly every session.
        return pulls[0]
    return max(pulls, key=_weight, default=None)


def _weight(pull: Pull) -> tuple[int, int]:
    return _WEIGHT.index(pull.state), pull.number
