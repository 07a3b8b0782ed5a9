"""What can be said to the agent now, read off its probes and its own evidence."""

from datetime import datetime
from enum import StrEnum

from lifecycle.model.keys import ENDINGS
from lifecycle.model.status import Activity, Probe
from lifecycle.read.moment import Moment


class Availability(StrEnum):
    """What can be said to the agent now."""

    NONE = "none"  #: Started and not seen yet.
    ACTIVE = "active"
    QUIET = "quiet"
    WAITING = "waiting"
    BLOCKED = "blocked"
    #: Exited by itself without an error, or was ended while it rested: a message starts a run.
    ENDED = "ended"
    INTERRUPTED = "interrupted"  #: We ended it in the middle of its work: a new run goes on.
    CRASHED = "crashed"  #: Exited by an error, or provably lost with its runtime.
    UNSURE = "unsure"  #: Probes failed or disagree, or the evidence is stale.


# Looked up once: a member of an enumeration costs a search each time it is named.
_DEAD = Probe.DEAD
_QUIET, _UNSURE = Availability.QUIET, Availability.UNSURE
_ACTIVE, _RESTING = Activity.ACTIVE, (Activity.READY, Activity.IDLE)


def availability_of(moment: Moment) -> Availability:
    """What can be said to the agent; a run's own evidence alone counts."""
    agent = moment.facts.agent
    if agent.run != moment.facts.run:
        return Availability.NONE
    if agent.exit is not None or not moment.alive:
        return _gone(moment)
    return _living(moment)


def last_availability(moment: Moment, availability: Availability) -> Availability:
    """What it was the last time it was seen: a look that failed contradicts nothing."""
    return _living(moment) if availability is _UNSURE and not moment.alive else availability


def _living(moment: Moment) -> Availability:
    """What a program that lives is doing, by its own evidence."""
    agent, policy = moment.facts.agent, moment.policy
    if agent.activity in _RESTING:
        if moment.facts.sent and moment.awaits_receipt():
            return Availability.ACTIVE
        told = moment.given
        if told is None or (agent.since is not None and agent.since > told):
            return _QUIET
        # A message that has just gone in is being read, whatever the last evidence says.
        return _QUIET if moment.passed(told, policy.message_grace_seconds) else Availability.ACTIVE
    if agent.activity is _ACTIVE:
        seen = agent.seen or agent.since
        believed = agent.calling or is_recent(moment, seen, policy.activity_timeout_seconds)
        return Availability.ACTIVE if believed else Availability.UNSURE
    if agent.activity is Activity.WAITING_INPUT:
        return Availability.WAITING
    if agent.activity is Activity.BLOCKED:
        return Availability.BLOCKED
    return Availability.UNSURE if agent.activity is Activity.EXITED else Availability.NONE


def is_recent(moment: Moment, at: datetime | None, seconds: float) -> bool:
    """Whether evidence of then is no older than so many seconds. Without a time it is not.

    A time slightly in the future is another clock; one further ahead proves nothing.
    """
    if at is None or not moment.passed(at, -moment.policy.recent_activity_seconds):
        return False
    return not moment.passed(at, seconds)


def _gone(moment: Moment) -> Availability:
    """Whether a program that is not seen to live has ended, and whether that was its own doing."""
    agent, policy = moment.facts.agent, moment.policy
    dead = agent.runtime is _DEAD and agent.program is _DEAD
    if agent.exit is None and not dead and moment.facts.run not in moment.past.ended:
        return Availability.UNSURE
    if _ended_by_us(moment):
        if moment.facts.run in moment.past.interrupted:
            return Availability.INTERRUPTED
        # A question that was open when its program was ended is open still.
        return Availability.WAITING if agent.question else Availability.ENDED
    if agent.exit is not None:
        return (
            Availability.ENDED
            if agent.exit.code == 0 and not agent.exit.lost
            else Availability.CRASHED
        )
    # No proof: what was at work a moment ago is not over because two looks say so.
    return (
        Availability.UNSURE
        if is_recent(moment, agent.seen, policy.recent_activity_seconds)
        else Availability.CRASHED
    )


def _ended_by_us(moment: Moment) -> bool:
    """Whether we ended this run's program, or have written down that we do."""
    run = moment.facts.run
    return run in moment.past.ended or any(
        key.run == run and key.kind in ENDINGS for key in moment.facts.pending
    )
