"""Derives from probes and the agent's own reports whether the agent can receive a message."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from lifecycle.model.facts import Agent, Facts
from lifecycle.model.keys import ENDINGS
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe
from lifecycle.model.times import shifted, span
from lifecycle.read.action_history import ActionHistory


class Availability(StrEnum):
    """Whether the agent can receive a message now, and if not, why."""

    NONE = "none"  #: Started and not seen yet.
    ACTIVE = "active"  #: In a turn, or about to read a message.
    IDLE = "idle"  #: It finished its turn.
    WAITING = "waiting"  #: A question or a permission prompt is open.
    BLOCKED = "blocked"  #: An error or a usage limit stops it.
    #: The program exited without an error, or was stopped while idle. A message starts a run.
    EXITED = "exited"
    INTERRUPTED = "interrupted"  #: The bot stopped it before its turn ended: a new run resumes it.
    CRASHED = "crashed"  #: Exited with an error, or was lost with its runtime.
    UNKNOWN = "unknown"  #: Probes failed or disagree, or the evidence is stale.


class Until(NamedTuple):
    """An availability, and when it changes without new facts."""

    availability: Availability
    changes_at: datetime | None = None  #: If None, only new facts change it.


_ALIVE, _DEAD = Probe.ALIVE, Probe.DEAD
_IDLE, _UNKNOWN = Until(Availability.IDLE), Until(Availability.UNKNOWN)
_ACTIVE, _RESTING = Activity.ACTIVE, (Activity.READY, Activity.IDLE)


def is_alive(agent: Agent) -> bool:
    """Whether the last probes found the runtime and the program alive."""
    return agent.runtime is _ALIVE and agent.program is _ALIVE


def availability_of(facts: Facts, policy: Policy, history: ActionHistory, now: datetime) -> Until:
    """Return the availability of the current run's agent; evidence of other runs is ignored."""
    agent = facts.agent
    if agent.run != facts.run:
        return Until(Availability.NONE)
    if agent.exit is not None or agent.runtime is not _ALIVE or agent.program is not _ALIVE:
        return _gone(facts, policy, history, now)
    return living(facts, policy, history, now)


def living(facts: Facts, policy: Policy, history: ActionHistory, now: datetime) -> Until:
    """Return the availability of a living program, by the agent's reports and recent messages."""
    agent = facts.agent
    if agent.activity in _RESTING:
        if facts.sent and (until := receipt_until(facts, policy, now)):
            return Until(Availability.ACTIVE, until)
        instructed = history.instructed_at(facts.run)
        if instructed is None or (agent.since is not None and agent.since > instructed):
            return _IDLE
        # A message that was just sent is being read, whatever the last evidence says.
        read_by = shifted(instructed, span(policy.message_grace_seconds))
        return _IDLE if now >= read_by else Until(Availability.ACTIVE, read_by)
    if agent.activity is _ACTIVE:
        if agent.calling:
            return Until(Availability.ACTIVE)
        recent, until = _recent(
            agent.seen or agent.since, policy.activity_timeout_seconds, policy, now
        )
        return Until(Availability.ACTIVE if recent else Availability.UNKNOWN, until)
    if agent.activity is Activity.WAITING_INPUT:
        return Until(Availability.WAITING)
    if agent.activity is Activity.BLOCKED:
        return Until(Availability.BLOCKED)
    return _UNKNOWN if agent.activity is Activity.EXITED else Until(Availability.NONE)


def receipt_until(facts: Facts, policy: Policy, now: datetime) -> datetime | None:
    """Return when the bot stops awaiting receipts of this run's messages; None if it awaits none.

    That is `Policy.recent_activity_seconds` after the latest `Sent.until`, even while the agent
    cannot be probed, so that no wait is endless.
    """
    sent = (one for key, one in facts.sent.items() if key.run == facts.run and not one.missing)
    until = max((one.until for one in sent), default=None)
    end = shifted(until, span(policy.recent_activity_seconds)) if until else None
    return end if end and now < end else None


def _recent(
    at: datetime | None, seconds: float, policy: Policy, now: datetime
) -> tuple[bool, datetime | None]:
    """Return whether `at` is less than `seconds` ago, and when that changes, if ever.

    An unknown time (None) is not recent. A time in the future is recent only if it is within
    `Policy.recent_activity_seconds`, because clocks differ.
    """
    if at is None:
        return False, None
    believable = shifted(at, -span(policy.recent_activity_seconds))
    if now < believable:
        return False, believable
    end = shifted(at, span(seconds))
    return (True, end) if now < end else (False, None)


def _gone(facts: Facts, policy: Policy, history: ActionHistory, now: datetime) -> Until:
    """Return the availability of an agent whose program exited or was not found alive by probes.

    It depends on whether the bot ended the program, and otherwise on how the program ended.
    """
    agent = facts.agent
    dead = agent.runtime is _DEAD and agent.program is _DEAD
    if agent.exit is None and not dead and facts.run not in history.ended:
        return _UNKNOWN
    if _ended_by_bot(facts, history):
        if facts.run in history.interrupted:
            return Until(Availability.INTERRUPTED)
        # A question that was open when the program was stopped is still open.
        return Until(Availability.WAITING if agent.question else Availability.EXITED)
    if agent.exit is not None:
        exited = agent.exit.code == 0 and not agent.exit.lost
        return Until(Availability.EXITED if exited else Availability.CRASHED)
    # Activity of a moment ago contradicts two dead probes.
    recent, until = _recent(agent.seen, policy.recent_activity_seconds, policy, now)
    return Until(Availability.UNKNOWN if recent else Availability.CRASHED, until)


def _ended_by_bot(facts: Facts, history: ActionHistory) -> bool:
    """Whether the bot stopped this run's program, or has recorded that it will."""
    run = facts.run
    return run in history.ended or any(
        key.run == run and key.kind in ENDINGS for key in facts.pending
    )
