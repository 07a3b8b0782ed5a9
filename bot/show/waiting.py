"""What programs and people can wait for in a session."""

from typing import Literal

from bot.show.session_summary import SessionSummary
from lifecycle.model.status import Status

Goal = Literal["merged", "needs_input"]


def is_reached(session: SessionSummary, goal: Goal) -> bool:
    """Whether a session is merged, or waits for a person, whatever its status."""
    return session.outcome == Status.MERGED if goal == "merged" else session.needs_person


def is_over(session: SessionSummary, goal: Goal) -> bool:
    """Whether to stop waiting: it is reached, or never will be, since the session has ended."""
    return is_reached(session, goal) or bool(session.outcome)
