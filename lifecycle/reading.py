"""The reduction of facts to signals: where thresholds and evidence are weighed."""

from typing import Final, NamedTuple

from lifecycle.escalations import ESCALATIONS, STALLS, Escalation, first
from lifecycle.facts import Pull
from lifecycle.signals import (
    OVER,
    Attention,
    Ci,
    Hold,
    Output,
    PullStage,
    Signals,
    Stage,
    Talk,
)
from lifecycle.status import CheckState, PullState, Reason, Review, Status
from lifecycle.view import View

#: What ended a session, in the words of its outcome.
_OUTCOMES: Final = {
    Status.MERGED: Stage.MERGED,
    Status.KILLED: Stage.KILLED,
    Status.TERMINATED: Stage.TERMINATED,
    Status.ERRORED: Stage.ERRORED,
    Status.DONE: Stage.DONE,
}


class Evidence(NamedTuple):
    """Why a session is where it is: for programs, and for people."""

    reason: Reason = Reason.AGENT_AT_WORK
    why: str = ""
    cause: str = ""  #: The key of what people have to look at.


AT_WORK: Final = Evidence()


def read(view: View) -> tuple[Signals, Evidence]:
    """The signals of a view, with the evidence behind its stage or attention."""
    stage, evidence = _stage(view)
    if stage in OVER:
        return Signals(stage=stage, hold=_hold(view, stage), talk=view.talk), evidence
    if stage is not Stage.RUNNING:
        return Signals(stage=stage), evidence
    attention, found = _attention(view)
    if found is not None:
        evidence = Evidence(found.reason, found.because, found.key)
    pull = view.pull
    if pull is None:
        signals = Signals(stage=stage, talk=view.talk, attention=attention, output=_output(view))
        return signals, evidence
    signals = Signals(
        stage=stage,
        talk=view.talk,
        attention=attention,
        output=_output(view),
        pull=PullStage.DRAFT if pull.draft else PullStage.OPEN,
        ci=_ci(view, pull),
        review=_review(view, pull),
        merge=pull.merge,
    )
    return signals, evidence


def _stage(view: View) -> tuple[Stage, Evidence]:
    """Outcomes first: a merge, then what an earlier decision came to, then what ends it now."""
    facts = view.facts
    over = _ended(view)
    if over is not None:
        return over
    if not facts.slot:
        return Stage.QUEUED, AT_WORK
    if view.given is None:
        return Stage.SPAWNING, AT_WORK
    return Stage.RUNNING, AT_WORK


def _ended(view: View) -> tuple[Stage, Evidence] | None:
    """The outcome, if there is one."""
    facts, pull = view.facts, view.pull
    if pull is not None and pull.state is PullState.MERGED:
        why = f"pull request #{pull.number} was merged"
        return Stage.MERGED, Evidence(Reason.PR_MERGED, why)
    if facts.ended is not None:
        return _OUTCOMES[facts.ended.status], Evidence(facts.ended.reason, facts.ended.because)
    stop = view.wish("stop")
    if stop is not None:
        return Stage.KILLED, Evidence(Reason.MANUALLY_KILLED, f"stopped by @{stop.actor}")
    if pull is not None and pull.state is PullState.CLOSED:
        why = "the pull request was closed without a merge"
        return Stage.TERMINATED, Evidence(Reason.PR_CLOSED, why)
    if not facts.issue.open:
        completed = facts.issue.state_reason == "completed"
        how = f" as {facts.issue.state_reason}" if facts.issue.state_reason else ""
        closed = Evidence(Reason.ISSUE_CLOSED, f"the issue was closed{how}")
        return Stage.DONE if completed else Stage.TERMINATED, closed
    if not facts.issue.labelled:
        why = "the label was taken off the issue"
        return Stage.TERMINATED, Evidence(Reason.LABEL_REMOVED, why)
    for key, failure in facts.failures.items():
        if key.startswith("start:"):
            return Stage.ERRORED, Evidence(Reason.SPAWN_FAILED, failure.detail)
    if view.talk is Talk.CRASHED and view.crashes >= view.policy.restarts:
        return Stage.ERRORED, _crash(view)
    return None


def _crash(view: View) -> Evidence:
    """How the last run of a row of failures ended."""
    ending, after = view.facts.agent.exit, f"after {view.crashes} restarts"
    if ending is None or (ending.code is None and ending.signal is None):
        return Evidence(Reason.RUNTIME_LOST, f"the agent's program vanished {after}")
    how = f"exit code {ending.code}" if ending.signal is None else f"signal {ending.signal}"
    return Evidence(Reason.PROVIDER_EXIT, f"the agent ended by {how} {after}")


def _hold(view: View, stage: Stage) -> Hold:
    """Whether a session that is over still holds its runtime and workspace.

    A merge gives the workspace back too, also where the program was stopped before. What could not
    be done and was given up holds nothing any more: people are shown it as such.
    """
    facts, past = view.facts, view.past
    done, kind = (past.released, "release:") if stage is Stage.MERGED else (past.stopped, "stop:")
    if any(key.startswith(kind) for key in facts.pending):
        return Hold.RELEASING
    given_up = any(key.startswith(kind) for key in facts.failures)
    return Hold.RELEASED if done or given_up or facts.run == 0 else Hold.HELD


def _attention(view: View) -> tuple[Attention, Escalation | None]:
    """Whether people have to look, and at what."""
    found = first(ESCALATIONS, view)
    if found is not None:
        return Attention.ESCALATED, found
    found = first(STALLS, view)
    return (Attention.STUCK if found else Attention.NONE), found


def _output(view: View) -> Output:
    """What there is of the agent's work, compared with what was pushed."""
    if view.unpushed:
        return Output.UNPUSHED
    if view.facts.work.dirty:
        return Output.DIRTY
    return Output.PUSHED if view.pushed else Output.NOTHING


def _ci(view: View, pull: Pull) -> Ci:
    """Required checks decide where there are any; otherwise all of them do."""
    if view.failed_checks:
        return Ci.SETTLING if view.pending_checks else Ci.FAILING
    if view.pending_checks or not pull.checks_complete:
        return Ci.PENDING
    if view.held_checks:
        return Ci.HELD
    if any(check.state is CheckState.PASSED for check in view.counted_checks):
        return Ci.PASSING
    if pull.checks_expected or pull.head_since is None:
        return Ci.PENDING
    settled = view.passed(pull.head_since, view.policy.settle_seconds)
    return Ci.NONE if settled else Ci.PENDING


def _review(view: View, pull: Pull) -> Review:
    """An approval counts for its own head, from someone allowed who is not the requester."""
    if view.objectors or pull.review is Review.CHANGES_REQUESTED:
        return Review.CHANGES_REQUESTED
    if view.policy.threads_block and view.open_threads:
        return Review.CHANGES_REQUESTED
    if view.approved and pull.review is not Review.PENDING:
        return Review.APPROVED
    wanted = view.policy.require_review or pull.review is not Review.NONE
    return Review.PENDING if wanted else Review.NONE
