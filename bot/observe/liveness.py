"""Filters unreliable probe results and insignificant changes before they become facts."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from bot.store import LiveSession
from lifecycle.model.facts import Agent, ProbeFailure
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe
from runtimes.base import Seen

#: The probe result of a program that was not found on the host.
MISSING: Final = Seen(runtime=Probe.DEAD, program=Probe.DEAD)
#: If at least this many programs vanish in one sweep, and more than half of those not known to be
#: dead, the probe is taken to be wrong.
_MANY = 5
#: Newer evidence of an unchanged activity is stored this often, not at every observation.
_EVIDENCE = timedelta(seconds=20)
#: Spending of this amount or more is stored at once, so that no budget is exceeded unnoticed.
_NOTICEABLE_USD = 0.1
_WAITS = (Activity.WAITING_INPUT, Activity.BLOCKED)
_AGREED = ({Probe.ALIVE}, {Probe.DEAD})


def too_many_lost(probes: Sequence[tuple[LiveSession, Seen]]) -> int:
    """Return how many programs vanished at once if that is too many to be plausible, else 0.

    Programs whose exit a supervisor recorded, or that were dead before, do not count.
    """
    lost = sum(lost_without_trace(live, seen) for live, seen in probes)
    known = sum(live.agent.program is not Probe.DEAD for live, _ in probes)
    return lost if lost >= _MANY and 2 * lost > known else 0


def lost_without_trace(live: LiveSession, seen: Seen) -> bool:
    """Whether a program that was not known to be dead is gone without a recorded exit."""
    dead = seen.program is Probe.DEAD and seen.exit is None
    return dead and live.agent.program is not Probe.DEAD


def believable_agent(before: Agent, now: Agent, at: datetime, policy: Policy) -> Agent:
    """Return the reading `now` of a run, with unreliable parts taken from the last reading.

    `before` is the last reading, `at` the time of `now`. Failed and contradictory probes are
    counted. An agent that has been ready for longer than the policy's `idle_seconds` becomes idle.
    """
    if now.activity is Activity.NONE and before.activity is not Activity.EXITED:
        # If a source fails, keep the last reading: a new reader may find less in it.
        now = replace(before, runtime=now.runtime, program=now.program, probe_failure=None)
    if not now.native_id:
        now = replace(now, native_id=before.native_id)
    if now.usage.tokens < before.usage.tokens:
        now = replace(now, usage=before.usage)
    if now.exit is None and {now.runtime, now.program} not in _AGREED:
        now = replace(
            now, probe_failure=_counted_failure(before.probe_failure, now, at, policy.probe_rounds)
        )
    same = (now.activity, now.question, now.error)
    if now.activity in _WAITS and same == (before.activity, before.question, before.error):
        # A new reader may take the time of a later line for the time of the question.
        now = replace(now, since=before.since)
    rests = now.since if now.activity is Activity.READY else None
    if rests and at - rests > timedelta(seconds=policy.idle_seconds):
        now = replace(now, activity=Activity.IDLE)
    return now


def without_frequent_news(before: Agent, now: Agent, at: datetime) -> Agent:
    """Return `now`, but keep recent evidence and usage of `before`, to store changes less often.

    Nothing is kept if the activity differs or `before` has no evidence of the last 20 seconds. The
    usage is not kept if its cost grew by 0.1 dollars or more.
    """
    if now.activity is not before.activity or before.seen is None:
        return now
    if abs(at - before.seen) >= _EVIDENCE:
        return now
    spent = (now.usage.cost_usd or 0.0) - (before.usage.cost_usd or 0.0)
    usage = now.usage if spent >= _NOTICEABLE_USD else before.usage
    return replace(now, seen=before.seen, evidence=before.evidence, usage=usage)


def _counted_failure(
    before: ProbeFailure | None, now: Agent, at: datetime, most: int
) -> ProbeFailure:
    """Count consecutive rounds in which the probes of runtime and program failed or disagreed.

    If `now` has the runtime, program and activity that `before.evidence` names, the result has one
    round more than `before`, but at most `most`. Otherwise a new count begins with one round.
    """
    evidence = f"runtime {now.runtime}, program {now.program}, agent {now.activity}"
    if before is None or before.evidence != evidence:
        return ProbeFailure(since=at, evidence=evidence)
    return replace(before, rounds=min(before.rounds + 1, most))
