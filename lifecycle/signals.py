"""Facts reduced to a few closed words, on which alone the rules and the reactions' conditions rest.

The reduction is where thresholds and evidence are weighed; what follows from a combination of
words is a table, small enough to be walked over whole.
"""

from enum import StrEnum
from functools import cached_property
from typing import Final

from msgspec import Struct

from lifecycle.escalations import open_escalation
from lifecycle.facts import Pull
from lifecycle.status import Activity, Checks, Merge, Probe, PullState, Reason, Review, Status
from lifecycle.view import View


class Stage(StrEnum):
    """How far a session's life has come."""

    QUEUED = "queued"
    SPAWNING = "spawning"
    RUNNING = "running"
    MERGED = "merged"
    KILLED = "killed"
    TERMINATED = "terminated"
    ERRORED = "errored"
    DONE = "done"


OVER: Final = frozenset(Stage) - {Stage.QUEUED, Stage.SPAWNING, Stage.RUNNING}


class Hold(StrEnum):
    """Whether a session's runtime and workspace are still held, once it is over."""

    HELD = "held"
    RELEASING = "releasing"
    RELEASED = "released"


class Talk(StrEnum):
    """What can be said to the agent now."""

    NONE = "none"  #: Started and not seen yet.
    ACTIVE = "active"
    QUIET = "quiet"
    WAITING = "waiting"
    BLOCKED = "blocked"
    ENDED = "ended"  #: Exited by itself without an error; a message starts a new run.
    CRASHED = "crashed"  #: Exited by an error, or provably lost with its runtime.
    UNSURE = "unsure"  #: Probes failed or disagree, or the evidence is stale.


class Attention(StrEnum):
    """Whether people have to look."""

    NONE = "none"
    ESCALATED = "escalated"
    STUCK = "stuck"


class Output(StrEnum):
    """What there is of the agent's work."""

    NOTHING = "nothing"
    UNPUSHED = "unpushed"
    PUSHED = "pushed"
    DIRTY = "dirty"  #: All commits are pushed, and something is not committed.


class PullStage(StrEnum):
    """Whether there is a pull request to judge."""

    NONE = "none"
    DRAFT = "draft"
    OPEN = "open"


class Ci(StrEnum):
    """What the checks say, with time and requirements weighed in."""

    FAILING = "failing"  #: Some counted check failed and nothing runs any more.
    SETTLING = "settling"  #: Some counted check failed and others still run.
    HELD = "held"  #: Cancelled, stale, or waiting for an action of a person.
    PENDING = "pending"
    PASSING = "passing"
    NONE = "none"  #: No checks, long enough after the push, and none are expected.


class Signals(Struct, frozen=True, kw_only=True):
    """The closed words of one session at one instant."""

    stage: Stage
    hold: Hold = Hold.HELD
    talk: Talk = Talk.NONE
    attention: Attention = Attention.NONE
    output: Output = Output.NOTHING
    pull: PullStage = PullStage.NONE
    ci: Ci = Ci.NONE
    review: Review = Review.NONE
    merge: Merge = Merge.UNKNOWN


#: What ended a session, in the words of its outcome.
_OUTCOMES: Final = {
    Status.MERGED: Stage.MERGED,
    Status.KILLED: Stage.KILLED,
    Status.TERMINATED: Stage.TERMINATED,
    Status.ERRORED: Stage.ERRORED,
    Status.DONE: Stage.DONE,
}


class Reading:
    """The reduction of one view; also says why, for the sentence people read."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.reason = Reason.AGENT_AT_WORK
        self.why = ""

    def signals(self) -> Signals:
        """Everything at once."""
        stage = self.stage()
        if stage in OVER:
            return Signals(stage=stage, hold=self.hold(), talk=self.talk)
        if stage is not Stage.RUNNING:
            return Signals(stage=stage)
        attention, output = self.attention(), self.output()
        pull = self.view.pull
        if pull is None or pull.state is not PullState.OPEN:
            return Signals(stage=stage, talk=self.talk, attention=attention, output=output)
        return Signals(
            stage=stage,
            talk=self.talk,
            attention=attention,
            output=output,
            pull=PullStage.DRAFT if pull.draft else PullStage.OPEN,
            ci=self.ci(pull),
            review=self.review(pull),
            merge=pull.merge,
        )

    def _because(self, reason: Reason, why: str) -> None:
        self.reason, self.why = reason, why

    # -- stage -----------------------------------------------------------------------------------

    def stage(self) -> Stage:
        """Outcomes first: a merge, then what an earlier decision came to, then what ends it now."""
        view, facts = self.view, self.view.facts
        states = {pull.state for pull in facts.pulls}
        if PullState.MERGED in states and PullState.OPEN not in states:
            merged = max(pull.number for pull in facts.pulls if pull.state is PullState.MERGED)
            self._because(Reason.PR_MERGED, f"pull request #{merged} was merged")
            return Stage.MERGED
        if facts.ended is not None:
            self._because(facts.ended.reason, facts.ended.because)
            return _OUTCOMES[facts.ended.status]
        stop = view.wish("stop")
        if stop is not None:
            self._because(Reason.MANUALLY_KILLED, f"stopped by @{stop.actor}")
            return Stage.KILLED
        if states == {PullState.CLOSED}:
            self._because(Reason.PR_CLOSED, "the pull request was closed without a merge")
            return Stage.TERMINATED
        if not facts.issue.open:
            state = facts.issue.state_reason or "closed"
            self._because(Reason.ISSUE_CLOSED, f"the issue was closed as {state}")
            return Stage.DONE if state == "completed" else Stage.TERMINATED
        if not facts.issue.labelled:
            self._because(Reason.LABEL_REMOVED, "the label was taken off the issue")
            return Stage.TERMINATED
        for key, failure in facts.failures.items():
            if key.startswith("start:"):
                self._because(Reason.SPAWN_FAILED, failure.detail)
                return Stage.ERRORED
        if self.talk is Talk.CRASHED and view.crashes >= view.policy.restarts:
            ending = facts.agent.exit
            how = f"exit code {ending.code}" if ending and ending.code is not None else "a signal"
            if ending and ending.signal:
                how = f"signal {ending.signal}"
            self._because(
                Reason.PROVIDER_EXIT if ending else Reason.RUNTIME_LOST,
                f"the agent ended by {how} after {view.crashes} restarts"
                if ending
                else f"the agent's runtime was lost after {view.crashes} restarts",
            )
            return Stage.ERRORED
        if not facts.slot:
            return Stage.QUEUED
        started = f":r{facts.run}"
        if facts.run == 0 or not any(
            key.startswith("start:") and key.endswith(started) for key in facts.done
        ):
            return Stage.SPAWNING
        return Stage.RUNNING

    def hold(self) -> Hold:
        """Whether a session that is over still holds its runtime and workspace."""
        facts = self.view.facts
        if any(key.startswith(("stop:", "release:")) for key in facts.pending):
            return Hold.RELEASING
        done = any(key.startswith(("stop:", "release:")) for key in facts.done)
        return Hold.RELEASED if done or facts.run == 0 else Hold.HELD

    # -- the agent -------------------------------------------------------------------------------

    @cached_property
    def talk(self) -> Talk:
        """What can be said to the agent; a run's own evidence alone counts."""
        view, agent, policy = self.view, self.view.facts.agent, self.view.policy
        if agent.run != view.facts.run:
            return Talk.NONE
        if agent.exit is not None:
            return Talk.ENDED if agent.exit.code == 0 else Talk.CRASHED
        if agent.runtime is Probe.DEAD and agent.program is Probe.DEAD:
            return Talk.CRASHED
        if agent.program is not Probe.ALIVE:
            return Talk.UNSURE
        told = view.last_message
        if agent.activity in (Activity.READY, Activity.IDLE):
            # A message that has just gone in is being read, whatever the last evidence says.
            fresh = told is not None and (agent.since is None or agent.since <= told)
            if fresh and told is not None and not view.passed(told, policy.hearing_seconds):
                return Talk.ACTIVE
            return Talk.QUIET
        if agent.activity is Activity.ACTIVE:
            seen = agent.seen or agent.since
            stale = seen is None or view.passed(seen, policy.fresh_seconds)
            return Talk.UNSURE if stale else Talk.ACTIVE
        return {
            Activity.WAITING_INPUT: Talk.WAITING,
            Activity.BLOCKED: Talk.BLOCKED,
            Activity.EXITED: Talk.UNSURE,
        }.get(agent.activity, Talk.NONE)

    def attention(self) -> Attention:
        """Whether people have to look, and why."""
        view, agent = self.view, self.view.facts.agent
        if self.talk is Talk.WAITING:
            question = agent.question or "something at its terminal"
            self._because(Reason.AGENT_QUESTION, f"the agent asks: {question}")
            return Attention.ESCALATED
        found = open_escalation(view)
        if found is not None:
            self._because(found.reason, found.because)
            return Attention.ESCALATED
        since = agent.since or agent.seen or view.last_message or view.facts.created
        if self.talk is Talk.BLOCKED and view.passed(since, view.policy.stuck_seconds):
            self._because(Reason.AGENT_BLOCKED, f"the agent is blocked: {agent.error or 'unknown'}")
            return Attention.STUCK
        if self.talk in (Talk.UNSURE, Talk.NONE):
            seen = max(filter(None, (agent.seen, agent.since, view.last_message)), default=since)
            if agent.program is Probe.ALIVE and agent.run == view.facts.run:
                if view.passed(seen, view.policy.stuck_seconds):
                    self._because(Reason.NO_PROGRESS, "the agent shows no progress")
                    return Attention.STUCK
            elif view.passed(seen, view.policy.probe_seconds):
                self._because(Reason.PROBE_FAILURE, "the agent's state could not be established")
                return Attention.STUCK
        return Attention.NONE

    def output(self) -> Output:
        """What there is of the agent's work, compared with what was pushed."""
        work = self.view.facts.work
        pushed = self.view.is_done(f"push:{work.head}")
        if work.head and work.head != work.base and not pushed:
            return Output.UNPUSHED
        if work.dirty:
            return Output.DIRTY
        return Output.PUSHED if pushed else Output.NOTHING

    # -- the pull request ------------------------------------------------------------------------

    def ci(self, pull: Pull) -> Ci:
        """Required checks decide where there are any; otherwise all of them do."""
        view = self.view
        if view.failed_checks:
            return Ci.SETTLING if view.pending_checks else Ci.FAILING
        state = summary(view)
        if state is Checks.PENDING or not pull.checks_complete:
            return Ci.PENDING
        if view.held_checks:
            return Ci.HELD
        if state is Checks.PASSING:
            return Ci.PASSING
        settled = view.passed(pull.head_since or view.now, view.policy.settle_seconds)
        return Ci.NONE if settled and not pull.checks_expected else Ci.PENDING

    def review(self, pull: Pull) -> Review:
        """An approval counts for its own head, from someone allowed who is not the requester."""
        view = self.view
        asks = any(not verdict.approved and verdict.allowed for verdict in pull.verdicts)
        if asks or pull.review is Review.CHANGES_REQUESTED:
            return Review.CHANGES_REQUESTED
        if view.policy.threads_block and view.open_threads:
            return Review.CHANGES_REQUESTED
        approved = any(
            verdict.approved
            and verdict.allowed
            and verdict.sha == pull.head
            and verdict.author != view.facts.requester
            for verdict in pull.verdicts
        )
        if approved and pull.review is not Review.PENDING:
            return Review.APPROVED
        wanted = view.policy.require_review or pull.review is not Review.NONE
        return Review.PENDING if wanted else Review.NONE


def summary(view: View) -> Checks:
    """All counted checks in one word; skipped ones say nothing."""
    if view.failed_checks:
        return Checks.FAILING
    words = {check.state for check in view.counted_checks}
    if "pending" in words:
        return Checks.PENDING
    return Checks.PASSING if "passed" in words else Checks.NONE


def read(view: View) -> tuple[Signals, Reason, str]:
    """The signals of a view, with the reason and the evidence behind its stage or attention."""
    reading = Reading(view)
    signals = reading.signals()
    return signals, reading.reason, reading.why
