"""What can be said to the agent now, read off its probes and its own evidence."""

from lifecycle.moment import Moment
from lifecycle.signals import Talk
from lifecycle.status import Activity, Probe

# Looked up once: a member of an enumeration costs a search each time it is named.
_DEAD = Probe.DEAD
_ACTIVE, _RESTING = Activity.ACTIVE, (Activity.READY, Activity.IDLE)


def talk_of(moment: Moment) -> Talk:
    """What can be said to the agent; a run's own evidence alone counts."""
    agent, policy = moment.facts.agent, moment.policy
    if agent.run != moment.facts.run:
        return Talk.NONE
    if agent.exit is not None:
        return Talk.ENDED if agent.exit.code == 0 else Talk.CRASHED
    if not moment.alive:
        dead = agent.runtime is _DEAD and agent.program is _DEAD
        return Talk.CRASHED if dead else Talk.UNSURE
    if agent.activity in _RESTING:
        told = moment.given
        if told is None or (agent.since is not None and agent.since > told):
            return Talk.QUIET
        # A message that has just gone in is being read, whatever the last evidence says.
        return Talk.QUIET if moment.passed(told, policy.hearing_seconds) else Talk.ACTIVE
    if agent.activity is _ACTIVE:
        seen = agent.seen or agent.since
        stale = seen is None or moment.passed(seen, policy.fresh_seconds)
        return Talk.UNSURE if stale else Talk.ACTIVE
    if agent.activity is Activity.WAITING_INPUT:
        return Talk.WAITING
    if agent.activity is Activity.BLOCKED:
        return Talk.BLOCKED
    return Talk.UNSURE if agent.activity is Activity.EXITED else Talk.NONE
