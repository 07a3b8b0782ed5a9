"""Derives a session's status: reduces its facts to signals and finds their rule."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.judge.escalations import escalation
from lifecycle.judge.rules import RULES, BlockerRule, blockers_for, rows_for, rule_for
from lifecycle.judge.signals import OVER, Attention, Ci, Hold, Output, PullStage, Signals, Stage
from lifecycle.judge.stages import hold_of, stage_of
from lifecycle.judge.stalls import STALLABLE, STALLS, Finding, first
from lifecycle.judge.waits import lacks_slot, overdue
from lifecycle.model import keys
from lifecycle.model.actions import Action, Comment
from lifecycle.model.facts import Command, Facts, Pull
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.policy import Policy
from lifecycle.model.status import Blocker, Reason, Review, Status
from lifecycle.read.availability import Availability
from lifecycle.read.holds import held_by
from lifecycle.read.merging import awaited_merge, checks_waived, missing_checks
from lifecycle.read.restores import this_life
from lifecycle.read.sentences import sentence
from lifecycle.read.session_view import Recheck, SessionView, earliest

_PAUSED, _RUNNING, _UNCALLED = Stage.PAUSED, Stage.RUNNING, Attention.NONE
_MAKE_READY = KeyKind.MAKE_READY
_DRAFT, _HELD, _OPEN = PullStage.DRAFT, PullStage.HELD, PullStage.OPEN
_PASSING, _PUSHED = Ci.PASSING, Output.PUSHED
_ASKED, _PENDING, _UNASKED = Review.CHANGES_REQUESTED, Review.PENDING, Review.NONE
#: The states of checks that may change by time alone.
_SETTLING = frozenset({Ci.FAILING, Ci.HELD, Ci.UNSETTLED})
_HANDED_OVER = Finding(None, Reason.PERSON_PUSHED, "")
_BLOCKED_BRIEFLY = Finding(None, Reason.AGENT_BLOCKED, "")
_ON_PULL = Finding(None, Reason.PULL_REQUEST, "")
_IN_CHAT = Finding(None, Reason.IN_CHAT, "")


#: The signals of a view, the finding that explains them, and when time alone may change either. The
#: time is None if only new facts can.
Reading = tuple[Signals, Finding, datetime | None]


def foremost(view: SessionView) -> SessionView:
    """Return the view of the open pull request whose signals match the earliest rule.

    Unless several pull requests are open, this is the view itself.
    """
    if not view.several:
        return view
    return min(view.several, key=lambda one: RULES.index(rule_for(of_pull(one))))


def read(view: SessionView) -> Reading:
    """Return the signals of a view, the finding that explains them, and when time may change them.

    The time is None if only new facts change them.
    """
    stage, evidence, recheck_at = stage_of(view)
    if view.changes_at is not None:
        recheck_at = earliest(recheck_at, view.changes_at)
    if stage is not _RUNNING:
        if stage in OVER:
            hold = hold_of(view, stage)
            signals = Signals(stage=stage, hold=hold, availability=view.availability)
            return signals, evidence, recheck_at
        shown = view.availability if stage is _PAUSED else Availability.NONE
        return Signals(stage=stage, availability=shown), evidence, recheck_at
    attention, finding, changes_at = _attention(view)
    if changes_at is not None:
        recheck_at = earliest(recheck_at, changes_at)
    if finding is not None:
        evidence = finding
    elif view.pull is not None:
        evidence = _HANDED_OVER if view.handed_to_human else _ON_PULL
    elif view.last_availability is Availability.BLOCKED:
        evidence = _BLOCKED_BRIEFLY
    elif view.is_chat:
        evidence = _IN_CHAT
    signals = of_pull(view, stage, view.availability, attention, _output(view))
    if signals.ci in _SETTLING or view.several:
        for one in view.several or (view,):
            recheck_at = earliest(recheck_at, _ci(one, one.pull)[1] if one.pull else None)
    if finding is None and not view.is_chat and (view.at_rest or lacks_slot(view)):
        late = overdue(view, signals)
        if type(late) is Recheck:
            recheck_at = earliest(recheck_at, late.at)
        elif late is not None:
            evidence, signals = late, replace(signals, attention=Attention.ESCALATED)
            recheck_at = earliest(recheck_at, late.until)
    return signals, evidence, recheck_at


def of_pull(
    view: SessionView,
    stage: Stage = _RUNNING,
    availability: Availability = Availability.NONE,
    attention: Attention = _UNCALLED,
    output: Output = Output.NOTHING,
    hold: Hold = Hold.HELD,
) -> Signals:
    """Return the given signals together with those of the view's pull request, if there is one."""
    pull = view.pull
    if pull is None:
        return Signals(
            stage=stage, hold=hold, availability=availability, attention=attention, output=output
        )
    return Signals(
        stage=stage,
        hold=hold,
        availability=availability,
        attention=attention,
        output=output,
        pull=_DRAFT
        if pull.draft
        else _HELD
        if held_by(pull.title, pull.labels, view.policy)
        else _OPEN,
        stacked=bool(view.several) and view.parent is not None,
        ci=_ci(view, pull)[0],
        review=_review(view, pull),
        merge=pull.merge,
    )


def _attention(view: SessionView) -> tuple[Attention, Finding | None, datetime | None]:
    """Return whether people are needed, for which finding, and when time alone may change that.

    The finding and the time may be None.
    """
    finding, recheck_at = escalation(view)
    if finding is not None:
        return Attention.ESCALATED, finding, recheck_at
    if view.availability not in STALLABLE:
        return _UNCALLED, None, recheck_at
    stall, later = first(STALLS, view)
    return Attention.STUCK if stall else _UNCALLED, stall, earliest(recheck_at, later)


def _output(view: SessionView) -> Output:
    """Return the state of the agent's work compared with the pushed commits."""
    if view.is_chat:
        return Output.PRIVATE
    if view.facts.work.off_branch is not None:
        return Output.OFF_BRANCH
    if view.has_remote_commits or (
        view.several and any(one.has_remote_commits for one in view.several)
    ):
        # Others' commits are merged before a push, but not while there are uncommitted changes.
        return Output.DIRTY if view.facts.work.dirty else Output.FOREIGN
    if view.unpushed:
        return Output.UNPUSHED
    if view.facts.work.dirty:
        return Output.DIRTY
    return _PUSHED if view.pushed else Output.NOTHING


def _ci(view: SessionView, pull: Pull) -> tuple[Ci, datetime | None]:
    """Return the state of the checks, and when time alone may change it, if ever.

    Required checks decide, if there are any; otherwise all checks decide.
    """
    if view.failed_checks:
        if view.pending_checks:
            return Ci.SETTLING, None
        return Ci.FAILING, view.rerun_until if pull.checks_complete else None
    if not pull.checks_complete or (view.pending_checks and not checks_waived(view)):
        return Ci.PENDING, None
    if view.held_checks:
        return Ci.HELD, view.rerun_until
    if view.history.has(_MAKE_READY) and (wait := _begins_after_draft(view, pull)):
        return Ci.UNSETTLED, wait.at
    if view.passes:
        return _PASSING, None
    if pull.head_since is None:
        return Ci.PENDING, None
    if wait := view.wait(pull.head_since, view.policy.settle_seconds):
        return Ci.UNSETTLED, wait.at
    return (Ci.MISSING if missing_checks(view) else Ci.NONE), None


def _begins_after_draft(view: SessionView, pull: Pull) -> Recheck | None:
    """Return the wait for further checks to begin after the bot marked a draft as ready.

    Returns None if the bot marked no draft, or if the wait is over.
    """
    readied = view.facts.done.get(keys.make_ready(pull.number))
    return view.wait(readied.at, view.policy.settle_seconds) if readied else None


def _review(view: SessionView, pull: Pull) -> Review:
    """Return GitHub's state of the reviews, corrected by what the policy counts or requires."""
    if view.objectors or pull.review is _ASKED:
        return Review.CHANGES_REQUESTED
    if view.policy.threads_block and view.open_threads:
        return Review.CHANGES_REQUESTED
    if view.approved and pull.review is not _PENDING:
        return Review.APPROVED
    wanted = view.policy.require_review or pull.review is not _UNASKED
    return _PENDING if wanted else _UNASKED


_CLEANUP, _MERGEABLE = Status.CLEANUP, Status.MERGEABLE


#: What a reaction yields: actions, or a time at which it is to be called again.
Wanted = Iterator[Action | Recheck]


class Judged(Struct, frozen=True):
    """The input of reactions: the view, its signals, and the status derived from them."""

    view: SessionView
    signals: Signals
    status: Status
    reason: Reason
    because: str
    recheck_at: datetime | None  #: When time alone may change the result; if None, never.
    cause: Key | None  #: The key of the finding, if any, that people are notified of.
    blockers: tuple[Blocker, ...] = ()
    answers: tuple[tuple[Key, str], ...] = ()  #: Replies to commands that were judged now.
    asked: tuple[Command, ...] = ()  #: All commands, including those without effect.

    def as_shown(self) -> "Judged":
        """Return this object; in the status `cleanup`, a copy with the recorded outcome instead."""
        ended = self.view.facts.ended
        if ended is None or self.status is not _CLEANUP:
            return self
        return replace(self, status=ended.status, reason=ended.reason, because=ended.because)

    def comment(self, key: Key, topic: str, **values: str) -> Comment:
        """Return a comment on the pull request, or on the issue if no pull request exists.

        If neither exists, `Comment.number` is 0, and nothing is posted.
        """
        one = self.view.pull or self.view.facts.issue
        return Comment(key=key, number=one.number, topic=topic, values=values)

    def reply(self, command: str, key: Key, topic: str, **values: str) -> Comment:
        """Return a comment on the issue or pull request where a command was given.

        `command`: the command's key. If no command has this key, or the command was not given on
        GitHub, the comment is for the session's pull request, or for its issue if no pull request
        exists.
        """
        comment = self.comment(key, topic, **values)
        given = next((one.number for one in self.asked if one.key == command), 0)
        return replace(comment, number=given) if given else comment

    @property
    def people(self) -> bool:
        """Whether the reactions that concern people (`Reaction.people`) have to be evaluated."""
        view = self.view
        if self.asked or view.threads or view.unsent_remarks or view.handed_to_human:
            return True
        return bool(view.budgets.nearly or view.policy.reviewers or view.history.attention_labels)


def judge(facts: Facts, policy: Policy, now: datetime) -> Judged:
    """Derive the status from `facts`, whose commands are all taken as applied."""
    view = SessionView(this_life(facts) if facts.commands else facts, policy, now)
    if view.several:
        view = foremost(view)
    signals, evidence, recheck_at = read(view)
    rule, rows = rows_for(signals)
    blockers = _worded(rows, view)
    awaited = awaited_merge(view) if rule.status is _MERGEABLE else None
    return Judged(
        view,
        signals,
        rule.status,
        awaited or rule.reason or evidence.reason,
        sentence(rule.because, view, evidence.because, blockers),
        recheck_at,
        evidence.key,
        blockers,
    )


def blocking(signals: Signals, view: SessionView) -> tuple[Blocker, ...]:
    """Return the `BLOCKERS` that these signals meet, worded for the view's pull request."""
    return _worded(blockers_for(signals), view)


def _worded(rows: tuple[BlockerRule, ...], view: SessionView) -> tuple[Blocker, ...]:
    return tuple([Blocker(row.name, sentence(row.sentence, view)) for row in rows])
