"""The reduction of facts to signals: where thresholds and evidence are weighed."""

from msgspec.structs import replace

from lifecycle.judge.escalations import escalation, first
from lifecycle.judge.rules import RULES, rule_for
from lifecycle.judge.signals import (
    OVER,
    Attention,
    Ci,
    Output,
    PullStage,
    Signals,
    Stage,
)
from lifecycle.judge.stages import Evidence, hold_of, stage_of
from lifecycle.judge.stalls import STALLS, Escalation
from lifecycle.model import keys
from lifecycle.model.facts import Pull
from lifecycle.model.status import Reason, Review
from lifecycle.read.session_view import View

# Looked up once: a member of an enumeration costs a search each time it is named.
_PAUSED, _RUNNING, _UNCALLED = Stage.PAUSED, Stage.RUNNING, Attention.NONE
_OPEN, _PASSING, _PUSHED = PullStage.OPEN, Ci.PASSING, Output.PUSHED
_ASKED, _PENDING, _UNASKED = Review.CHANGES_REQUESTED, Review.PENDING, Review.NONE
_PULL_REQUEST = Reason.PULL_REQUEST


def foremost(view: View) -> View:
    """Of several open pull requests the view of the one that an earlier rule reads."""
    if not view.several:
        return view
    running = Signals(stage=Stage.RUNNING)
    return min(view.several, key=lambda one: RULES.index(rule_for(of_pull(one, running))))


def read(view: View) -> tuple[Signals, Evidence]:
    """The signals of a view, with the evidence behind its stage or attention."""
    stage, evidence = stage_of(view)
    if stage in OVER:
        return Signals(
            stage=stage, hold=hold_of(view, stage), availability=view.availability
        ), evidence
    if stage is _PAUSED:
        return Signals(stage=stage, availability=view.availability), evidence
    if stage is not _RUNNING:
        return Signals(stage=stage), evidence
    attention, found = _attention(view)
    if found is not None:
        evidence = Evidence(found.reason, found.because, found.key)
    elif view.pull is not None:
        evidence = Evidence(Reason.PERSON_PUSHED if view.handed_to_human else _PULL_REQUEST)
    signals = Signals(
        stage=stage, availability=view.availability, attention=attention, output=_output(view)
    )
    return of_pull(view, signals), evidence


def of_pull(view: View, signals: Signals) -> Signals:
    """The same signals with what the pull request of this view says."""
    pull = view.pull
    if pull is None:
        return signals
    return replace(
        signals,
        pull=PullStage.DRAFT if pull.draft else _OPEN,
        stacked=view.parent is not None,
        ci=_ci(view, pull),
        review=_review(view, pull),
        merge=pull.merge,
    )


def _attention(view: View) -> tuple[Attention, Escalation | None]:
    """Whether people have to look, and at what."""
    found = escalation(view)
    if found is not None:
        return Attention.ESCALATED, found
    found = first(STALLS, view)
    return (Attention.STUCK if found else _UNCALLED), found


def _output(view: View) -> Output:
    """What there is of the agent's work, compared with what was pushed."""
    if view.foreign or any(one.foreign for one in view.several):
        # Before anything is pushed; but not into files that are not committed.
        return Output.DIRTY if view.facts.work.dirty else Output.FOREIGN
    if view.unpushed:
        return Output.UNPUSHED
    if view.facts.work.dirty:
        return Output.DIRTY
    return _PUSHED if view.pushed else Output.NOTHING


def _ci(view: View, pull: Pull) -> Ci:
    """Required checks decide where there are any; otherwise all of them do."""
    if view.failed_checks:
        return Ci.SETTLING if view.pending_checks else Ci.FAILING
    if view.pending_checks or not pull.checks_complete:
        return Ci.PENDING
    if view.held_checks:
        return Ci.HELD
    readied = view.facts.done.get(keys.make_ready(pull.number)) if view.past.readied else None
    if readied is not None and not view.passed(readied.at, view.policy.settle_seconds):
        return Ci.UNSETTLED  # Checks that pass drafts over begin only now.
    if view.passes:
        return _PASSING
    if pull.checks_expected or pull.head_since is None:
        return Ci.PENDING
    settled = view.passed(pull.head_since, view.policy.settle_seconds)
    return Ci.NONE if settled else Ci.UNSETTLED


def _review(view: View, pull: Pull) -> Review:
    """An approval counts for its own head, from someone allowed who is not the requester."""
    if view.objectors or pull.review is _ASKED:
        return Review.CHANGES_REQUESTED
    if view.policy.threads_block and view.open_threads:
        return Review.CHANGES_REQUESTED
    if view.approved and pull.review is not _PENDING:
        return Review.APPROVED
    wanted = view.policy.require_review or pull.review is not _UNASKED
    return _PENDING if wanted else _UNASKED
