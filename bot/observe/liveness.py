"""What a look at the agents is worth: which deaths are believed, and which news is none."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from bot.store import LiveSession
from lifecycle.model.facts import Agent, Doubt
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe
from runtimes.base import Seen

#: A handle that a look does not show.
MISSING: Final = Seen(runtime=Probe.DEAD, program=Probe.DEAD)
#: Nobody could look.
UNKNOWN: Final = Seen(runtime=Probe.UNKNOWN, program=Probe.UNKNOWN)
#: So many programs that vanish in one sweep, and more than half of all, are a broken look.
_MANY = 5
#: Newer evidence of the same activity is written down this often, not at every look.
_EVIDENCE = timedelta(seconds=20)
#: So much more spent is written down at once: a budget must not be overrun meanwhile.
_NOTICEABLE_USD = 0.1
_WAITS = (Activity.WAITING_INPUT, Activity.BLOCKED)
_AGREED = ({Probe.ALIVE}, {Probe.DEAD})


def many_lost(probes: Sequence[tuple[LiveSession, Seen]]) -> int:
    """How many vanished without a trace, where they are so many that the look itself is in doubt.

    What a supervisor wrote down is proof and counts as seen, and what was dead before is no news.
    """
    lost = sum(unproven(live, seen) for live, seen in probes)
    known = sum(live.agent.program is not Probe.DEAD for live, _ in probes)
    return lost if lost >= _MANY and 2 * lost > known else 0


def unproven(live: LiveSession, seen: Seen) -> bool:
    """Whether a program that was not known to be dead is, and nothing proves it."""
    dead = seen.program is Probe.DEAD and seen.exit is None
    return dead and live.agent.program is not Probe.DEAD


def settled(before: Agent, now: Agent, at: datetime, policy: Policy) -> Agent:
    """A reading of the same run as the one before, without what means nothing."""
    if now.activity is Activity.NONE and before.activity is not Activity.EXITED:
        # A source that fails changes nothing: a new reader may find less than the one before.
        now = replace(before, runtime=now.runtime, program=now.program, doubt=None)
    if not now.native_id:
        now = replace(now, native_id=before.native_id)
    if now.usage.tokens < before.usage.tokens:
        now = replace(now, usage=before.usage)
    if now.exit is None and {now.runtime, now.program} not in _AGREED:
        now = replace(now, doubt=_doubt(before.doubt, now, at, policy.probe_looks))
    same = (now.activity, now.question, now.error)
    if now.activity in _WAITS and same == (before.activity, before.question, before.error):
        # A reader that was just made may take a later line's time for the question's.
        now = replace(now, since=before.since)
    rests = now.since if now.activity is Activity.READY else None
    if rests and at - rests > timedelta(seconds=policy.idle_seconds):
        now = replace(now, activity=Activity.IDLE)
    return now


def throttled(before: Agent, now: Agent, at: datetime) -> Agent:
    """The reading with evidence and usage of the one before, while those are new enough."""
    if now.activity is not before.activity or before.seen is None:
        return now
    if abs(at - before.seen) >= _EVIDENCE:
        return now
    spent = (now.usage.cost_usd or 0.0) - (before.usage.cost_usd or 0.0)
    usage = now.usage if spent >= _NOTICEABLE_USD else before.usage
    return replace(now, seen=before.seen, evidence=before.evidence, usage=usage)


def _doubt(before: Doubt | None, now: Agent, at: datetime, most: int) -> Doubt:
    """One more look that failed; other evidence than before begins to count anew."""
    evidence = f"runtime {now.runtime}, program {now.program}, agent {now.activity}"
    if before is None or before.evidence != evidence:
        return Doubt(since=at, evidence=evidence)
    return replace(before, rounds=min(before.rounds + 1, most))
