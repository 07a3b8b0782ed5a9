"""Derives a session's stage, such as `paused`, and a `Finding` that explains the stage."""

from datetime import datetime
from typing import Final

from lifecycle.judge.capacity import reason_of
from lifecycle.judge.escalations import nothing_to_show
from lifecycle.judge.pauses import exhausted, pause
from lifecycle.judge.signals import Hold, Stage
from lifecycle.judge.stalls import Finding
from lifecycle.judge.waits import overdue_start
from lifecycle.model import keys
from lifecycle.model.facts import Exit, Pull
from lifecycle.model.key import KeyKind, StartCause
from lifecycle.model.policy import NothingToShow
from lifecycle.model.status import PullState, Reason
from lifecycle.model.text import counted
from lifecycle.read import causes
from lifecycle.read.availability import Availability
from lifecycle.read.sentences import person
from lifecycle.read.session_view import Recheck, SessionView, earliest

_MERGED, _CLOSED, _DONE = PullState.MERGED, PullState.CLOSED, NothingToShow.DONE
_RUNNING, _CRASHED = Stage.RUNNING, Availability.CRASHED
_RELEASE, _STOP = KeyKind.RELEASE, KeyKind.STOP
_COMPLETED: Final = "completed"  #: GitHub's word for an issue that was solved.


_AT_WORK: Final = Finding(None, Reason.AGENT_AT_WORK, "")

#: A stage, the finding that explains it, and when time alone may change it. The time is None if
#: only new facts can.
StageReading = tuple[Stage, Finding, datetime | None]


def stage_of(view: SessionView) -> StageReading:
    """Return the stage of a session with the finding that explains it.

    A merge has precedence, then a recorded outcome, then what ends or pauses the session now.
    """
    facts = view.facts
    if view.pull is not None and view.pull.state is _MERGED:
        return Stage.MERGED, Finding(None, Reason.PR_MERGED, _merged(view, view.pull)), None
    if facts.ended is not None:
        evidence = Finding(None, facts.ended.reason, facts.ended.because)
        return Stage(facts.ended.status), evidence, None
    recheck_at: datetime | None = None
    for stage, ends in _ENDS if _may_end(view) else ():
        found = ends(view)
        if found is None:
            continue
        if isinstance(found, Finding):
            return stage, found, recheck_at
        recheck_at = earliest(recheck_at, found.at)
    paused, later = pause(view)
    if later is not None:
        recheck_at = earliest(recheck_at, later)
    if paused is not None:
        return Stage.PAUSED, paused, recheck_at
    if view.instructed_at is not None:
        # Also without a slot: one whose program was stopped gets a slot when it has work for it.
        return _RUNNING, _AT_WORK, recheck_at
    return _not_begun(view, recheck_at)


def _merged(view: SessionView, pull: Pull) -> str:
    """Return which pull request was merged, and who or what caused it, as far as it is known."""
    merged = f"pull request #{pull.number} was merged"
    by_bot = {(key.kind, key.cause[:1]) for key in view.facts.done}
    if (KeyKind.MERGE, (pull.head,)) not in by_bot:
        return f"{merged} by @{pull.merged_by}" if pull.merged_by else merged
    if view.policy.merges_by_itself:
        return f"{merged} automatically (`policy.auto-merge`)"
    command = view.merge_command
    return f"{merged}, as {person(command.actor)} commanded" if command else merged


def _not_begun(view: SessionView, recheck_at: datetime | None) -> StageReading:
    """Return the stage of a session whose current run has not started, and what it waits for."""
    issue = view.facts.issue
    if not view.history.started and issue.blocked_by:
        blocked = _blocked(issue.blocked_by, in_circle=issue.in_circle)
        return _queued(view, blocked, recheck_at)
    budget = exhausted(view) if not view.history.started else None
    if isinstance(budget, Finding):
        recheck_at = earliest(recheck_at, budget.until)
        return _queued(view, budget._replace(key=None), recheck_at)
    if not view.facts.slot:
        waits = view.facts.waits or "the session waits for its turn in the queue"
        return _queued(view, Finding(None, reason_of(waits), waits), recheck_at)
    return Stage.SPAWNING, _AT_WORK, recheck_at


def _queued(view: SessionView, waits: Finding, recheck_at: datetime | None) -> StageReading:
    late = overdue_start(view, waits)
    return Stage.QUEUED, late, earliest(recheck_at, late.until)


def _blocked(issues: tuple[str, ...], *, in_circle: bool) -> Finding:
    """Return the finding that a session waits for other issues.

    People are notified of circular waits.
    """
    why = f"the session waits for {', '.join(issues)}"
    if not in_circle:
        return Finding(None, Reason.ISSUE_BLOCKED, why)
    which = "which waits" if len(issues) == 1 else "at least one of which waits"
    why += f", {which} for this issue in turn"
    return Finding(keys.issues_in_circle(issues), Reason.ISSUES_IN_CIRCLE, why)


def _killed(view: SessionView) -> Finding | None:
    """Return a finding if a person stopped the session or too many runs were lost in a row."""
    stop = view.command("stop")
    if stop is not None:
        return Finding(None, Reason.MANUALLY_KILLED, f"stopped by {person(stop.actor)}")
    ending = view.facts.agent.exit
    if view.availability is not _CRASHED or ending is None or not ending.lost:
        return None
    losses = causes.runs_in_a_row(view, StartCause.LOST)
    if losses < view.policy.lost_runs:
        return None
    why = f"the agent's program was lost again after {counted(losses, 'restart')}: {ending.lost}"
    return Finding(None, Reason.RUNTIME_LOST, why)


def _terminated(view: SessionView) -> Finding | None:
    """Return a finding if the pull request or issue was closed, or the request withdrawn.

    An issue that was closed as completed is left to `_done`.
    """
    pull, issue = view.pull, view.facts.issue
    if pull is not None and pull.state is _CLOSED:
        return Finding(None, Reason.PR_CLOSED, "the pull request was closed without a merge")
    if not issue.open and issue.state_reason != _COMPLETED:
        return Finding(None, Reason.ISSUE_CLOSED, _closed(issue.state_reason))
    if not issue.labelled:
        return Finding(
            None,
            Reason.LABEL_REMOVED,
            "the label or assignment that requested the agent was removed",
        )
    return None


def _closed(how: str) -> str:
    """Return how an issue was closed. `how`: GitHub's `state_reason`, or `deleted`, or empty."""
    if how == "deleted":
        return "the issue was deleted or moved to another repository"
    return f"the issue was closed as {how.replace('_', ' ')}" if how else "the issue was closed"


def _errored(view: SessionView) -> Finding | Recheck | None:
    """Return a finding if a run could not be started, or failed after all restarts.

    While a start is under way, returns a `Recheck` for its time limit.
    """
    facts = view.facts
    for key, failure in facts.failures.items():
        if key.kind is KeyKind.START:
            return Finding(None, failure.reason, failure.detail)
    starting = view.wait(facts.start_due, view.policy.spawn_seconds) if facts.start_due else None
    if facts.start_due and not starting:
        limit = counted(round(view.policy.spawn_seconds), "second")
        why = f"the agent could not be started within {limit}"
        return Finding(None, Reason.TIMEOUT, why)
    ending = facts.agent.exit
    if view.availability is not _CRASHED or (ending is not None and ending.lost):
        return starting
    crashes = causes.runs_in_a_row(view, StartCause.CRASH)
    return _crash(ending, crashes) if crashes >= view.policy.restarts else starting


def _done(view: SessionView) -> Finding | Recheck | None:
    """Return a finding if the issue was closed as completed, or there was nothing to change.

    The latter counts only if `Policy.nothing_to_show` is `done`.
    """
    if not view.facts.issue.open:
        return Finding(None, Reason.ISSUE_CLOSED, f"the issue was closed as {_COMPLETED}")
    if view.policy.nothing_to_show is not _DONE:
        return None
    empty = nothing_to_show(view)
    return Finding(None, Reason.COMPLETED, empty.because) if isinstance(empty, Finding) else empty


#: What ends a session now, in the order of the rules.
_ENDS: Final = (
    (Stage.KILLED, _killed),
    (Stage.TERMINATED, _terminated),
    (Stage.ERRORED, _errored),
    (Stage.DONE, _done),
)


def _may_end(view: SessionView) -> bool:
    """Whether any function in `_ENDS` could return a result.

    Usually False, which spares calling them.
    """
    facts, issue, pull = view.facts, view.facts.issue, view.pull
    if facts.commands or facts.failures or facts.start_due or view.availability is _CRASHED:
        return True
    if not issue.open or not issue.labelled or view.policy.nothing_to_show is _DONE:
        return True
    return pull is not None and pull.state is _CLOSED


def _crash(ending: Exit | None, crashes: int) -> Finding:
    """Return a finding that says how the last run failed. `crashes`: the failed runs before it."""
    after = f"after {counted(crashes, 'restart')}"
    if ending is None or (ending.code is None and ending.signal is None):
        return Finding(None, Reason.RUNTIME_LOST, f"the agent's program vanished {after}")
    if ending.signal is None:
        how = f"exited with code {ending.code}"
    else:
        how = f"was ended by signal {ending.signal}"
    return Finding(None, Reason.PROVIDER_EXIT, f"the agent {how} {after}")


def hold_of(view: SessionView, stage: Stage) -> Hold:
    """Return how far an ended session has given up its program and, if merged, its workspace.

    Without a merge only the end of the program counts: the workspace is kept for
    `Policy.workspace_days`. While a release is pending, the result is always `RELEASING`. A stop or
    release that failed for good is taken as done.
    """
    facts, history = view.facts, view.history
    kind = _RELEASE if stage is Stage.MERGED else _STOP
    if any(key.kind in (kind, _RELEASE) for key in facts.pending):
        return Hold.RELEASING
    given_up = any(key.kind is kind for key in facts.failures)
    return Hold.RELEASED if history.has(kind) or given_up or facts.run == 0 else Hold.HELD
