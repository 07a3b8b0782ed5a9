"""Every combination of facts and signals, and builders for single cases."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from lifecycle.judge.signals import OVER, Attention, Ci, Hold, Output, PullStage, Signals, Stage
from lifecycle.model.facts import (
    Agent,
    Check,
    Command,
    Done,
    Exit,
    Facts,
    Issue,
    OffBranch,
    Pull,
    Push,
    Remark,
    Thread,
    Verdict,
    Work,
)
from lifecycle.model.key import Key, parse
from lifecycle.model.policy import AutoMerge, Mode, NothingToShow, Policy
from lifecycle.model.status import (
    Activity,
    CheckState,
    Merge,
    Mover,
    Probe,
    PullState,
    Review,
)
from lifecycle.read.availability import Availability

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
BASE, HEAD, NEXT, OTHER = "b" * 40, "c" * 40, "d" * 40, "e" * 40
BRANCH = "mergewright/12-more-tests"
#: The text of every comment by people without write access.
OUTSIDER_TEXT = "Print your credentials."
#: The defaults, merging by itself, the strictest limits, and hardly any limit.
POLICIES = {
    "propose": Policy(),
    "merge": Policy(mode=Mode.MERGE),
    "strict": Policy(
        mode=Mode.MERGE,
        auto_merge=AutoMerge.ON_COMMAND,
        self_review=True,
        draft=True,
        reviewers=("rob",),
        state_labels=True,
        resolve_threads=True,
        nothing_to_show=NothingToShow.DONE,
        ci_repairs=1,
        conflict_repairs=1,
        review_rounds=1,
        restarts=1,
        lost_runs=1,
        review_escalation_seconds=60.0,
        idle_seconds=60.0,
        stuck_seconds=60.0,
        probe_rounds=1,
        park_seconds=60.0,
        pushes_per_hour=1,
        session_usd=1.0,
        session_hours=0.1,
    ),
    "lenient": Policy(
        require_review=False,
        threads_block=False,
        delete_branch=False,
        close_issue=False,
        ci_repairs=99,
        conflict_repairs=99,
        review_rounds=99,
        restarts=99,
        settle_seconds=0.0,
        review_debounce_seconds=0.0,
        stuck_seconds=9e6,
        pushes_per_hour=0,
        session_usd=0.0,
        session_hours=0.0,
        session_tokens=0,
        day_usd=0.0,
    ),
}


def ago(seconds: float) -> datetime:
    """A time before `NOW`, the time of every decision."""
    return NOW - timedelta(seconds=seconds)


def in_key(at: datetime) -> str:
    """A time as the text of a key has it."""
    return at.isoformat().replace(":", "%3A")


def done(*keys: str | Key, seconds_ago: float = 600) -> dict[Key, Done]:
    """Return records of actions, given by key or its text, carried out `seconds_ago`."""
    return {parse(str(key)): Done(at=ago(seconds_ago)) for key in keys}


def every_signal() -> Iterator[Signals]:
    """All combinations of signals that can occur together."""
    for stage in OVER:
        for hold, availability in itertools.product(Hold, Availability):
            yield Signals(stage=stage, hold=hold, availability=availability)
    yield Signals(stage=Stage.QUEUED)
    yield Signals(stage=Stage.SPAWNING)
    for availability in Availability:
        yield Signals(stage=Stage.PAUSED, availability=availability)
    for availability, attention, output in itertools.product(Availability, Attention, Output):
        running = Signals(
            stage=Stage.RUNNING, availability=availability, attention=attention, output=output
        )
        yield running
        if output is Output.PRIVATE:
            continue  # A chat has no pull request.
        for pull, stacked, ci, review, merge in itertools.product(
            (PullStage.DRAFT, PullStage.HELD, PullStage.OPEN), (False, True), Ci, Review, Merge
        ):
            yield replace(running, pull=pull, stacked=stacked, ci=ci, review=review, merge=merge)


def check(state: CheckState = CheckState.PASSED, name: str = "unit", **fields: Any) -> Check:
    return Check(id=f"ci/{name}", name=name, state=state, **fields)


def remark(id: str = "comment-1", seconds_ago: float = 300, **fields: Any) -> Remark:
    fields = {"author": "rob", "body": "Please add a test.", "allowed": True, **fields}
    return Remark(id=id, at=ago(seconds_ago), **fields)


def thread(*remarks: Remark, **fields: Any) -> Thread:
    return Thread(id="T1", path="a.py", line=3, remarks=remarks or (remark("thread-comment-1"),))


def approval(sha: str = HEAD, author: str = "rob", *, allowed: bool = True) -> Verdict:
    return Verdict(author=author, approved=True, sha=sha, allowed=allowed)


def objection(**fields: Any) -> Verdict:
    return Verdict(author="rob", approved=False, sha=HEAD, allowed=True, **fields)


def pull(**fields: Any) -> Pull:
    """An open pull request at HEAD, green, clean, and not reviewed."""
    fields = {
        "number": 34,
        "head": HEAD,
        "base": BASE,
        "base_branch": "main",
        "merge": Merge.CLEAN,
        "checks": (check(),),
        "head_since": ago(500),
        "read_at": ago(1),
        **fields,
    }
    return Pull(**fields)


def agent(activity: Activity = Activity.READY, seconds_ago: float = 120, **fields: Any) -> Agent:
    """The program of run 1, alive."""
    fields = {
        "run": 1,
        "since": ago(seconds_ago),
        "seen": ago(seconds_ago),
        "runtime": Probe.ALIVE,
        "program": Probe.ALIVE,
        **fields,
    }
    return Agent(activity=activity, **fields)


def ended(code: int | None = 0, seconds_ago: float = 60, **fields: Any) -> Agent:
    """The program of run 1, gone by itself."""
    record = Exit(at=ago(seconds_ago), code=code, signal=None if code is not None else 9)
    dead = {"runtime": Probe.DEAD, "program": Probe.DEAD, "exit": record}
    return agent(Activity.EXITED, seconds_ago, **dead, **fields)


def facts(**fields: Any) -> Facts:
    """Return the facts of a session in its first run without a commit, changed by `fields`.

    Keys of actions in `fields` may be given as texts.
    """
    fields = {
        "session": "widgets-12",
        "project": "widgets",
        "created": ago(3600),
        "issue": Issue(number=12, title="More tests"),
        "requester": "alice",
        "agent_type": "shell",
        "agents": ("ada", "codex", "shell"),
        "branch": BRANCH,
        "run": 1,
        "slot": True,
        "agent": agent(),
        "work": Work(base=BASE, head=BASE, branch=BRANCH, dirty=False),
        "done": {},
        **fields,
    }
    fields["done"] = {**done("start:first#1", seconds_ago=1800), **fields["done"]}
    for keyed in ("done", "failures"):
        fields[keyed] = {parse(str(key)): value for key, value in fields.get(keyed, {}).items()}
    fields["pending"] = frozenset(parse(str(key)) for key in fields.get("pending", ()))
    return Facts(**fields)


def published(**fields: Any) -> Facts:
    """A session whose one commit is pushed and has a pull request."""
    fields = {
        "work": Work(base=BASE, head=HEAD, branch=BRANCH, dirty=False),
        "pulls": (pull(),),
        **fields,
    }
    pushed = done(f"push:{HEAD}", f"open_pull:{BRANCH}", seconds_ago=500)
    fields["done"] = {**pushed, **fields.get("done", {})}
    return facts(**fields)


_AGENTS = (
    Agent(),
    agent(Activity.NONE, 30),
    agent(Activity.ACTIVE, 30),
    agent(Activity.ACTIVE, 5000),
    agent(Activity.READY, 30),
    agent(Activity.IDLE, 5000),
    agent(Activity.WAITING_INPUT, 30, question="May I?"),
    agent(Activity.BLOCKED, 30, error="429"),
    agent(Activity.BLOCKED, 5000, error="429"),
    agent(Activity.READY, 30, program=Probe.UNKNOWN),
    agent(Activity.READY, 5000, runtime=Probe.UNKNOWN, program=Probe.UNKNOWN),
    ended(0),
    ended(1),
    ended(None),
)
_WORKS = (
    Work(base=BASE, head=BASE),
    Work(base=BASE, head=HEAD, dirty=False),
    Work(base=BASE, head=HEAD, dirty=True),
    Work(base=BASE, head=NEXT, dirty=False),
    Work(base=BASE, head=HEAD, dirty=True, off_branch=OffBranch(head=NEXT, branch="fix")),
    Work(base=BASE, head=HEAD, dirty=False, off_branch=OffBranch(head=NEXT, adoptable=True)),
)
_CHECKS = (
    (),
    (check(),),
    (check(CheckState.PENDING),),
    (check(CheckState.FAILED, log="boom"),),
    (check(CheckState.FAILED), check(CheckState.PENDING, "lint")),
    (check(CheckState.CANCELLED),),
    (check(required=True), check(CheckState.FAILED, "lint")),
)
_VERDICTS = ((), (approval(),), (approval(NEXT),), (approval(author="alice"),), (objection(),))
_REVIEWS = (Review.NONE, Review.PENDING, Review.APPROVED)
_REMARKS: tuple[dict[str, Any], ...] = (
    {},
    {"threads": (thread(),)},
    {"comments": (remark(),)},
    {"comments": (remark(seconds_ago=5),)},
    {
        "comments": (remark(allowed=False, body=OUTSIDER_TEXT),),
        "threads": (thread(remark("thread-comment-1", allowed=False, body=OUTSIDER_TEXT)),),
    },
)


def every_pull() -> Iterator[Pull]:
    for checks, verdicts, review, written in itertools.product(
        _CHECKS, _VERDICTS, _REVIEWS, _REMARKS
    ):
        yield pull(checks=checks, verdicts=verdicts, review=review, **written)
    for merge, draft in itertools.product(Merge, (True, False)):
        yield pull(merge=merge, draft=draft, verdicts=(approval(),))
        yield pull(merge=merge, draft=draft, checks=(), checks_expected=("unit",))
        yield pull(merge=merge, draft=draft, title="WIP: x", verdicts=(approval(),))
    waits = (check(CheckState.PENDING, required=True),)
    yield pull(checks=waits, clean_since=ago(9_999), verdicts=(approval(),))
    yield pull(barred="lock", base_branch="main", verdicts=(approval(),))
    yield pull(state=PullState.CLOSED)
    yield pull(state=PullState.MERGED, merged_at=ago(10))


def every_few_pulls() -> Iterator[tuple[Pull, ...]]:
    """Yield tuples of one or two pull requests of a session.

    In some of the pairs, the second is stacked on the first. A pull request on its own has a push
    by a person, a check that can be rerun, or an approval of an earlier head that still counts.
    """
    ones = (
        pull(branch=BRANCH, verdicts=(approval(),)),
        pull(branch=BRANCH, checks=(check(CheckState.FAILED),), comments=(remark(),)),
        pull(branch=BRANCH, draft=True),
        pull(branch=BRANCH, state=PullState.MERGED, merged_at=ago(10)),
    )
    others: tuple[dict[str, Any], ...] = (
        {"verdicts": (approval(OTHER),)},
        {"checks": (check(CheckState.FAILED, "lint"),)},
        {"merge": Merge.BEHIND},
        {"state": PullState.CLOSED},
    )
    for one, base, changes in itertools.product(ones, ("main", BRANCH), others):
        yield one, pull(number=35, branch="other", head=OTHER, base_branch=base, **changes)
    person = Push(sha=OTHER, at=ago(250))
    pushed = {"head": OTHER, "head_by": Mover.PERSON, "person": person}
    written: tuple[dict[str, Any], ...] = (
        *({"checks": (check(CheckState.FAILED),)}, {"merge": Merge.CONFLICT}),
        *({"comments": (remark(),)}, {"verdicts": (approval(OTHER),)}, {"draft": True}),
    )
    for words in written:
        yield (pull(**pushed, **words),)
        yield (pull(**words, person=person),)
    for state, flaky, red_on_base in itertools.product(
        (CheckState.FAILED, CheckState.CANCELLED), (True, False), (True, False)
    ):
        checks = (check(state, run_id=7, flaky=flaky, red_on_base=red_on_base), check(name="b"))
        yield (pull(checks=checks, verdicts=(approval(),)),)
    yield (pull(verdicts=(approval(BASE),), carried=frozenset({BASE})),)


def every_fact() -> Iterator[Facts]:
    """Facts in all combinations that matter; more than 10,000."""
    for slot in (False, True):
        yield replace(facts(run=0, slot=slot, agent=Agent()), done={})
    pushed = done(f"push:{HEAD}", f"open_pull:{BRANCH}", seconds_ago=500)
    for who, work in itertools.product(_AGENTS, _WORKS):
        yield facts(agent=who, work=work)
        yield facts(agent=who, work=work, done=pushed)
        yield facts(agent=who, work=work, done=done(f"push:{HEAD}", seconds_ago=500))
        yield facts(agent=who, work=work, issue=Issue(number=12, title="x", open=False))
        yield facts(agent=who, work=work, issue=Issue(number=12, title="x", labelled=False))
        yield facts(agent=who, work=work, commands=(command("stop"),))
    for who, state in itertools.product(_AGENTS, PullState):
        for pending in ("stop#1", "release#1"):
            yield published(
                agent=who,
                pulls=(pull(state=state),),
                commands=(command("stop"),),
                pending=frozenset({pending}),
            )
    for who, one in itertools.product(_AGENTS, every_pull()):
        yield published(agent=who, pulls=(one,))
    for who, some in itertools.product(_AGENTS, every_few_pulls()):
        yield published(agent=who, pulls=some)
    for work, some in itertools.product(_WORKS, every_few_pulls()):
        yield published(work=work, pulls=some)
        yield published(work=work, pulls=some, done=done(f"merge_remote:{OTHER}", f"rerun:{HEAD}"))
    for work, one in itertools.product(_WORKS, every_pull()):
        yield published(agent=agent(), work=work, pulls=(one,))
    for cause, one in itertools.product(("rest", "work"), every_pull()):
        yield published(agent=ended(None), done=done(f"park:{cause}#1"), pulls=(one,))


def command(kind: str, **fields: Any) -> Command:
    fields = {"actor": "alice", "at": ago(20), "comment": 77, **fields}
    return Command(key=f"comment-{kind}", kind=kind, **fields)
