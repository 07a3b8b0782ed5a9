"""An agent whose program is over: every reader says so in the same words."""

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity, Probe
from runtimes.base import Seen


def ended(seen: Seen, agent: Agent) -> Agent | None:
    """The agent as one whose program is over; None while it lives, and where nobody knows."""
    if seen.program is not Probe.DEAD:
        return None
    end = seen.exit
    if end is None:
        how = "its program is gone"
    elif end.lost:
        how = f"its program did not end by itself: {end.lost}"
    elif end.signal is not None:
        how = f"its program was ended by signal {end.signal}"
    else:
        how = "its program vanished" if end.code is None else f"its program exited with {end.code}"
    return replace(
        agent,
        activity=Activity.EXITED,
        since=end.at if end else agent.seen,
        evidence=how,
        question="",
        error="",
        limit_until=None,
        unauthorised=False,
        calling=False,
        exit=end,
    )
