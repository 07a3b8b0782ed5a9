"""What does not go on and may yet: one row a cause, of which the first that stands counts."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from lifecycle.model import keys
from lifecycle.model.key import Key
from lifecycle.model.status import Reason
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import View

# Looked up once: a member of an enumeration costs a search each time it is named.
_BLOCKED, _UNSURE = Availability.BLOCKED, Availability.UNSURE
_UNSEEN: Final = (Availability.UNSURE, Availability.NONE)


class Escalation(NamedTuple):
    """A cause people have to look at; its key names the cause."""

    key: Key | None  #: None: people are not notified of it.
    reason: Reason
    because: str


Row = Callable[[View], Escalation | None]


def blocked(view: View) -> Escalation | None:
    """The agent itself says that something stops it, and it is not a limit that is still to end."""
    if view.stands is not _BLOCKED:
        return None
    agent = view.facts.agent
    began = max(filter(None, (since(view), agent.limit_until)))
    if not view.passed(began, view.policy.stuck_seconds):
        return None
    error = agent.error or "it does not say by what"
    reason = Reason.AUTH_FAILED if agent.unauthorised else Reason.AGENT_BLOCKED
    return Escalation(
        keys.stuck(reason, agent.since, agent.run), reason, f"the agent is blocked: {error}"
    )


def no_progress(view: View) -> Escalation | None:
    """Nothing has been seen of the agent for long, as far as its program is known to live."""
    if view.stands not in _UNSEEN:
        return None
    if not view.passed(_last_sign(view), view.policy.stuck_seconds):
        return None
    agent = view.facts.agent
    key = keys.stuck(Reason.NO_PROGRESS, agent.since, agent.run)
    return Escalation(key, Reason.NO_PROGRESS, "the agent shows no progress")


def state_unknown(view: View) -> Escalation | None:
    """The probes have failed or disagreed for long."""
    if view.availability is not _UNSURE or view.alive:
        return None
    doubt = view.facts.agent.doubt
    if doubt is not None and doubt.rounds < view.policy.probe_rounds:
        return None
    began = doubt.since if doubt else _last_sign(view)
    if not view.passed(began, view.policy.probe_seconds):
        return None
    key = keys.stuck(Reason.PROBE_FAILURE, began)
    return Escalation(key, Reason.PROBE_FAILURE, "the agent's state could not be established")


def since(view: View) -> datetime:
    """When the agent's activity began, as far as is known."""
    agent, facts = view.facts.agent, view.facts
    return agent.since or agent.seen or view.given or facts.created


def _last_sign(view: View) -> datetime:
    """When there was last a sign that the agent goes on."""
    agent, ahead = view.facts.agent, -view.policy.recent_activity_seconds
    signs = filter(None, (agent.seen, agent.since, view.given))
    # A sign from far in the future would put off being stuck until then.
    return max((at for at in signs if view.passed(at, ahead)), default=view.facts.created)


STALLS: Final[tuple[Row, ...]] = (blocked, state_unknown, no_progress)
