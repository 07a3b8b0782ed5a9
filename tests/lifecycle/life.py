"""Simulates a session without a bot: events change facts, decisions are carried out at once."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.judge.signals import OVER
from lifecycle.model import actions as do
from lifecycle.model.facts import (
    Agent,
    Check,
    Command,
    Done,
    Exit,
    Facts,
    Failure,
    Issue,
    OffBranch,
    Pull,
    Push,
    Remark,
    Thread,
    Verdict,
)
from lifecycle.model.policy import Policy
from lifecycle.model.status import (
    Activity,
    CheckState,
    Merge,
    Mover,
    Origin,
    Probe,
    PullState,
    Reason,
    Status,
)
from tests.lifecycle.universe import BASE, NOW, facts

_MOST = 60  #: More decisions in a row than this are a loop.


class Life:
    """One session, its agent, its pull request and the people around it.

    Every step changes facts and reconciles until no action is left.
    """

    def __init__(
        self, *, issue: int = 12, body: str = "", origin: Origin = Origin.ISSUE, **policy: Any
    ) -> None:
        self.policy = Policy(**policy)
        self.now = NOW
        #: Actions carried out, in order: `(key, action)`.
        self.out: list[tuple[str, do.Action]] = []
        #: Reports posted, in order.
        self.reports: list[do.Report | do.ReportCheck] = []
        #: The statuses it was in, in order, without repetitions.
        self.went: list[str] = []
        self.failing: set[str] = set()  #: Prefixes of the keys of actions that fail.
        self.failure_reason = Reason.ACTION_FAILED  #: Their failure.
        subject = Issue(number=issue, title="x", body=body)
        self.facts: Facts = facts(
            run=0,
            slot=True,
            agent=Agent(),
            created=NOW,
            done={},
            issue=subject,
            origin=origin,
        )
        self.facts = replace(self.facts, done={})
        self.slots = True  #: Whether a slot is free.
        self._commits = 0
        self._remarks = 0
        self.reconcile()

    # -- assertions --------------------------------------------------------------------------------

    def reads(self, status: Status) -> "Life":
        """Assert the current status."""
        assert self.decision.status is status, f"{self.decision.status}: {self.decision.because}"
        return self

    @property
    def over(self) -> bool:
        return self.decision.signals.stage in OVER

    @property
    def pull(self) -> Pull:
        (pull,) = self.facts.pulls
        return pull

    def sent(self, beginning: str = "") -> list[str]:
        """The keys of actions carried out, without reports."""
        return [key for key, _ in self.out if key.startswith(beginning)]

    def reported(self, number: int) -> list[str]:
        """The statuses that the report on an issue or pull request went through."""
        topics = [
            a.summary for a in self.reports if isinstance(a, do.Report) and a.number == number
        ]
        return [summary.status.value for summary in topics]

    def received(self) -> list[str]:
        """The prompts that reached the agent."""
        return [a.prompt.name for _, a in self.out if isinstance(a, do.Start | do.SendMessage)]

    def comments(self) -> list[str]:
        """The topics of posted comments, without replies to commands."""
        topics = [a.topic for _, a in self.out if isinstance(a, do.Comment | do.Reply)]
        return [topic for topic in topics if topic != "answer"]

    def answers(self) -> list[str]:
        """The replies to commands."""
        topics = [a for _, a in self.out if isinstance(a, do.Comment)]
        return [a.values["text"] for a in topics if a.topic == "answer"]

    # -- time --------------------------------------------------------------------------------------

    def waits(self, seconds: float) -> "Life":
        """Let time pass; reconcile at each recheck time and at the end."""
        until = self.now + timedelta(seconds=seconds)
        for _ in range(_MOST):
            due = self.decision.recheck_at
            if due is None or due > until:
                break
            assert due > self.now
            self.now = due
            self.reconcile()
        else:
            raise AssertionError(f"endless rechecks: {self.decision}")
        self.now = until
        self.reconcile()
        return self

    def reconcile(self) -> None:
        """Decide and carry out until no action follows."""
        for _ in range(_MOST):
            self.now += timedelta(milliseconds=100)
            self.decision = decide(self.facts, self.policy, self.now)
            self._record(self.decision)
            if not self.decision.actions and not self.decision.wants_slot & self.slots:
                return
            for action in self.decision.actions:
                self._carry_out(action)
        raise AssertionError(f"endless actions: {self.decision.actions}")

    def _record(self, decision: Decision) -> None:
        if not self.went or self.went[-1] != decision.status:
            self.went.append(decision.status)
        runs = [action.run for action in decision.actions if isinstance(action, do.Start)]
        self.facts = replace(
            self.facts,
            run=max([self.facts.run, *runs]),
            ended=decision.ended,
            slot=(self.facts.slot and decision.holds_slot) or (self.slots and decision.wants_slot),
        )

    def _carry_out(self, action: do.Action) -> None:
        self.now += timedelta(milliseconds=10)
        text = str(action.key)
        assert text not in self.sent(), f"{text} was carried out twice"
        if any(text.startswith(beginning) for beginning in self.failing):
            failure = Failure(at=self.now, reason=self.failure_reason, detail="it was refused")
            self.facts = replace(self.facts, failures={**self.facts.failures, action.key: failure})
            return
        if isinstance(action, do.Report | do.ReportCheck):
            self.reports.append(action)
        else:
            self.out.append((text, action))
        keys = (action.key, *getattr(action, "covers", ()))
        done = {**self.facts.done, **dict.fromkeys(keys, Done(at=self.now))}
        self.facts = replace(self.facts, done=done)
        self._effect(action)

    def _effect(self, action: do.Action) -> None:
        match action:
            case do.Start(run=run, resume=resume, agent=word):
                kept = self.facts.agent_type
                self.facts = replace(self.facts, agent_type=word or kept)
                self.agent_is(Activity.NONE, run=run, native_id=resume or "talk", reconcile=False)
            case do.Publish(head=head):
                for pull in self.facts.pulls:
                    self._pull(pull, head=head, checks=(), merge=Merge.CLEAN, head_since=self.now)
            case do.AdoptCommits(head=head, onto=onto):
                assert onto == self.facts.work.head
                work = replace(self.facts.work, head=head, off_branch=None)
                self.facts = replace(self.facts, work=work)
            case do.MergeRemote(head=head):
                self.facts = replace(self.facts, work=replace(self.facts.work, head=head))
            case do.OpenPull(head=head):
                pull = Pull(number=34, head=head, base=BASE, base_branch="main")
                self._pull(pull, merge=Merge.CLEAN, head_since=self.now)
            case do.MergePull(sha=sha):
                assert sha == self.pull.head
                self._pull(self.pull, state=PullState.MERGED, merged_at=self.now)
            case do.Reply(threads=ids):
                self._remarks += 1
                own = Remark(
                    id=f"r{self._remarks}", author="bot", body="Done", at=self.now, own=True
                )
                self._pull(
                    self.pull,
                    threads=tuple(
                        replace(each, remarks=(*each.remarks, own)) if each.id in ids else each
                        for each in self.pull.threads
                    ),
                )
            case do.Stop() | do.Release():
                gone = {"runtime": Probe.DEAD, "program": Probe.DEAD, "stopped": True}
                agent = replace(self.facts.agent, activity=Activity.EXITED, **gone)
                self.facts = replace(self.facts, agent=agent)

    # -- the agent ---------------------------------------------------------------------------------

    def agent_is(self, activity: Activity, *, reconcile: bool = True, **fields: Any) -> "Life":
        """Change the agent's activity now."""
        self.now += timedelta(seconds=1)
        fields = {
            "run": self.facts.run,
            "since": self.now,
            "seen": self.now,
            "runtime": Probe.ALIVE,
            "program": Probe.ALIVE,
            "native_id": self.facts.agent.native_id,
            **fields,
        }
        at_rest = activity in (Activity.READY, Activity.IDLE, Activity.EXITED)
        dirty = self.facts.work.dirty or False if at_rest else None
        self.facts = replace(
            self.facts,
            agent=Agent(activity=activity, **fields),
            work=replace(self.facts.work, dirty=dirty),
        )
        return self._then(reconcile)

    def agent_works(self) -> "Life":
        return self.agent_is(Activity.ACTIVE)

    def agent_commits(self) -> "Life":
        """The agent commits and keeps working."""
        self._commits += 1
        work = replace(self.facts.work, head=f"{self._commits:040x}", dirty=None, off_branch=None)
        self.facts = replace(self.facts, work=work)
        return self.agent_works()

    def agent_commits_off_branch(self, *, adoptable: bool, branch: str = "fix") -> "Life":
        """The agent commits on another branch, or on none."""
        self._commits += 1
        commits = OffBranch(head=f"{self._commits:040x}", branch=branch, adoptable=adoptable)
        self.facts = replace(self.facts, work=replace(self.facts.work, off_branch=commits))
        return self.agent_works()

    def agent_rests(self, *, dirty: bool = False) -> "Life":
        """The turn ends."""
        self.facts = replace(self.facts, work=replace(self.facts.work, dirty=dirty))
        return self.agent_is(Activity.READY)

    def agent_says(self, summary: str) -> "Life":
        """The turn ends with this message."""
        return self.agent_is(Activity.READY, summary=summary)

    def agent_asks(self, question: str = "May I?") -> "Life":
        return self.agent_is(Activity.WAITING_INPUT, question=question)

    def agent_exits(self, code: int | None = 0, *, dirty: bool = False) -> "Life":
        self.facts = replace(self.facts, work=replace(self.facts.work, dirty=dirty))
        at = self.now + timedelta(seconds=1)
        record = Exit(at=at, code=code, signal=None if code is not None else 9)
        gone: dict[str, Any] = {"runtime": Probe.DEAD, "program": Probe.DEAD, "exit": record}
        return self.agent_is(Activity.EXITED, **gone)

    # -- the world around it -----------------------------------------------------------------------

    def checks_are(self, *states: CheckState) -> "Life":
        checks = tuple(
            Check(id=f"ci/{place}", name=f"check{place}", state=state)
            for place, state in enumerate(states)
        )
        was = {check.state for check in self.pull.checks}
        green = set(states) == {CheckState.PASSED} and was != {CheckState.PASSED}
        since = self.now if green else self.pull.green_since
        return self._pull(self.pull, checks=checks, green_since=since)._then(True)

    def ci_fails(self) -> "Life":
        return self.checks_are(CheckState.FAILED)

    def ci_passes(self) -> "Life":
        return self.checks_are(CheckState.PASSED)

    def reviewer_asks(self, text: str = "Please add a test.") -> "Life":
        """A review that asks for changes, with one thread."""
        self._remarks += 1
        remark = Remark(id=f"c{self._remarks}", author="rob", body=text, at=self.now, allowed=True)
        thread = Thread(id=f"T{self._remarks}", path="a.py", line=1, remarks=(remark,))
        verdict = Verdict(author="rob", approved=False, sha=self.pull.head, allowed=True)
        threads = (*self.pull.threads, thread)
        return self._pull(self.pull, threads=threads, verdicts=(verdict,))._then(True)

    def person_comments(self, text: str = "Please rename it.") -> "Life":
        self._remarks += 1
        remark = Remark(id=f"c{self._remarks}", author="rob", body=text, at=self.now, allowed=True)
        return self._pull(self.pull, comments=(*self.pull.comments, remark))._then(True)

    def reviewer_approves(self) -> "Life":
        threads = tuple(replace(each, resolved=True) for each in self.pull.threads)
        verdict = Verdict(author="rob", approved=True, sha=self.pull.head, allowed=True)
        return self._pull(self.pull, threads=threads, verdicts=(verdict,))._then(True)

    def verdicts_are(self, *verdicts: Verdict) -> "Life":
        return self._pull(self.pull, verdicts=verdicts)._then(True)

    def base_conflicts(self, base: str = "e" * 40) -> "Life":
        return self._pull(self.pull, base=base, merge=Merge.CONFLICT)._then(True)

    def person_pushes(self) -> "Life":
        """A person's commit is on the branch, and has no checks yet."""
        self._commits += 1
        person = Push(sha=f"{self._commits:040x}", at=self.now)
        fields = {"head": person.sha, "head_by": Mover.PERSON, "person": person, "checks": ()}
        return self._pull(self.pull, **fields, head_since=self.now)._then(True)

    def pull_is(self, state: PullState) -> "Life":
        merged_at = self.now if state is PullState.MERGED else None
        return self._pull(self.pull, state=state, merged_at=merged_at)._then(True)

    def slots_are(self, free: bool) -> "Life":
        self.slots = free
        return self._then(True)

    def issue_is(self, **fields: Any) -> "Life":
        self.facts = replace(self.facts, issue=replace(self.facts.issue, **fields))
        return self._then(True)

    def person_commands(self, kind: str, text: str = "", head: str = "") -> "Life":
        self._remarks += 1
        command = Command(
            key=f"comment-{self._remarks}",
            kind=kind,
            actor="alice",
            at=self.now,
            text=text,
            head=head,
            comment=self._remarks,
        )
        self.facts = replace(self.facts, commands=(*self.facts.commands, command))
        return self._then(True)

    def _pull(self, pull: Pull, **fields: Any) -> "Life":
        others = tuple(each for each in self.facts.pulls if each.number != pull.number)
        self.facts = replace(self.facts, pulls=(*others, replace(pull, **fields)))
        return self

    def _then(self, reconcile: bool) -> "Life":
        if reconcile:
            self.reconcile()
        return self


def until_reviewed(**policy: Any) -> Life:
    """A session with a green pull request that waits for its review."""
    return Life(**policy).agent_commits().agent_rests().ci_passes()
