"""Builds sessions with an exact amount of something: attempts, seconds, tokens."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lifecycle.model.facts import Done, Ended, Facts, ProbeFailure, Spending, Work
from lifecycle.model.status import (
    Activity,
    CheckState,
    Merge,
    Origin,
    Probe,
    PullState,
    Reason,
    Status,
)
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    NEXT,
    agent,
    ago,
    check,
    done,
    ended,
    facts,
    published,
    pull,
    thread,
)


def reported(seconds: float) -> Facts:
    """A session whose last report, now out of date, was posted `seconds` seconds ago."""
    return facts(done=done("report:12:0:before", seconds_ago=seconds))


def repeated(cause: str, times: float, **fields: Any) -> Facts:
    """A session whose agent got so many messages of this cause and has pushed since."""
    causes = [cause.format(place, f"{place:040x}") + "#1" for place in range(int(times))]
    fields["done"] = {**done(*causes, seconds_ago=550), **fields.get("done", {})}
    return published(**fields)


def red(times: float) -> Facts:
    return repeated("fix_ci:{1}:{0}", times, pulls=(pull(checks=(check(CheckState.FAILED),)),))


def in_conflict(times: float) -> Facts:
    return repeated(f"resolve_conflict:{BASE}:{{1}}", times, pulls=(pull(merge=Merge.CONFLICT),))


def asked_for_changes(times: float) -> Facts:
    return repeated("address_review:{0}", times, pulls=(pull(threads=(thread(),)),))


def crashed_runs(cause: str, times: float, lost: str) -> Facts:
    """A session with `times` restarts, each after a run that crashed or was lost.

    Its last run ended an hour ago: it crashed if `lost` is empty, and otherwise was lost.
    """
    runs = int(times) + 1
    last = ended(1, 3600)
    record = replace(last.exit, lost=lost) if last.exit else None
    starts = done(*(f"start:{cause}#{run}" for run in range(2, runs + 1)), seconds_ago=4000)
    return facts(run=runs, agent=replace(last, run=runs, exit=record), done=starts)


def unanswered_review(seconds: float) -> Facts:
    """The agent got requested changes so long ago, is idle and has pushed nothing."""
    sent = done("address_review:abc#1", "remark:thread-comment-1#1", seconds_ago=seconds)
    push = done(f"push:{HEAD}", seconds_ago=9000)
    return published(pulls=(pull(threads=(thread(),)),), done={**sent, **push})


def failed_probes(seconds: float, rounds: float = 3) -> Facts:
    probe_failure = ProbeFailure(
        since=ago(seconds), evidence="tmux does not answer", rounds=int(rounds)
    )
    return facts(
        agent=agent(runtime=Probe.UNKNOWN, program=Probe.UNKNOWN, probe_failure=probe_failure)
    )


def vanished(seconds: float) -> Facts:
    gone = {"runtime": Probe.DEAD, "program": Probe.DEAD}
    return facts(agent=agent(Activity.ACTIVE, seconds, **gone))


def merged(seconds: float) -> Facts:
    one = pull(state=PullState.MERGED, merged_at=ago(seconds))
    return published(pulls=(one,), agent=agent(Activity.ACTIVE, 1))


def over(seconds: float) -> Facts:
    end = Ended(
        status=Status.KILLED,
        reason=Reason.MANUALLY_KILLED,
        because="stopped by @alice",
        at=ago(seconds),
    )
    return published(ended=end, done=done("stop#1"))


def waiting(seconds: float) -> Facts:
    """A session with an open pull request and an idle agent.

    Four events have the same time, `seconds` seconds ago: the start of the agent, the push, the
    opening of the pull request, and the end of the agent's turn.
    """
    before = done(
        *("start:first#1", f"push:{HEAD}", f"open_pull:{BRANCH}"),
        seconds_ago=seconds,
    )
    one = pull(head_since=ago(seconds))
    return replace(published(pulls=(one,), agent=agent(seconds_ago=seconds)), done=before)


def pushed(times: float) -> Facts:
    """So many pushes within the hour, and one more commit."""
    pushes = done(*(f"push:{place:040x}" for place in range(int(times))), seconds_ago=60)
    return facts(work=Work(base=BASE, head=NEXT, dirty=False), done=pushes)


def dollars(budget: str) -> Callable[[float], Facts]:
    """A session that has spent so much of one budget."""
    return lambda amount: facts(**{budget: Spending(cost_usd=amount)})


def rested(**fields: Any) -> Facts:
    """Return a session with a pull request in which nothing has happened for a week."""
    week = 7 * 86_400.0
    session = published(
        created=ago(week),
        agent=agent(seconds_ago=week),
        pulls=(pull(**{"head_since": ago(week), **fields}),),
    )
    return replace(session, done={key: Done(at=ago(week)) for key in session.done})


def chatting(seconds: float) -> Facts:
    """A chat in which the agent has waited for a message for so long."""
    started = done("start:first#1", seconds_ago=seconds + 60)
    return facts(origin=Origin.CHAT, agent=agent(seconds_ago=seconds), done=started)
