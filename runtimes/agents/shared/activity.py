"""Agent facts that the readers of all agent types report in the same way."""

from datetime import datetime

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity, Probe
from runtimes.agents.shared.files import TEXT
from runtimes.base import Seen


def exited(seen: Seen, agent: Agent) -> Agent | None:
    """Return the agent as exited; None while its program lives, or if that is unknown."""
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


def waiting(agent: Agent, since: datetime | None, evidence: str, question: str) -> Agent:
    """Return the agent as waiting for a person's answer to a question."""
    return replace(
        agent,
        activity=Activity.WAITING_INPUT,
        since=since,
        evidence=evidence,
        question=question[:TEXT],
        error="",
        limit_until=None,
        unauthorised=False,
        calling=False,
    )
