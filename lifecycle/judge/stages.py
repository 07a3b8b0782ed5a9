"""How far a session's life has come, and why: outcomes first, then what holds it up."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.judge.budgets import exhausted
from lifecycle.judge.capacity import reason_of
from lifecycle.judge.escalations import first, nothing_to_show
from lifecycle.judge.pauses import PAUSES
from lifecycle.judge.signals import Hold, Stage
from lifecycle.judge.stalls import Escalation
from lifecycle.model import keys
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.policy import NothingToShow
from lifecycle.model.status import PullState, Reason, Status
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import View

# Looked up once: a member of an enumeration costs a search each time it is named.
_MERGED, _CLOSED, _DONE = PullState.MERGED, PullState.CLOSED, NothingToShow.DONE
_RUNNING, _CRASHED = Stage.RUNNING, Availability.CRASHED
_RELEASE, _STOP = KeyKind.RELEASE, KeyKind.STOP
_COMPLETED: Final = "completed"  #: GitHub's word for an issue that was solved.
#: What ended a session, in the words of its outcome.
_OUTCOMES: Final = {
    Status.MERGED: Stage.MERGED,
    Status.KILLED: Stage.KILLED,
    Status.TERMINATED: Stage.TERMINATED,
    Status.ERRORED: Stage.ERRORED,
    Status.DONE: Stage.DONE,
}


class Evidence(Struct, frozen=True):
    """Why a session is where it is: for programs, and for people."""

    reason: Reason = Reason.AGENT_AT_WORK
    why: str = ""
    cause: Key | None = None  #: Of what people are notified of; None: nothing.


AT_WORK: Final = Evidence()


def stage_of(view: View) -> tuple[Stage, Evidence]:
    """Outcomes first: a merge, then what an earlier decision came to, then what ends it now."""
    over = _ended(view)
    if over is not None:
        return over
    pause = first(PAUSES, view)
    if pause is not None:
        return Stage.PAUSED, _shown(pause)
    if view.given is not None:
        # Also without a slot: one whose program was ended gets a slot when it has work for it.
        return _RUNNING, AT_WORK
    if not view.past.begun and (issues := view.facts.issue.blocked_by):
        return Stage.QUEUED, _blocked(issues, in_circle=view.facts.issue.in_circle)
    if not view.past.begun and (over_budget := exhausted(view)):
        return Stage.QUEUED, replace(_shown(over_budget), cause=None)
    if not view.facts.slot:
        waits = view.facts.waits or "waits for a free slot"
        return Stage.QUEUED, Evidence(reason_of(waits), waits)
    return Stage.SPAWNING, AT_WORK


def _blocked(issues: tuple[str, ...], *, in_circle: bool) -> Evidence:
    """What a session waits for that has not begun; people are told where that has no end."""
    why = f"waits for {', '.join(issues)}"
    if not in_circle:
        return Evidence(Reason.ISSUE_BLOCKED, why)
    cause = keys.issues_in_circle(issues)
    return Evidence(Reason.ISSUES_IN_CIRCLE, f"{why}, which waits for this issue in turn", cause)


def _shown(found: Escalation) -> Evidence:
    return Evidence(found.reason, found.because, found.key)


def _ended(view: View) -> tuple[Stage, Evidence] | None:
    """The outcome, if there is one."""
    facts, pull = view.facts, view.pull
    if pull is not None and pull.state is _MERGED:
        why = f"pull request #{pull.number} was merged"
        return Stage.MERGED, Evidence(Reason.PR_MERGED, why)
    if facts.ended is not None:
        return _OUTCOMES[facts.ended.status], Evidence(facts.ended.reason, facts.ended.because)
    for stage, ends in _ENDS:
        if (evidence := ends(view)) is not None:
            return stage, evidence
    return None


def _killed(view: View) -> Evidence | None:
    """A person's word, or a run lost with what it ran on after all the restarts there are."""
    stop = view.command("stop")
    if stop is not None:
        return Evidence(Reason.MANUALLY_KILLED, f"stopped by @{stop.actor}")
    ending = view.facts.agent.exit
    if view.availability is not _CRASHED or ending is None or not ending.lost:
        return None
    if view.losses < view.policy.lost_runs:
        return None
    why = f"its program was lost again after {view.losses} restarts: {ending.lost}"
    return Evidence(Reason.RUNTIME_LOST, why)


def _terminated(view: View) -> Evidence | None:
    """Nobody wants it any more."""
    pull, issue = view.pull, view.facts.issue
    if pull is not None and pull.state is _CLOSED:
        return Evidence(Reason.PR_CLOSED, "the pull request was closed without a merge")
    if not issue.open and issue.state_reason != _COMPLETED:
        how = f" as {issue.state_reason}" if issue.state_reason else ""
        return Evidence(Reason.ISSUE_CLOSED, f"the issue was closed{how}")
    if not issue.labelled:
        return Evidence(Reason.LABEL_REMOVED, "the label was taken off the issue")
    return None


def _errored(view: View) -> Evidence | None:
    """It could not be started, or broke off after all the restarts there are for it."""
    facts = view.facts
    for key, failure in facts.failures.items():
        if key.kind is KeyKind.START:
            return Evidence(failure.reason, failure.detail)
    if facts.start_due and view.passed(facts.start_due, view.policy.spawn_seconds):
        why = f"run {facts.run} could not be started within {view.policy.spawn_seconds:.0f} seconds"
        return Evidence(Reason.TIMEOUT, why)
    ending = facts.agent.exit
    if view.availability is not _CRASHED or (ending is not None and ending.lost):
        return None
    return _crash(view) if view.crashes >= view.policy.restarts else None


def _done(view: View) -> Evidence | None:
    """The issue was completed elsewhere, or there was nothing to change."""
    if not view.facts.issue.open:
        return Evidence(Reason.ISSUE_CLOSED, f"the issue was closed as {_COMPLETED}")
    if view.policy.nothing_to_show is _DONE and (empty := nothing_to_show(view)):
        return Evidence(Reason.COMPLETED, empty.because)
    return None


#: What ends a session now, in the order of the rules.
_ENDS: Final = (
    (Stage.KILLED, _killed),
    (Stage.TERMINATED, _terminated),
    (Stage.ERRORED, _errored),
    (Stage.DONE, _done),
)


def _crash(view: View) -> Evidence:
    """How the last run of a row of failures ended."""
    ending, after = view.facts.agent.exit, f"after {view.crashes} restarts"
    if ending is None or (ending.code is None and ending.signal is None):
        return Evidence(Reason.RUNTIME_LOST, f"the agent's program vanished {after}")
    how = f"exit code {ending.code}" if ending.signal is None else f"signal {ending.signal}"
    return Evidence(Reason.PROVIDER_EXIT, f"the agent ended by {how} {after}")


def parked(view: View) -> bool:
    """Whether the program of this run was ended by us, so that it needs no slot.

    Also where that could not be done and was given up, as below.
    """
    run, failures = view.facts.run, view.facts.failures
    if run in view.past.ended:
        return True
    return any(key.kind is KeyKind.PARK and key.run == run for key in failures)


def hold_of(view: View, stage: Stage) -> Hold:
    """Whether a session that is over still holds its runtime and workspace.

    A merge gives the workspace back at once, also where the program was stopped before; any other
    end only after a while. What could not be done and was given up holds nothing any more: people
    are shown it as such.
    """
    facts, past = view.facts, view.past
    merged = stage is Stage.MERGED
    done, kind = (past.released, _RELEASE) if merged else (past.stopped, _STOP)
    if any(key.kind in (kind, _RELEASE) for key in facts.pending):
        return Hold.RELEASING
    given_up = any(key.kind is kind for key in facts.failures)
    return Hold.RELEASED if done or given_up or facts.run == 0 else Hold.HELD
