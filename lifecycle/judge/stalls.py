"""Detects why a session is stuck. Each function detects one cause. The first cause found counts."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from lifecycle.model import keys
from lifecycle.model.key import Key
from lifecycle.model.status import Reason
from lifecycle.model.times import shifted, span
from lifecycle.read import sentences
from lifecycle.read.availability import Availability, is_alive
from lifecycle.read.session_view import Recheck, SessionView, earliest

_BLOCKED, _UNKNOWN = Availability.BLOCKED, Availability.UNKNOWN
_NONE: Final = Availability.NONE
_UNSEEN: Final = (Availability.UNKNOWN, Availability.NONE)


class Finding(NamedTuple):
    """Why a session has its status, or the first part of it, and until when this holds."""

    key: Key | None  #: Its identity: people are notified once. If None, they are not notified.
    reason: Reason
    because: str  #: The reason in words, for people.
    until: datetime | None = None  #: When time alone may change the finding; if None, never.


Row = Callable[[SessionView], Finding | Recheck | None]


#: The first finding, and when time alone may change it. Either may be None.
Found = tuple[Finding | None, datetime | None]


def first(rows: tuple[Row, ...], view: SessionView) -> Found:
    """Return the first finding of these functions, in order, and when time alone may change it.

    Either may be None.
    """
    recheck_at: datetime | None = None
    for row in rows:
        found = row(view)
        if found is None:
            continue
        if isinstance(found, Finding):
            return found, earliest(recheck_at, found.until)
        recheck_at = earliest(recheck_at, found.at)
    return None, recheck_at


def blocked(view: SessionView) -> Finding | Recheck | None:
    """The agent has reported an error for too long; time before a usage limit resets is ignored."""
    if view.last_availability is not _BLOCKED:
        return None
    agent = view.facts.agent
    began = max(filter(None, (since(view), agent.limit_until)))
    if wait := view.wait(began, view.policy.stuck_seconds):
        return wait
    reason = Reason.AUTH_FAILED if agent.unauthorised else Reason.AGENT_BLOCKED
    key = keys.stuck(reason, agent.since, agent.run)
    return Finding(key, reason, sentences.blocked(agent.error))


def no_progress(view: SessionView) -> Finding | Recheck | None:
    """The program seems alive, but the agent has shown no activity for too long."""
    if view.last_availability not in _UNSEEN:
        return None
    if view.is_chat and view.last_availability is _NONE:
        return None  # Before the first message there may be nothing to see.
    (at, until), agent = _last_sign(view), view.facts.agent
    if wait := view.wait(at, view.policy.stuck_seconds):
        return Recheck(min(filter(None, (wait.at, until))))
    key = keys.stuck(Reason.NO_PROGRESS, agent.since, agent.run)
    return Finding(key, Reason.NO_PROGRESS, "the agent shows no progress", until)


def state_unknown(view: SessionView) -> Finding | Recheck | None:
    """The probes have failed or disagreed for too long."""
    if view.availability is not _UNKNOWN or is_alive(view.facts.agent):
        return None
    probe_failure = view.facts.agent.probe_failure
    if probe_failure is not None and probe_failure.rounds < view.policy.probe_rounds:
        return None
    began, until = (probe_failure.since, None) if probe_failure else _last_sign(view)
    if wait := view.wait(began, view.policy.probe_seconds):
        return Recheck(min(filter(None, (wait.at, until))))
    key = keys.stuck(Reason.PROBE_FAILURE, began)
    why = "the agent's state could not be determined"
    return Finding(key, Reason.PROBE_FAILURE, why, until)


def since(view: SessionView) -> datetime:
    """Return when the agent's activity began, or else when it was last seen or instructed.

    If all these times are unknown, returns when the session was created.
    """
    agent, facts = view.facts.agent, view.facts
    return agent.since or agent.seen or view.instructed_at or facts.created


def _last_sign(view: SessionView) -> tuple[datetime, datetime | None]:
    """Return when the agent last showed activity or was instructed, and when time changes that.

    Without a sign, the first value is when the session was created. A sign dated more than
    `Policy.recent_activity_seconds` ahead is ignored until it is closer. The second value is when
    the first such sign stops being ignored; None if no sign is ignored.
    """
    agent, ahead = view.facts.agent, span(view.policy.recent_activity_seconds)
    signs = [at for at in (agent.seen, agent.since, view.instructed_at) if at]
    believable = [at for at in signs if shifted(at, -ahead) <= view.now]
    later = [shifted(at, -ahead) for at in signs if shifted(at, -ahead) > view.now]
    return max(believable, default=view.facts.created), min(later, default=None)


STALLS: Final[tuple[Row, ...]] = (blocked, state_unknown, no_progress)

#: The availabilities in which a row may find something.
STALLABLE: Final = frozenset({Availability.BLOCKED, Availability.UNKNOWN, Availability.NONE})
